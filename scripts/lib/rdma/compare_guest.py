"""Rows of scripts/compare-rdma in a virtual machine: Pollux's endpoint on a NIC by VFIO, and the kernel's (rdma_rxe)
on a NIC like it.

Both are measured in one boot, in turns: `pollux rdma ping` in the machine, and perftest. The other end of both is
`pollux rdma serve` on the host, on the port `unix`, which compares the data that our end sends. The machine is emulated
(TCG), with one CPU. The kernel's NIC needs no IOMMU, ours is behind one.
"""

import json
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lib import cargo
from lib.guest import VIRTIO
from lib.rdma.compare import Bar, Row
from lib.rxe.machine import Machine, image, wire
from lib.testbed import Process, check

# Of the host's end, and of both NICs of the machine.
HOST_IP, HOST_MAC = "192.168.77.1", "02:00:00:00:00:01"
PEER_IP, PEER_MAC = "192.168.77.2", "02:00:00:00:00:02"
OURS_IP, OURS_MAC = "192.168.77.3", "02:00:00:00:00:03"
# Our NIC is the only device behind the only port of the root complex.
DEVICE = "0000:01:00.0"
# The host, as the machine's TCP sees it.
GATEWAY = "10.0.2.2"

# 0.27 s: an emulated machine is slow, and nothing is lost.
TIMEOUT = 16
# Seconds for a turn.
TURN = 60

# The kernel's NIC does without the IOMMU, ours is behind it. With two CPUs, which QEMU emulates by turns,
# a program that polls would take the time of those that it waits for.
PARAMETERS = "intel_iommu=on iommu.passthrough=1 hugepages=128 maxcpus=1"
# Bytes of data in a packet.
MTU = 4096

PEER = "rdma_rxe in the same machine, with perftest"


@dataclass(frozen=True)
class Tool:
    """A program of perftest: bytes and number of messages, and the column of its table."""
    program: str
    bytes: int
    count: int
    unit: str
    column: int

    def ours(self, report):
        """The figure in a report of ours."""
        seconds, count = report["seconds"], report["messages"]
        return self.bytes * count / seconds / 1e6 if self.unit == "MB/s" else seconds / count / 2 * 1e6

    def peer(self, table):
        """The figure in perftest's table, whose MB are of 2^20 bytes."""
        found = re.search(rf"^ *{self.bytes} +{self.count} +.*$", table, re.MULTILINE)
        check(f"{self.program}: no figures in {table.strip()[-300:]}", found)
        figure = float(found[0].split()[self.column])
        return figure * (1 << 20) / 1e6 if self.unit == "MB/s" else figure


class Guest:
    """The machine, and a socket of the host's end for each of its NICs."""

    def __init__(self, program, temp):
        self.program, self.temp = program, Path(temp)
        folder = cargo.target_directory() / "qemu"
        folder.mkdir(parents=True, exist_ok=True)
        system = image(folder, self.temp / "files", {"pollux": program}, ["vfio_pci"])
        ours = ["-device", "pcie-root-port,id=rp,chassis=1", *wire("ours", *self.ends("ours")),
                "-device", f"{VIRTIO},netdev=ours,bus=rp,mac={OURS_MAC}"]
        self.machine = Machine(folder / "compare-rdma.log", system, *self.ends("peer"), PEER_MAC, PEER_IP,
                               devices=ours, parameters=PARAMETERS)

    def __enter__(self):
        self.machine.__enter__()
        try:
            self.machine.must(f"pollux bind {DEVICE}")
        except BaseException:
            self.machine.end()
            raise
        return self

    def __exit__(self, *_):
        self.machine.end()

    def ends(self, side):
        """The sockets of a NIC, and of the host's end of its wire."""
        return self.temp / f"{side}.machine", self.temp / f"{side}.host"

    def turn(self, tool, side):
        """A figure of a side."""
        machine, host = self.ends(side)
        shape = f"--as {tool.program} --mtu {MTU} --bytes {tool.bytes} --count {tool.count} --timeout {TIMEOUT}"
        serve = [self.program, "rdma", "serve", f"unix:{host},peer={machine},mac={HOST_MAC}", "--ip", HOST_IP,
                 "--at", "127.0.0.1:0", "--patience", TURN, "--idle", "sleep=16", "--json", *shape.split()]
        with Process(serve) as server:
            server.until("the server is not ready", lambda: "ready at" in server.said())
            port = re.search(r"ready at \S+:(\d+)", server.said())[1]
            if side == "ours":
                words = f"pollux rdma ping pci:{DEVICE} --ip {OURS_IP} --at {GATEWAY}:{port} {shape} --json"
                figure = tool.ours(json.loads(self.machine.must(words, TURN)))
            else:
                words = (f"{tool.program} -d rxe0 -x 1 -F -s {tool.bytes} -m {MTU} -n {tool.count} -u {TIMEOUT}"
                         f" -p {port} {GATEWAY}")
                figure = tool.peer(self.machine.must(words, TURN))
            status, said = server.wait(TURN), server.said()
            check(f"server: status {status}: {(said + server.complained()).strip()[-300:]}", status == 0)
            checked = json.loads(said[said.index("{"):])["checked"]
            check("the host's end has compared nothing of ours", checked or side == "peer")
        return figure


def measure(tool):
    """How a row is measured: all rows in one boot."""
    def boot(setup):
        temp = setup.shared("temp", lambda: tempfile.TemporaryDirectory(prefix="pollux-rdma."))
        return Guest(setup.programs / "pollux", temp)

    def turns(setup, _size):
        guest = setup.shared("guest", lambda: boot(setup))
        return setup.turns(lambda: guest.turn(tool, "ours"), lambda: guest.turn(tool, "peer"))

    return turns


def rows():
    write, send = Tool("ib_write_bw", 65536, 500, "MB/s", 3), Tool("ib_send_lat", 64, 3000, "us", 5)
    return [Row("guest_write_bw", write.bytes, write.unit, PEER, Bar(2), measure(write)),
            Row("guest_send_lat", send.bytes, send.unit, PEER, Bar(0.5, at_most=True), measure(send))]
