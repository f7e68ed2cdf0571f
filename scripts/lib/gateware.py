"""What the checks of the gateware share: its sources, running of tools, rows of results."""

import os
import signal
import subprocess
from contextlib import suppress

from lib.cargo import ROOT
from lib.needs import Failure

RTL = ROOT / "hw/rtl"
# Seconds after which a tool counts as hung, on a machine that does much else; limit of a synthesis.
PATIENCE, LONG = 600, 1800
# Process groups of the running tools.
running = set()


def stop(*_):
    """Ends the tools when a signal ends this program."""
    for pid in list(running):
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    os._exit(1)


def run(log, words, env=None, patience=PATIENCE):
    """Runs a tool, adds its output to its log, and returns the output."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(map(str, words))}\n")
    # In a session of its own: a solver that it started ends with it.
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env=env, start_new_session=True) as process:
        running.add(process.pid)
        try:
            said, _ = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failure(f"{words[0]} took more than {patience} s") from None
        finally:
            running.discard(process.pid)
    with open(log, "a", encoding="utf-8") as file:
        file.write(said)
    if process.returncode != 0:
        raise Failure(f"{words[0]}: {' | '.join(said.strip().splitlines()[-6:])}")
    return said


class Sources:
    """The files of hw/rtl. A module is found by its file's name; packages are read before each, so
    that they are looked at with every module, and Verilator, which refuses one alone, has a top."""

    def __init__(self):
        everything = sorted(RTL.glob("**/*.sv"))
        self.packages = [file for file in everything if file.stem.endswith("_pkg")]
        self.files = [file for file in everything if file not in self.packages]
        self.folders = sorted({file.parent for file in everything})

    def verilator(self):
        return [word for folder in self.folders for word in ("-y", folder)]

    def icarus(self):
        return [word for folder in self.folders for word in ("-y", folder)] + ["-Y", ".sv"]

    def yosys(self):
        return " ".join(f"-libdir {folder}" for folder in self.folders)


class Row:
    """One line of the result: something that passed, failed or could not run."""

    def __init__(self, kind, module, name, seconds, why="", skipped=False):
        self.kind, self.module, self.name, self.seconds, self.why = kind, module, name, seconds, why
        self.result = "skipped" if skipped else "failed" if why else "passed"

    def say(self):
        what = f"{self.module}/{self.name}" if self.name else self.module
        print(f"{self.result:8} {self.kind:7} {what:56} {self.seconds:6.1f} s", flush=True)
        if self.why:
            print(f"{'skipped: ' if self.result == 'skipped' else '         '}{self.why}", flush=True)
