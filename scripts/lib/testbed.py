"""Shared by the scripts that compare ports with other software: programs that are ended, network
namespaces that are removed, DPDK's testpmd, and rows that cannot run on this machine."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from lib.needs import Skip, Failure, need

CPUS = sorted(os.sched_getaffinity(0))
MAC_A, MAC_B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"

# Seconds in which a program has to become ready, on a machine with other load.
PATIENCE = 60

# DPDK's folder of each of its processes, which it does not remove (eal_filesystem.h).
RUNTIME = Path("/var/run/dpdk") if os.geteuid() == 0 else Path(
    os.environ.get("XDG_RUNTIME_DIR", "/tmp"), "dpdk")


def check(what, ok):
    if not ok:
        raise Failure(what)


def need_namespaces():
    need("ip")
    if os.geteuid() != 0:
        raise Skip("network namespaces need root")


def need_cpus(count):
    if len(CPUS) < count:
        raise Skip(f"{count} CPUs are needed, this process may use {len(CPUS)}")


_serial = iter(range(1 << 32))


def name():
    """A unique name, which contains the process id."""
    return f"plx{os.getpid()}-{next(_serial)}"


_verbose = False


def show_commands():
    """From here on every command is printed."""
    global _verbose  # pylint: disable=global-statement
    _verbose = True


def _words(command):
    words = command.split() if isinstance(command, str) else [str(word) for word in command]
    if _verbose:
        print("+", " ".join(words), file=sys.stderr)
    return words


def shell(command):
    """Runs a command to its end, whatever that is."""
    return subprocess.run(_words(command), capture_output=True, text=True, timeout=2 * PATIENCE)


def must(command):
    """Runs a command that must succeed; returns its output."""
    done = shell(command)
    check(f"`{command}`: {done.stderr.strip()}", done.returncode == 0)
    return done.stdout


class Process:
    """A program that runs while the block lasts: then it is ended, by SIGTERM and if necessary SIGKILL.
    Its output can be read until the end, and after it."""

    def __init__(self, words):
        # Standard error apart: it would be in the way of a program's report.
        self._log, self._errors = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        self._child = subprocess.Popen(_words(words), text=True, stdin=subprocess.PIPE,
                                       stdout=self._log, stderr=self._errors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.running():
            self._child.terminate()
        self.wait(5)
        with suppress(BrokenPipeError):
            self._child.stdin.close()

    def said(self):
        # Not by the file's own position, which is where the program writes.
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def complained(self):
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace")

    def say(self, line):
        # The end of the program is reported to a waiting reader.
        with suppress(BrokenPipeError):
            self._child.stdin.write(line + "\n")
            self._child.stdin.flush()

    def running(self):
        return self._child.poll() is None

    def pid(self):
        return self._child.pid

    def threads(self):
        """The names of its threads."""
        names = []
        for task in Path("/proc", str(self._child.pid), "task").glob("*/comm"):
            # One may end while it is looked at.
            with suppress(OSError):
                names.append(task.read_text().strip())
        return names

    def until(self, what, ready, seconds=PATIENCE):
        """Waits for something that is to happen while the program runs."""
        limit = time.monotonic() + seconds
        while not ready():
            check(f"{what}: {(self.said() + self.complained())[-500:]}",
                  self.running() and time.monotonic() < limit)
            time.sleep(0.005)

    def wait(self, seconds=PATIENCE):
        """Waits for its end, and sees to it; its status."""
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        return self._child.returncode

    def signal(self, number):
        self._child.send_signal(number)

    def interrupt(self):
        self.signal(signal.SIGINT)

    def kill(self):
        self._child.kill()
        self._child.wait()


class Namespace:
    """A network namespace, without IPv6: router solicitations would be frames that no program here has
    sent."""

    def __init__(self):
        need_namespaces()
        self.name = name()
        # In front of a program that is to run in it.
        self.inside = ("ip", "netns", "exec", self.name)

    def __enter__(self):
        must(f"ip netns add {self.name}")
        try:
            for devices in ("all", "default"):
                must([*self.inside, "sysctl", "-qw", f"net.ipv6.conf.{devices}.disable_ipv6=1"])
            self.ip("link set lo up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        shell(f"ip netns delete {self.name}")

    def ip(self, command):
        return must(f"ip -n {self.name} {command}")


@contextmanager
def veth(mtu=1500, queues=1, together=False):
    """A pair of interfaces: `va` in the first namespace, `vb` in the second or beside it."""
    with ExitStack() as stack:
        here = stack.enter_context(Namespace())
        there = here if together else stack.enter_context(Namespace())
        lanes = f"numrxqueues {queues} numtxqueues {queues}"
        here.ip(f"link add va mtu {mtu} address {MAC_A} {lanes} type veth "
                f"peer name vb mtu {mtu} address {MAC_B} {lanes} netns {there.name}")
        here.ip("link set va up")
        there.ip("link set vb up")
        yield here, there


class Testpmd(Process):
    """testpmd at work: forwards by the time the block is entered. When that is left in order,
    `counters` are what it has counted, and `cycles` what a frame took it, if it records that."""

    def __init__(self, vdevs, mode, main=CPUS[0], worker=CPUS[-1], prefix=(),
                 memory=("--no-huge", "-m", 512), mbufs=16384, eal=(), options=(), start="start"):
        need("dpdk-testpmd")
        remove_stale_folders()
        self._folder = RUNTIME / name()
        self.mode, self._start, self._ports = mode, start, len(vdevs)
        self.counters, self.cycles = {}, None
        devices = [word for vdev in vdevs for word in ("--vdev", vdev)]
        # The first lcore waits for a line. stdbuf: what it says is seen when it says it, though this
        # is no terminal.
        super().__init__([
            *prefix, "stdbuf", "-oL", "dpdk-testpmd", "--lcores", f"0@{main},1@{worker}",
            "--no-pci", "--no-telemetry", *memory, "--log-level", "lib.eal:4",
            "--file-prefix", self._folder.name, *eal, *devices,
            "--", "-i", f"--forward-mode={mode}", f"--total-num-mbufs={mbufs}",
            "--disable-link-check", *options])

    def __enter__(self):
        try:
            self.say(self._start)
            self.until("testpmd did not start", lambda: "packet forwarding - ports" in self.said())
        except BaseException:
            self.__exit__(Failure)
            raise
        return self

    def __exit__(self, kind=None, *_):
        try:
            if kind is None and self.running():
                self.say("stop")
                self.until("testpmd did not stop", lambda: "Done." in self.said())
                # Of several queues each has figures of its own in front of the port's.
                ports = re.split("Forward statistics for port|Accumulated", self.said())[1:-1]
                self.counters = {}
                for figure, n in re.findall(r"([\w-]+): *(\d+)", " ".join(ports)):
                    self.counters[figure] = self.counters.get(figure, 0) + int(n)
                found = re.search(r"CPU cycles/packet=([\d.]+)", self.said())
                self.cycles = float(found[1]) if found else None
            self.say("quit")
            # Several drivers crash after their work: the status has no meaning.
            self.wait(PATIENCE if kind is None else 5)
        finally:
            super().__exit__()
            shutil.rmtree(self._folder, ignore_errors=True)

    def show(self):
        """The present counts of its ports: pairs of a name and a value."""
        before = len(self.said())
        self.say("show port stats all")
        # A line of such signs ends a port's part.
        self.until("testpmd does not answer",
                   lambda: self.said()[before:].count("\n  ####") >= 2 * self._ports)
        return [(figure, int(value))
                for figure, value in re.findall(r"([\w-]+): *(\d+)", self.said()[before:])]


def remove_stale_folders():
    """Removes files of testpmds whose script was killed before it could."""
    for folder in RUNTIME.glob("plx*-*"):
        process = re.match(r"plx(\d+)-", folder.name)
        if process and not Path("/proc", process[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)


def run(main):
    """Runs a script: for any end, every block is left, and its files and namespaces are removed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main())
    except Skip as why:
        print(f"skipped: {why}")
    except Failure as what:
        sys.exit(str(what))
    except KeyboardInterrupt:
        sys.exit("interrupted: what was made has been removed")
