"""Rows of scripts/compare-rdma: both sides in turns, their medians, and what the project requires of them."""

import json
import statistics
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Callable

from lib import testbed
from lib.needs import Failure
from lib.testbed import check


@dataclass(frozen=True)
class Bar:
    """What is required: the ratio of ours to the peer's, at least or at most, and a rate of ours that is wanted."""
    ratio: float
    at_most: bool = False
    wanted: float | None = None

    def is_met(self, ratio):
        return ratio <= self.ratio if self.at_most else ratio >= self.ratio

    def text(self, unit):
        wanted = f", {self.wanted:g} {unit} wanted" if self.wanted else ""
        return f"{'<=' if self.at_most else '>='} {self.ratio:g} x{wanted}"


@dataclass(frozen=True)
class Row:
    """`measure(setup, bytes)` returns the turns of ours and those of the peer; it may raise Skip."""
    name: str
    bytes: int
    unit: str
    peer: str
    bar: Bar
    measure: Callable

    def title(self):
        return f"{self.name} {self.bytes}"


@dataclass(frozen=True)
class Setup:
    """What rows are measured with: folder of the built programs, two CPUs, turns of each side and their seconds; and
    what several rows share, which ends with `stack`."""
    programs: object
    cores: tuple
    rounds: int
    seconds: float
    stack: ExitStack
    kept: dict = field(default_factory=dict)

    def shared(self, name, make):
        """What the context manager of `make` enters, once for all rows."""
        if name not in self.kept:
            self.kept[name] = self.stack.enter_context(make())
        return self.kept[name]

    def bench(self, *words):
        """Runs `pollux rdma bench` for a turn; its only row."""
        found = run(self.programs / "pollux", "rdma", "bench", *words, "--trial", self.seconds,
                    "--cores", ",".join(map(str, self.cores)), "--json")
        check(f"pollux rdma bench {words}: {found}", found["complete"] and len(found["rows"]) == 1)
        rdma = found["rdma"] or {"retransmitted": 0}
        check(f"pollux rdma bench {words}: packets were lost: {rdma}", rdma["retransmitted"] == 0)
        return found["rows"][0]

    def peer(self, size, *words, prefix=(), cores=None):
        """The command of a peer."""
        return [*prefix, self.programs / "compare-rdma", "--cores", ",".join(map(str, cores or self.cores)),
                "--bytes", size, "--seconds", self.seconds, *words]

    def turns(self, ours, peer):
        """Turns of both sides by turns, after one of each that warms up."""
        sides = ([], [])
        for turn in range(self.rounds + 1):
            for measure, side in zip((ours, peer), sides):
                figure = measure()
                if turn:
                    side.append(figure)
        return sides


def run(*words):
    """Runs a program that prints JSON to its end."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=4 * testbed.PATIENCE)
    if done.returncode:
        raise Failure(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


@contextmanager
def background(words):
    """A program that prints JSON while another runs; `result()` waits for its end."""
    with testbed.Process(words) as process:
        def result():
            status = process.wait()
            check(f"{words}: {process.complained()}", status == 0)
            return json.loads(process.said())

        yield result


def jitter(turns):
    """The greatest distance of a turn from the median, as a share of it."""
    middle = statistics.median(turns)
    return max(abs(turn - middle) for turn in turns) / middle


def result(row, ours, peer):
    """A row of the report."""
    medians = statistics.median(ours), statistics.median(peer)
    ratio = medians[0] / medians[1]
    return {"name": row.name, "bytes": row.bytes, "ours": medians[0], "peer": medians[1], "unit": row.unit,
            "peer_name": row.peer, "ratio": ratio, "jitter": {"ours": jitter(ours), "peer": jitter(peer)},
            "bar": row.bar.text(row.unit), "met": row.bar.is_met(ratio), "turns": {"ours": ours, "peer": peer}}
