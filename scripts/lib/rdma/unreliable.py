"""Cases of unreliable connections."""

from lib.rdma.cases import case, family
from lib.rdma.packets import (READ, SEND_FIRST, SEND_LAST, SEND_ONLY, SWAP, WRITE_FIRST, WRITE_LAST, WRITE_ONLY,
                              WRITE_ONLY_IMM, reth)
from lib.rdma.rocepeer import SENDS, WRITES, pattern


@family("UC with MTU", (256, 1024, 4096))
def both_requests(play, mtu):
    region, qp = play.region(32768), play.qp(kind="uc", mtu=mtu, receives=8, receive_bytes=3 * mtu)
    qp.write(region, 0, pattern(3 * mtu + 1))
    qp.send(pattern(2 * mtu + 3))
    qp.write(region, 20000, pattern(10), immediate=5)
    qp.send(b"", immediate=6)


@case
def UC_gap_within_a_message(play):
    """The message is discarded; what its first packets put stays. The next message is whole."""
    region, qp = play.region(), play.qp(kind="uc", receives=4, receive_bytes=2000)
    qp.request(WRITES, pattern(1000), reth(region.address, region.key, 1000), only=(0, 3))
    region.expected[:256] = pattern(256)
    qp.psn += 4
    qp.write(region, 2000, pattern(1000, 3), immediate=1)
    qp.request(SENDS, pattern(1000), only=(0, 1, 3))
    qp.psn += 4
    qp.send(pattern(300, 8))
    play.missed = 2 + 1


@case
def UC_gap_between_messages(play):
    """Messages that are missing as a whole, or lack their beginning or end."""
    region, qp = play.region(), play.qp(kind="uc", receives=2, receive_bytes=2000)
    qp.write(region, 0, pattern(10))
    qp.psn += 3
    qp.write(region, 100, pattern(600, 1))
    # Without its first packet.
    qp.request(WRITES, pattern(700), reth(region.address + 4000, region.key, 700), only=(1, 2))
    qp.psn += 3
    # Without its last packet.
    qp.request(WRITES, pattern(700), reth(region.address + 5000, region.key, 700), only=(0, 1))
    region.expected[5000:5512] = pattern(512)
    qp.psn += 3
    qp.send(pattern(77))
    play.missed = 3 + 1 + 1


@case
def UC_without_a_receive(play):
    """Dropped, and the connection goes on."""
    region, qp = play.region(), play.qp(kind="uc")
    qp.packet(SEND_ONLY, qp.psn, pattern(8))
    play.drop("not-ready")
    qp.psn += 1
    qp.write(region, 0, pattern(8))


@family("UC drops:", ("key", "bounds", "READ", "right"))
def refused(play, what):
    """Nothing is answered."""
    region, qp = play.region(1000), play.qp(kind="uc")
    closed = play.region(1000, access=["read"])
    key, at, target = {"key": (1, 0, region), "bounds": (0, 997, region), "READ": (0, 0, region),
                       "right": (0, 0, closed)}[what]
    extended = reth(target.address + at, target.key + key, 4)
    qp.packet(READ if what == "READ" else WRITE_ONLY, qp.psn, b"" if what == "READ" else pattern(4), extended=extended)
    neighbour = play.qp(kind="uc")
    neighbour.write(region, 0, pattern(300))


@family("UC is silent about", ("a SEND longer than its receive", "an immediate without a receive",
                                "FIRST within a message", "a length that is too short", "a length that is too long",
                                "an atomic operation"))
def silent(play, what):
    """Dropped, nothing is answered, and the connection goes on with the next message."""
    region = play.region(contents=pattern(8192))
    qp = play.qp(kind="uc", receives=0 if "without" in what else 1, receive_bytes=300)
    head = reth(region.address, region.key, 300)
    known = pattern(300)
    packets = {
        "a SEND longer than its receive": [(SEND_FIRST, known[:256], b""), (SEND_LAST, known[:45], b"")],
        "an immediate without a receive": [(WRITE_ONLY_IMM, known[:8], reth(region.address, region.key, 8) + bytes(4))],
        "FIRST within a message": [(WRITE_FIRST, known[:256], head), (WRITE_FIRST, known[:256], head)],
        "a length that is too short": [(WRITE_FIRST, known[:256], head), (WRITE_LAST, known[256:299], b"")],
        "a length that is too long": [(WRITE_FIRST, known[:256], head), (WRITE_LAST, known[256:] + known[:4], b"")],
        "an atomic operation": [(SWAP, b"", reth(region.address, region.key, 1) + bytes(12))],
    }[what]
    for operation, data, extended in packets:
        qp.packet(operation, qp.psn, data, extended=extended)
        qp.psn += 1
    if "atomic" in what:
        # An opcode that the service does not have: no packet of the connection.
        play.missed = 1
    qp.write(region, 1000, pattern(300, 9))
    if "without" not in what:
        qp.send(pattern(200, 4))


@case
def UC_requests_of_the_endpoint(play):
    """They are done when they have left; nothing asks for an ACK."""
    region, qp = play.region(contents=pattern(8192)), play.qp(kind="uc", send_psn=0xfffffe)
    qp.post("put", region, 0, 700)
    qp.post("send", region, 100, 300, immediate=9)
    qp.post("put", region, 0, 0, immediate=0)
    for op, length in (("put", 700), ("send", 300), ("put", 0)):
        play.complete(qp, "posted", op, bytes=length)
    play.tick()
