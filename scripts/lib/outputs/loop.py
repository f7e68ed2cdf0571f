"""The rate of the trigger's loop beside an output."""

import json
import os
import re
import subprocess

from lib.outputs.broker import free_port
from lib.outputs.metrics import BUILT, total
from lib.testbed import CPUS, Process, check, need_cpus

# Seconds of a run, under valgrind too, and of the end of its output.
PATIENCE = 600


class Loop:
    """Live runs of the trigger, whose loop has a CPU of its own: the last one. A live run never waits for an output,
    and the loop itself reads its frames from a capture, so no source shares a CPU with the broker or with the output.
    What makes the run a live one is a second port, whose frames are no UDP."""

    def __init__(self, programs, folder, events):
        need_cpus(2)
        self._program, self._events = programs / "l0-trigger", events
        self._folder, self._capture, self._report = folder, folder / "loop.pcapng", folder / "loop.json"
        words = [programs / "pollux-emulator", "--quiet", "--port", f"pcap:tx={self._capture}", "--seed", "7", "--events", str(events)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def rate(self, broker=None, topic=None, disturb=None):
        """Events a second, beside an output to a broker that is disturbed once the run has begun."""
        report = self._run([], broker, topic, disturb)
        return report["events"]["built"] / report["duration_s"]

    def rate_of_instructions(self, broker=None, topic=None, disturb=None):
        """Events in a million instructions of the loop, which executes by far the most of all threads."""
        counts = self._folder / "instructions"
        tool = ["valgrind", "--quiet", "--tool=callgrind", "--separate-threads=yes", "--fair-sched=yes",
                f"--callgrind-out-file={counts}"]
        report = self._run(tool, broker, topic, disturb)
        threads = list(self._folder.glob(f"{counts.name}-*"))
        found = [int(count) for file in threads for count in re.findall(r"^totals: (\d+)$", file.read_text(), re.MULTILINE)]
        for file in threads:
            file.unlink()
        check(f"callgrind counts no thread that stands out: {found}", len(found) > 1 and max(found) > sum(found) / 2)
        return report["events"]["built"] / (max(found) / 1e6)

    def _run(self, tool, broker, topic, disturb):
        """The report of a run, under a tool that runs programs."""
        metrics = f"127.0.0.1:{free_port()}"
        output = ["--output", f"kafka:{broker.address},topic={topic}"] if broker else []
        words = [*tool, self._program, "--quiet", "--force", "--port", f"pcap:rx={self._capture}", "--port", "null",
                 "--cores", CPUS[-1], "--events", self._events, "--metrics", metrics, "--report", self._report, *output]
        # The trigger has all CPUs, and keeps its other threads off that of the loop.
        os.sched_setaffinity(0, CPUS)
        with Process(words) as run:
            beside()
            if disturb:
                run.until("the first events", lambda: total(metrics, BUILT) > 0)
                disturb()
                check("the run ended before its broker was disturbed", total(metrics, BUILT) < self._events)
            status = run.wait(PATIENCE)
            check(f"status {status}: {run.complained()[-500:]}", status == 0)
        report = json.loads(self._report.read_text(encoding="utf8"))
        for output in report.get("outputs", []):
            accepted = report["events"]["accepted"]
            check(f"{accepted} accepted events, {output}", output["balanced"] and output["handed"] == accepted)
        return report


def beside():
    """Keeps this process, and the programs that it starts from now on, off the loop's CPU."""
    os.sched_setaffinity(0, CPUS[:-1])
