#!/usr/bin/env python3
"""Compares two RDMA endpoints in a virtual machine: Pollux's on a NIC by VFIO, and the kernel's
(rdma_rxe) on a NIC like it. See `scripts/lib/rdma/guest_rows.py --help`."""

import argparse
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

# pylint: disable=wrong-import-position
from lib import cargo, testbed
from lib.guest import VIRTIO
from lib.needs import Failure, new_file, report
from lib.rxe.machine import Machine, image, wire
from lib.testbed import Process, check

HELP = """\
Measures two rows in one boot of a virtual machine, in turns with Pollux's endpoint in the machine
(`pollux rdma ping` on a virtio NIC by VFIO) and with the kernel's (rdma_rxe on another virtio NIC, with
perftest):

  guest_write_bw  MB/s of WRITEs of 64 KiB to the host, as ib_write_bw
  guest_send_lat  us one way of SENDs of 64 B to and fro, as ib_send_lat: mean of the run

The other end of both is `pollux rdma serve` on the host, on the port `unix`. It checks what Pollux's
end sends. Medians of the turns; the jitter is the distance of the best and the worst turn, as a part
of the median. The machine is emulated (TCG), with one CPU. The kernel's NIC needs no IOMMU, ours is
behind one. Needs the programs of scripts/rdma-interop. Run nothing else."""

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


class Row(NamedTuple):
    """A row: program, bytes and number of messages, and the column of perftest's table."""
    name: str
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


ROWS = [Row("guest_write_bw", "ib_write_bw", 65536, 500, "MB/s", 3),
        Row("guest_send_lat", "ib_send_lat", 64, 3000, "us", 5)]


class Guest:
    """The machine, and a socket of the host's end for each of its NICs."""

    def __init__(self, folder, temp, program):
        self.program, self.temp = program, Path(temp)
        system = image(folder, self.temp / "files", {"pollux": program}, ["vfio_pci"])
        ours = ["-device", "pcie-root-port,id=rp,chassis=1", *wire("ours", *self.ends("ours")),
                "-device", f"{VIRTIO},netdev=ours,bus=rp,mac={OURS_MAC}"]
        self.machine = Machine(folder / "guest-rows.log", system, *self.ends("peer"), PEER_MAC, PEER_IP,
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

    def turn(self, row, side, mtu):
        """A figure of a side."""
        machine, host = self.ends(side)
        shape = f"--as {row.program} --mtu {mtu} --bytes {row.bytes} --count {row.count} --timeout {TIMEOUT}"
        serve = [self.program, "rdma", "serve", f"unix:{host},peer={machine},mac={HOST_MAC}", "--ip", HOST_IP,
                 "--at", "127.0.0.1:0", "--patience", TURN, "--idle", "sleep=16", "--json", *shape.split()]
        with Process(serve) as server:
            server.until("the server is not ready", lambda: "ready at" in server.said())
            port = re.search(r"ready at \S+:(\d+)", server.said())[1]
            if side == "ours":
                words = f"pollux rdma ping pci:{DEVICE} --ip {OURS_IP} --at {GATEWAY}:{port} {shape} --json"
                figure = row.ours(json.loads(self.machine.must(words, TURN)))
            else:
                words = (f"{row.program} -d rxe0 -x 1 -F -s {row.bytes} -m {mtu} -n {row.count} -u {TIMEOUT}"
                         f" -p {port} {GATEWAY}")
                figure = row.peer(self.machine.must(words, TURN))
            status, said = server.wait(TURN), server.said()
            check(f"server: status {status}: {(said + server.complained()).strip()[-300:]}", status == 0)
            checked = json.loads(said[said.index("{"):])["checked"]
            check("the host's end has compared nothing of ours", checked or side == "peer")
        return figure


def jitter(figures):
    return (max(figures) - min(figures)) / statistics.median(figures)


def rows(rounds=5, only="", mtu=4096, binary=None):
    """The rows, as they are measured."""
    folder = cargo.target_directory() / "qemu"
    folder.mkdir(parents=True, exist_ok=True)
    binaries = binary or cargo.release("-p", "pollux", "--bin", "pollux")
    with tempfile.TemporaryDirectory(prefix="pollux-rdma.") as temp:
        with Guest(folder, temp, binaries / "pollux") as guest:
            for row in (row for row in ROWS if only in row.name):
                sides = {"ours": [], "peer": []}
                for _ in range(rounds):
                    for side, figures in sides.items():
                        figures.append(guest.turn(row, side, mtu))
                yield {"name": row.name, "bytes": row.bytes, "unit": row.unit,
                       **{side: statistics.median(figures) for side, figures in sides.items()},
                       "jitter": {side: jitter(figures) for side, figures in sides.items()},
                       "runs": sides}


def show(row):
    """A row as text."""
    jitters = row["jitter"]
    print(f"{row['name']:16} {row['bytes']:6} B  ours {row['ours']:9.2f}  peer {row['peer']:9.2f} {row['unit']:5}"
          f"  ours/peer {row['ours'] / row['peer']:5.2f}  jitter {jitters['ours']:.0%} and {jitters['peer']:.0%}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", type=new_file,
                        help="write {rows: [{name, bytes, ours, peer, unit, jitter, runs}]}, or why there are none")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (%(default)s)")
    parser.add_argument("--only", metavar="TEXT", default="", help="rows whose name contains TEXT")
    parser.add_argument("--mtu", type=int, default=4096, help="bytes of data in a packet (%(default)s)")
    parser.add_argument("--bin", type=Path, help="where pollux is (default: built)")
    args = parser.parse_args()
    with report(args.json) as found:
        for row in rows(args.rounds, args.only, args.mtu, args.bin and args.bin.resolve()):
            found["rows"].append(row)
            show(row)
    if not found["rows"] and "skipped" not in found:
        raise Failure(f"no row contains `{args.only}`: there are {', '.join(row.name for row in ROWS)}")


if __name__ == "__main__":
    testbed.run(main)
