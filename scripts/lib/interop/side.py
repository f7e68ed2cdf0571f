"""Pollux's side of a row, its peers, and the counts that both must have."""

import json
import sys
import time
from pathlib import Path

from lib import testbed
from lib.needs import Skip
from lib.testbed import Process, Testpmd, check, need, need_cpus

SMALL = "64,65,128,333,512,1024,1518"
JUMBO = "64,128,1518,2048,4096,9018"

# Changes that the peer makes to a frame before it returns it.
FORWARDED, SWAPPED = ("--returned", "forwarded"), ("--returned", "swapped")
REPLY = ("--returned", "reply")

# For ever, as far as a row is concerned.
ENDLESS = ("--tolerate-loss", "--seconds", 600)

# A socket that returns its datagrams, and prints their number for each line of input. A
# line and its end are written at once: print() would let another line come between them.
ECHO = """
import socket, sys, threading
n, s = 0, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
s.bind(('10.77.0.1', 9000))
def tell():
    for _ in sys.stdin:
        sys.stdout.write(f'{n}\\n')
threading.Thread(target=tell, daemon=True).start()
sys.stdout.write('ready\\n')
while True:
    data, sender = s.recvfrom(65536)
    n += 1
    s.sendto(data, sender)
"""


class Cannot(Skip):
    """The peer is not made for this, wherever it runs."""


def sizes(variant):
    return JUMBO if "jumbo" in variant else SMALL


def queues(variant):
    return 2 if "2 queues" in variant else 1


def mtu(variant):
    return 9000 if "jumbo" in variant else 1500


class Run:
    """One run: where programs and temporary files are, and how many frames a row moves."""

    def __init__(self, binaries, temp, count):
        self.binaries, self.temp, self.count = binaries, Path(temp), count

    def file(self, kind):
        """A path that nothing is at."""
        return self.temp / f"{testbed.name()}.{kind}"

    def words(self, variant, *more, count=None):
        """Our side's command."""
        return [self.binaries / "pollux-interop", *more, "--count", count or self.count,
                "--sizes", sizes(variant), "--queues", queues(variant),
                "--patience", testbed.PATIENCE // 2,
                # A port of DPDK may require frames in one segment.
                *(["--data-room", 16384] if "jumbo" in variant and "dpdk:" in str(more) else [])]

    def endless(self, variant, *more):
        """Our side's command: it echoes until it is ended, whatever is lost."""
        return self.words(variant, "echo", *more, *ENDLESS, count=1 << 40)

    def ours(self, variant, *more, prefix=(), may_fail=False):
        """Runs our side to its end; its report."""
        with Process([*prefix, *self.words(variant, *more)]) as ours:
            return self.report(ours, may_fail)

    def report(self, ours, may_fail=False):
        """The report of Pollux's side at its end, which must be good."""
        status = ours.wait(2 * testbed.PATIENCE)
        said = (ours.complained().strip().splitlines() or [""])[-1]
        if "no driver `" in said or "built without DPDK" in said:
            raise Skip("built without that driver: " + said.removeprefix("error: "))
        check(said or "no report", ours.said())
        report = json.loads(ours.said().splitlines()[-1])
        statistics = report.pop("statistics")
        summary = ", ".join(f"{key} {value}" for key, value in report.items())
        report["statistics"] = dict(statistics)
        check(f"{said}: {summary}", status == 0 or may_fail)
        check("our ledger does not balance: " + report["ledger"], report["balanced"])
        return report


class Echo(Process):
    """A kernel socket that returns the datagrams that it receives."""

    def __init__(self, prefix):
        super().__init__([*prefix, sys.executable, "-u", "-c", ECHO])

    def __enter__(self):
        self.until("the echo server did not start", lambda: "ready\n" in self.said())
        return self

    def returned(self):
        """How many frames it has sent back so far."""
        before = self.said().count("\n")
        self.say("")
        self.until("the echo server does not answer", lambda: self.said().count("\n") > before)
        return int(self.said().split()[-1])

    def kill(self):
        super().kill()
        # Idle for longer than a busy machine delays a process. testpmd takes as long to start.
        time.sleep(1)


class Forwarder(Testpmd):
    """testpmd, which returns the frames that it receives."""

    def returned(self):
        """How many frames it has sent back so far."""
        return sum(value for figure, value in self.show() if figure == "TX-packets")


def testpmd(vdevs, variant, mode="io", **more):
    """testpmd with the variant's number of queues and size of buffers."""
    need("dpdk-testpmd")
    need_cpus(2)
    options = [f"--rxq={queues(variant)}", f"--txq={queues(variant)}", "--rxd=512", "--txd=512",
               "--no-flush-rx", *more.pop("options", ())]
    if "jumbo" in variant:
        # Buffers that hold a whole frame: several of these drivers claim, and check, no more than
        # 1518 bytes, and copy what fits.
        options += ["--mbuf-size=17408"]
    # Most of a row's time would be the clearing of more memory. net_af_xdp takes 2048 buffers for
    # each queue at once.
    memory = ("--no-huge", "-m", 192 if "jumbo" in variant else 64)
    return Forwarder(vdevs, mode, memory=memory, mbufs=8192, options=options, **more)


def await_traffic(peer):
    """Waits until a peer has sent back some thousand frames more."""
    before = peer.returned()
    peer.until("no traffic came", lambda: peer.returned() > before + 2000)


def settled(peer):
    """How many frames a peer has sent back, once it has seen all that it was sent."""
    limit, seen = time.monotonic() + testbed.PATIENCE, []
    while len(set(seen[-5:])) != 1 or len(seen) < 5:
        check("frames arrive without a sender", time.monotonic() < limit)
        time.sleep(0.02)
        seen.append(peer.returned())
    return seen[-1]


def has_echoed(peer, count):
    """testpmd has returned all frames, by its own count."""
    seen = peer.counters
    # It would also count frames of other stations' protocols; there are none.
    check(f"testpmd received {seen['RX-packets']} and sent {seen['TX-packets']} of {count}",
          seen["RX-packets"] == seen["TX-packets"] == count)
    if peer.mode == "csum":
        wrong = [seen["Bad-ipcsum"], seen["Bad-l4csum"]]
        check(f"testpmd counts {wrong[0]} wrong checksums of IP and {wrong[1]} of UDP", wrong == [0, 0])


def came_back(report, peer):
    """All frames that a peer has returned since its restart have arrived."""
    after, returned = report["received_after_silence"], settled(peer)
    check(f"of {returned} frames that came back from the peer's second life, our side counts {after}, "
          f"after {report['longest_silence_ms']} ms of silence",
          after == returned > 0 and report["longest_silence_ms"] > 50)


def echo_against_testpmd(run, port, peer, variant, ours=(), prefix=()):
    """Frames go to testpmd, which sends them back; both count the same."""
    with peer:
        report = run.ours(variant, "echo", "--port", port, *ours, prefix=prefix)
    has_echoed(peer, run.count)
    return report["received"]


def echo_against_socket(run, port, variant, here, there):
    with Echo(there.inside) as peer:
        report = run.ours(variant, "echo", *REPLY, "--port", port, prefix=here.inside)
        echoed = peer.returned()
    check(f"the socket echoed {echoed} of {run.count}", echoed == run.count)
    return report["received"]
