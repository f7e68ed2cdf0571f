"""Rows of RDMA programs against Pollux's endpoint: the programs run in a machine whose kernel is an
endpoint, and a wire between both ends records what they send, and harms it."""

import re
import shutil
import socket
import time
from pathlib import Path
from typing import NamedTuple

from lib import testbed
from lib.needs import Failure, Skip
from lib.rdma import icrc
from lib.rdma.captures import frames
from lib.rxe.machine import Machine, image
from lib.rxe.tee import Faults, Tee
from lib.testbed import Process, check

# Addresses of both ends, and the host as the machine sees it.
OURS, PEER, HOST = "192.168.77.1", "192.168.77.2", "10.0.2.2"
OUR_MAC, PEER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
# The TCP port of the machine's servers.
PORT = 18515
# That of rping, of the connection manager.
RPING = 7174

HARM = {"": Faults(), "1 % loss": Faults(loss=0.01), "reordering": Faults(reorder=0.05),
        "duplication": Faults(duplicate=0.05), "corruption": Faults(corrupt=0.01)}

# Time-outs of 0.27 s: an emulated machine is slow.
TIMEOUT = 16
# Seconds for a row's programs.
ROW = 60


class Program(NamedTuple):
    """A program of others: how it finds its peer, what it does, and how often by default."""
    exchange: str
    operation: str
    count: int


PROGRAMS = {
    "ibv_rc_pingpong": Program("pingpong", "send", 100), "ibv_uc_pingpong": Program("pingpong", "send", 100),
    "ib_send_bw": Program("perftest", "send", 200), "ib_send_lat": Program("perftest", "send", 200),
    "ib_write_bw": Program("perftest", "write", 200), "ib_write_lat": Program("perftest", "write", 200),
    "ib_read_bw": Program("perftest", "read", 200), "ib_read_lat": Program("perftest", "read", 200),
    "rping": Program("cm", "rping", 50),
}


class Row(NamedTuple):
    ours: str
    peer: str
    size: int
    mtu: int = 1024
    service: str = "RC"
    harm: str = ""
    cm: bool = False

    @property
    def variant(self):
        size = f"{self.size >> 20} MiB" if self.size >= 1 << 20 else f"{self.size} B"
        return ", ".join(filter(None, [size, f"MTU {self.mtu}", self.service, "-R" if self.cm else "", self.harm]))

    @property
    def program(self):
        return PROGRAMS[self.peer]

    @property
    def count(self):
        return 20 if self.size >= 1 << 20 else self.program.count


def rows():
    found = []
    for role in ("server", "client"):
        def add(peer, *sizes, role=role, **more):
            found.extend(Row(role, peer, size, **more) for size in sizes)
        add("ibv_rc_pingpong", 1, 4096)
        add("ibv_rc_pingpong", 65536, 1 << 20, mtu=4096)
        for harm in filter(None, HARM):
            add("ibv_rc_pingpong", 16384, harm=harm)
        add("ibv_uc_pingpong", 4096, service="UC")
        add("ibv_uc_pingpong", 65536, mtu=4096, service="UC")
        for operation in ("send", "write", "read"):
            add(f"ib_{operation}_bw", 1, 65536)
            add(f"ib_{operation}_bw", 1 << 20, mtu=4096)
            add(f"ib_{operation}_bw", 65536, harm="1 % loss")
            add(f"ib_{operation}_lat", 8, 65536 if operation == "read" else 4096)
            if operation != "read":
                add(f"ib_{operation}_bw", 65536, mtu=4096, service="UC")
                add(f"ib_{operation}_lat", 8, service="UC")
        for harm in ("reordering", "duplication", "corruption"):
            add("ib_write_bw", 65536, mtu=4096, harm=harm)
        add("ib_read_bw", 65536, mtu=4096, harm="reordering")
        add("ib_write_bw", 65536, cm=True)
        add("rping", 64, 4096, 65535)
        add("rping", 4096, harm="1 % loss")
    return found


def peer_words(row, server):
    """The program in the machine, as the server or against one."""
    if row.program.exchange == "cm":
        return f"rping {'-s -a ' + PEER if server else '-c -a ' + OURS} -V -S {row.size} -C {row.count}"
    at = "" if server else OURS if row.cm else HOST
    if row.program.exchange == "pingpong":
        return f"{row.peer} -d rxe0 -g 1 -c -s {row.size} -m {row.mtu} -n {row.count} -p {{port}} {at}"
    return (f"{row.peer} -d rxe0 -x 1 -F -s {row.size} -m {row.mtu} -n {row.count} -c {row.service}"
            f" -u {TIMEOUT}{' -R' if row.cm else ''} -p {{port}} {at}")


# Our program's command for each role.
COMMANDS = {"server": "serve", "client": "ping"}


def our_words(row, wire, tcp):
    """Our program: `tcp` is where it listens, or connects to, for an exchange over TCP."""
    if row.cm or row.program.exchange == "cm":
        tcp = f"{OURS if row.ours == 'server' else PEER}:{PORT if row.cm else RPING}"
    return ["rdma", COMMANDS[row.ours], "--port", wire, "--ip", OURS, "--at", tcp, "--as", row.peer,
            "--kind", row.service.lower(), "--mtu", row.mtu, "--bytes", row.size, "--count", row.count,
            "--timeout", TIMEOUT, "--patience", ROW, *(["--cm"] if row.cm else [])]


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Pollux:
    """Our end: a program of Pollux on the port `unix`, started for each row."""

    def __init__(self, program, near, far):
        self.program, self.wire = program, f"unix:{near},peer={far},mac={OUR_MAC}"

    def start(self, row, tcp):
        return Process([self.program, *our_words(row, self.wire, tcp)])

    @staticmethod
    def ready(process, _row):
        process.until("our server is not ready", lambda: "ready" in process.said())

    @staticmethod
    def finish(process):
        status = process.wait(ROW)
        check(f"ours: status {status}: {(process.said() + process.complained()).strip()[-300:]}", status == 0)


class Kernel:
    """Another machine in our place: which rows does the kernel pass against itself?"""

    def __init__(self, machine, forward):
        self.machine, self.forward = machine, forward

    def start(self, row, tcp):
        """As the client it connects to the host, which passes it on."""
        server = row.ours == "server"
        words = peer_words(row, server).replace(OURS, "here").replace(PEER, OURS).replace("here", PEER)
        port = PORT if server else tcp.rsplit(":", maxsplit=1)[1]
        return Command(self.machine, words.format(port=PORT if row.cm else port))

    def ready(self, _process, row):
        listens(self.machine, row)

    @staticmethod
    def finish(process):
        done = process.machine.finish(process.number, ROW + 30)
        check(f"in our place: {complaint(done)}", done.status == 0)


class Command:
    """A program in a machine; its context has no end of its own: it is killed after its time."""

    def __init__(self, machine, words):
        self.machine, self.number = machine, machine.start(words, ROW)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def complaint(done):
    """Status and last words of a program that failed; perftest prints a table around them."""
    lines = done.output.strip().splitlines()
    words = [line.strip() for line in lines if re.search("(?i)fail|error|cannot|couldn't|mismatch", line)]
    return f"status {done.status}: {' | '.join(words or lines[-3:])[-300:]}"


def listens(machine, row):
    """Waits for the server in a machine."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        if row.cm or row.program.exchange == "cm":
            if "LISTEN" in machine.must("rdma resource show cm_id"):
                return
        elif f":{PORT:04X} 00000000:0000 0A" in machine.must("cat /proc/net/tcp"):
            return
        time.sleep(0.2)
    raise Failure("the server in the machine does not listen")


class Bench:
    """The machine, its wire, and our end of it. A machine that does not answer is replaced."""

    def __init__(self, folder, temp, program):
        self.folder, self.temp, self.program = folder, Path(temp), program
        self.system = image(folder, self.temp / "files")
        self.machines, self.forward = {}, free_port()

    def socket(self, name):
        return self.temp / name

    def machine(self, name, mac, address, forward):
        if name not in self.machines:
            log = self.folder / f"rdma-interop-{name}.log"
            started = Machine(log, self.system, self.socket(f"{name}.machine"), self.socket(f"{name}.wire"),
                              mac, address, {forward: PORT})
            self.machines[name] = started.__enter__()  # ended by `end`
        return self.machines[name]

    def end(self):
        for machine in self.machines.values():
            machine.end()
        self.machines = {}

    def run(self, row, seed):
        """A row: the packets that were sent, and those that were sent again."""
        capture = self.temp / "row.pcap"
        ends = [(self.socket(f"{name}.wire"), self.socket(f"{name}.machine")) for name in ("peer", "ours")]
        with Tee(ends, capture, HARM[row.harm], seed):
            peer = self.machine("peer", PEER_MAC, PEER, self.forward)
            if self.program:
                ours = Pollux(self.program, self.socket("ours.machine"), self.socket("ours.wire"))
                forward = free_port()
            else:
                forward = self.forward + 1
                ours = Kernel(self.machine("ours", OUR_MAC, OURS, forward), forward)
            if row.ours == "server":
                tcp = f"127.0.0.1:{forward}"
                with ours.start(row, tcp) as process:
                    ours.ready(process, row)
                    words = peer_words(row, False).format(port=PORT if row.cm else forward)
                    done = peer.run(words, ROW)
                    check(f"peer: {complaint(done)}", done.status == 0)
                    ours.finish(process)
            else:
                server = Command(peer, peer_words(row, True).format(port=PORT))
                listens(peer, row)
                tcp = f"{'127.0.0.1' if self.program else HOST}:{self.forward}"
                failed = ""
                with ours.start(row, tcp) as process:
                    try:
                        ours.finish(process)
                    except Failure as why:
                        failed = f"{why}; "
                done = peer.finish(server.number, ROW + 30)
                check(f"{failed}peer: {complaint(done)}", done.status == 0 and not failed)
        return judge(capture)


def judge(capture):
    """All packets are well formed, and have the right ICRC; how many, and how many were repeated."""
    count, bad = icrc.wrong(capture)
    check(f"{len(bad)} of {count} packets have a wrong ICRC, the first is frame {bad[:1]}", not bad)
    check("no packet was sent", count)
    if not shutil.which("tshark"):
        raise Skip("no tshark: apt-get install tshark")
    said = testbed.must(["tshark", "-r", capture, "-Y", "_ws.malformed", "-T", "fields",
                         "-e", "frame.protocols", "-e", "frame.number"])
    # Of what the data of a message are it makes a guess, such as RPC over RDMA, which may be malformed.
    malformed = re.findall(r":infiniband\t(\d+)$", said, re.MULTILINE)
    check(f"malformed, says tshark: frames {', '.join(malformed[:5])}", not malformed)
    return count, repeated(capture)


def repeated(capture):
    """Packets that are an earlier one again, but for ACKs and CNPs: same ends, operation, sequence number and
    data."""
    seen, again = set(), 0
    for _, frame in frames(capture):
        packet = icrc.roce_packet(frame)
        if packet is None or packet[28] & 0x1f == 0x11 or packet[28] == 0x81:
            continue
        # Without what may differ: the byte of the ACK request.
        key = (packet[12:20], packet[28:36], packet[37:-4])
        again += key in seen
        seen.add(key)
    return again
