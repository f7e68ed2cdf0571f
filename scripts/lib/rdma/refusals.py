"""Cases in which the peer requests what it may not, or sends what no endpoint takes."""

import struct

from lib.rdma.cases import case, family
from lib.rdma.packets import (ACCESS, ADD, INVALID, NAK, READ, RNR, SEND_FIRST, SEND_LAST, SEND_LAST_INV, SEND_MIDDLE,
                              SEND_ONLY, SEND_ONLY_INV, SWAP, UC, WRITE_FIRST, WRITE_LAST, WRITE_MIDDLE, WRITE_ONLY,
                              WRITE_ONLY_IMM, reth)
from lib.rdma.rocepeer import SENDS, STRANGER, pattern


def neighbour_goes_on(play, region):
    """Another queue pair of the endpoint is not touched by the failure of the first."""
    other = play.qp()
    other.write(region, 0, pattern(300, 77))


def fails(play, qp, region, code, psn=None):
    """The NAK, and silence behind it."""
    qp.expect(NAK | code, qp.psn if psn is None else psn)
    last = qp.psn if psn is None else psn
    for place in range(3):
        qp.packet(WRITE_ONLY, last + place, pattern(4, 9), extended=reth(region.address, region.key, 4), ack=True)
    neighbour_goes_on(play, region)


# What is wrong with the range: offset from the region's beginning, length, difference of the key.
RANGES = {
    "key": (0, 8, 1), "one byte before": (-1, 8, 0), "one byte behind": (4089, 8, 0),
    "all of it and a byte": (0, 4097, 0), "far behind": (1 << 40, 1, 0),
}


@family("WRITE outside:", RANGES)
def write_outside(play, name):
    at, length, key = RANGES[name]
    region, qp = play.region(4096), play.qp(mtu=4096)
    data = pattern(min(length, 4096))
    operation = WRITE_ONLY if length <= 4096 else WRITE_FIRST
    qp.packet(operation, qp.psn, data, extended=reth(region.address + at, region.key + key, length), ack=True)
    play.drop("access")
    fails(play, qp, region, ACCESS)


@family("READ outside:", RANGES)
def read_outside(play, name):
    at, length, key = RANGES[name]
    region, qp = play.region(4096), play.qp(mtu=4096)
    qp.packet(READ, qp.psn, extended=reth(region.address + at, region.key + key, length), ack=True)
    fails(play, qp, region, ACCESS)


@family("beyond 2^64:", ("WRITE", "READ"))
def beyond_the_last_address(play, what):
    """Address and length add up to a number that wraps: to one within a region that begins at 0."""
    region, qp = play.region(4096, address=0), play.qp(mtu=4096)
    qp.write(region, 0, pattern(96))
    extended = reth((1 << 64) - 8, region.key, 97)
    if what == "WRITE":
        qp.packet(WRITE_ONLY, qp.psn, pattern(97, 1), extended=extended, ack=True)
    else:
        qp.packet(READ, qp.psn, extended=extended, ack=True)
    fails(play, qp, region, ACCESS)


@family("no right to", ("WRITE", "READ"))
def no_right(play, what):
    given = {"WRITE": ["read"], "READ": ["write"]}[what]
    free = play.region()
    region, qp = play.region(access=given, contents=pattern(64)), play.qp()
    extended = reth(region.address, region.key, 8)
    if what == "WRITE":
        qp.packet(WRITE_ONLY, qp.psn, pattern(8, 1), extended=extended, ack=True)
    else:
        qp.packet(READ, qp.psn, extended=extended, ack=True)
    fails(play, qp, free, ACCESS)


@case
def a_region_without_rights(play):
    """No peer may use it."""
    free = play.region()
    region, qp = play.region(access=()), play.qp()
    qp.packet(WRITE_ONLY, qp.psn, pattern(8), extended=reth(region.address, region.key, 8), ack=True)
    fails(play, qp, free, ACCESS)


@family("not ready, and", ("WRITE ONLY with immediate", "WRITE LAST with immediate", "SEND ONLY", "SEND FIRST"))
def not_ready_and_wrong(play, name):
    """Without a receive a request waits; when it comes again it may be wrong, and is refused then."""
    region, qp = play.region(contents=pattern(8192)), play.qp()
    number = b"\0\0\0\7"
    operation, data, extended = {
        "WRITE ONLY with immediate": (WRITE_ONLY_IMM, pattern(8), reth(region.address, region.key, 8) + number),
        "WRITE LAST with immediate": (9, pattern(300)[256:], number),
        "SEND ONLY": (SEND_ONLY, pattern(8), b""), "SEND FIRST": (SEND_FIRST, pattern(256), b""),
    }[name]
    if "LAST" in name:
        qp.packet(WRITE_FIRST, qp.psn, pattern(256), extended=reth(region.address, region.key, 300))
        qp.psn += 1
    qp.packet(operation, qp.psn, data, extended=extended, ack=True)
    qp.expect(RNR | 12, qp.psn)
    play.drop("not-ready")
    play.wait(1000)
    # Now of another kind, which cannot follow.
    qp.packet(SEND_MIDDLE, qp.psn, pattern(256), ack=True)
    fails(play, qp, region, INVALID)


@case
def an_immediate_with_a_bad_key_takes_no_receive(play):
    """The receive is flushed with the queue pair, not used up."""
    region, qp = play.region(), play.qp(receives=1)
    extended = reth(region.address, region.key ^ 1, 8) + b"\0\0\0\7"
    qp.packet(WRITE_ONLY_IMM, qp.psn, pattern(8), extended=extended, ack=True)
    play.complete(qp, "received", "send", "flushed")
    qp.expect(NAK | ACCESS, qp.psn)
    play.drop("access")
    neighbour_goes_on(play, region)


def parts(region):
    """Packets by name: operation, data, extended header."""
    head = reth(region.address, region.key, 768)
    return {
        "WRITE FIRST": (WRITE_FIRST, 256, head), "WRITE MIDDLE": (WRITE_MIDDLE, 256, b""),
        "WRITE LAST": (WRITE_LAST, 256, b""), "WRITE ONLY": (WRITE_ONLY, 4, reth(region.address, region.key, 4)),
        "SEND FIRST": (SEND_FIRST, 256, b""), "SEND MIDDLE": (1, 256, b""), "SEND LAST": (SEND_LAST, 256, b""),
        "SEND ONLY": (SEND_ONLY, 4, b""), "READ": (READ, 0, reth(region.address, region.key, 4)),
    }


SEQUENCES = ("WRITE MIDDLE", "WRITE LAST", "SEND MIDDLE", "SEND LAST", "WRITE FIRST, WRITE ONLY",
             "WRITE FIRST, WRITE FIRST", "WRITE FIRST, SEND ONLY", "SEND FIRST, WRITE MIDDLE",
             "SEND FIRST, SEND ONLY", "WRITE FIRST, READ", "WRITE FIRST, SEND MIDDLE", "SEND FIRST, SEND FIRST",
             "SEND FIRST, WRITE ONLY", "SEND FIRST, READ", "SEND FIRST, WRITE LAST",
             "WRITE FIRST, WRITE MIDDLE, SEND LAST", "WRITE FIRST, WRITE MIDDLE, WRITE LAST, WRITE MIDDLE")


@family("out of order:", SEQUENCES)
def out_of_order(play, names):
    """The last packet of the list cannot follow the others."""
    region, qp = play.region(), play.qp(receives=2)
    *before, wrong = names.split(", ")
    for name in before:
        operation, length, extended = parts(region)[name]
        qp.packet(operation, qp.psn, pattern(length), extended=extended)
        if operation in (WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST):
            at = 256 * (operation - WRITE_FIRST)
            region.expected[at:at + 256] = pattern(256)
            qp.msn += operation == WRITE_LAST
        qp.psn += 1
    operation, length, extended = parts(region)[wrong]
    qp.packet(operation, qp.psn, pattern(length, 8), extended=extended, ack=True)
    fails(play, qp, region, INVALID)


# Packets of a message of 768 bytes: what the last of them has.
LENGTHS = {
    "FIRST of less than the MTU": [(WRITE_FIRST, 252, 768)],
    "FIRST of more than the MTU": [(WRITE_FIRST, 260, 768)],
    "FIRST of no more than the MTU in all": [(WRITE_FIRST, 256, 256)],
    "MIDDLE of less than the MTU": [(WRITE_FIRST, 256, 768), (WRITE_MIDDLE, 252, None)],
    "LAST behind the end": [(WRITE_FIRST, 256, 512), (WRITE_MIDDLE, 256, None), (WRITE_LAST, 4, None)],
    "LAST of nothing": [(WRITE_FIRST, 256, 512), (WRITE_LAST, 0, None)],
    "LAST of too little": [(WRITE_FIRST, 256, 512), (WRITE_LAST, 252, None)],
    "LAST of too much": [(WRITE_FIRST, 256, 500), (WRITE_LAST, 256, None)],
    "LAST of more than the MTU": [(WRITE_FIRST, 256, 768), (WRITE_LAST, 512, None)],
    "ONLY of more than the MTU": [(WRITE_ONLY, 260, 260)],
    "ONLY of less than it says": [(WRITE_ONLY, 8, 12)],
    "ONLY of more than it says": [(WRITE_ONLY, 12, 8)],
    "SEND FIRST of less than the MTU": [(SEND_FIRST, 252, None)],
    "SEND ONLY of more than the MTU": [(SEND_ONLY, 260, None)],
    "READ of more than 2^31": [(READ, 0, (1 << 31) + 1)],
    "WRITE of more than 2^31": [(WRITE_FIRST, 256, (1 << 31) + 1)],
    "READ with data": [(READ, 4, 4)],
    "SEND MIDDLE of less than the MTU": [(SEND_FIRST, 256, None), (SEND_MIDDLE, 252, None)],
    "SEND LAST of nothing": [(SEND_FIRST, 256, None), (SEND_LAST, 0, None)],
    "SEND LAST of more than the MTU": [(SEND_FIRST, 256, None), (SEND_LAST, 260, None)],
}


@family("length:", LENGTHS)
def lengths(play, name):
    region, qp = play.region(), play.qp(receives=1)
    packets = LENGTHS[name]
    for place, (operation, length, total) in enumerate(packets):
        extended = b"" if total is None else reth(region.address, region.key, total)
        qp.packet(operation, qp.psn + place, pattern(length), extended=extended)
        if operation in (WRITE_FIRST, WRITE_MIDDLE) and place < len(packets) - 1:
            region.expected[256 * place:256 * place + length] = pattern(length)
    qp.psn += len(packets) - 1
    fails(play, qp, region, INVALID)


@family("longer than its receive:", (101, 256 + 45, 700))
def longer_than_its_receive(play, length):
    """In its only packet, its last, and one before that."""
    region, qp = play.region(), play.qp(receives=2, receive_bytes={101: 100, 301: 300, 700: 300}[length])
    last = {101: 0, 301: 1, 700: 1}[length]
    qp.request(SENDS, pattern(length), only=range(last + 1))
    qp.psn += last
    play.complete(qp, "received", "send", "local-length")
    fails(play, qp, region, INVALID)


@family("not offered:", ("compare and swap", "fetch and add", "SEND ONLY with invalidate",
                         "SEND LAST with invalidate"))
def not_offered(play, what):
    region, qp = play.region(), play.qp(receives=2)
    atomic = struct.pack(">QIQQ", region.address, region.key, 1, 0)
    if "LAST" in what:
        qp.packet(SEND_FIRST, qp.psn, pattern(256))
        qp.psn += 1
    operation, data, extended = {
        "compare and swap": (SWAP, b"", atomic), "fetch and add": (ADD, b"", atomic),
        "SEND ONLY with invalidate": (SEND_ONLY_INV, pattern(4), struct.pack(">I", region.key)),
        "SEND LAST with invalidate": (SEND_LAST_INV, pattern(4), struct.pack(">I", region.key)),
    }[what]
    qp.packet(operation, qp.psn, data, extended=extended, ack=True)
    fails(play, qp, region, INVALID)


# Packets that are dropped without an answer, before the sequence number is looked at.
SILENT = {
    "partition key": {"pkey": 0x1234}, "transport version": {"version": 1}, "service": {"service": UC},
    "source": {"source": STRANGER}, "queue pair": {"qp": 0x999}, "queue pair 0": {"qp": 0},
    "ICRC": {"spoil": 1}, "pad": {"pad": 3, "short": 3 + 8}, "length of the datagram": {"udp_length": 4},
    "longer datagram": {"udp_length": 1000}, "shorter datagram": {"udp_length": -8}, "cut header": {"short": 20},
    "reserved service": {"service": 0xe0}, "raw datagram": {"service": UC | 0x40},
}
CAUSES = {"ICRC": "bad-icrc", "queue pair": "unknown-qp"}


@family("dropped for its", SILENT)
def dropped(play, name):
    """What is right in all else is taken afterwards."""
    region, qp = play.region(), play.qp()
    wrong = SILENT[name]
    data = pattern(8, 4)
    for _ in range(2):
        qp.packet(WRITE_ONLY, qp.psn, data, extended=reth(region.address, region.key, 8), ack=True, **wrong)
    if name in CAUSES:
        play.drop(CAUSES[name], 2)
    qp.write(region, 100, pattern(20))


@case
def unknown_opcodes(play):
    """All that no service has: none may harm, nor be answered."""
    region, qp = play.region(), play.qp()
    for service in range(0, 0x100, 0x20):
        for operation in (0x15, 0x18, 0x1b, 0x1f):
            if service:
                qp.packet(operation, qp.psn, b"", service=service)
                qp.packet(operation, qp.psn, pattern(64), service=service, ack=True)
    qp.write(region, 0, pattern(8))
