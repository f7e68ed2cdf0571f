"""Cases in which the peer requests, and does what it may."""

import zlib

from lib.rdma.cases import case, family
from lib.rdma.packets import (ACKED, MARKED, NAK, PSNS, READ, RNR, SEND_ONLY, SEQUENCE, WRITE_FIRST, WRITE_LAST,
                              WRITE_MIDDLE, WRITE_ONLY, reth)
from lib.rdma.rocepeer import SENDS, pattern

MTUS = (256, 512, 1024, 2048, 4096)


@family("write with MTU", MTUS)
def write_with_mtu(play, mtu):
    """One packet, two, and three with padding."""
    region, qp = play.region(16384), play.qp(mtu=mtu)
    qp.write(region, 0, pattern(1))
    qp.write(region, 8, pattern(mtu, 3))
    qp.write(region, 1 + mtu, pattern(2 * mtu, 5))
    qp.write(region, 16384 - 2 * mtu - 3, pattern(2 * mtu + 3, 7))


@family("send with MTU", MTUS)
def send_with_mtu(play, mtu):
    qp = play.qp(mtu=mtu, receives=8, receive_bytes=3 * mtu)
    for length in (0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu):
        qp.send(pattern(length, length))


@family("read with MTU", MTUS)
def read_with_mtu(play, mtu):
    region, qp = play.region(contents=pattern(16384), access=("read",)), play.qp(mtu=mtu)
    for at, length in ((0, 1), (5, mtu), (0, 2 * mtu), (16384 - 3 * mtu - 1, 3 * mtu + 1)):
        qp.read(region, at, length)


@case
def immediates(play):
    """Both kinds, of one packet and of several."""
    region, qp = play.region(), play.qp(receives=8)
    qp.write(region, 0, pattern(7), immediate=0)
    qp.write(region, 100, pattern(600), immediate=0xffffffff)
    qp.send(pattern(9), immediate=1)
    qp.send(pattern(513), immediate=0x80000000)
    qp.write(region, 0, b"", immediate=2)


@case
def the_whole_of_a_region(play):
    """To its last byte, and empty ranges at its end."""
    region, qp = play.region(1000), play.qp()
    qp.write(region, 0, pattern(1000))
    qp.write(region, 999, b"x")
    qp.write(region, 1000, b"")
    qp.read(region, 0, 1000)
    qp.read(region, 1000, 0)


@case
def nothing_with_a_bad_key(play):
    """A length of zero: the key is not checked (9.4.3, 9.7.4.1.4)."""
    play.region()
    qp = play.qp()
    qp.packet(WRITE_ONLY, qp.psn, extended=reth(3, 0xbad, 0), ack=True)
    qp.psn += 1
    qp.done()
    qp.packet(READ, qp.psn, extended=reth(3, 0xbad, 0), ack=True)
    qp.msn += 1
    qp.expect_responses(qp.psn, b"")


@case
def the_migration_state_is_either(play):
    """rdma_rxe sends 0, others 1."""
    region, qp = play.region(), play.qp()
    for place, migrated in enumerate((True, False, True, False)):
        extended = reth(region.address + 8 * place, region.key, 8)
        qp.packet(WRITE_ONLY, qp.psn, pattern(8, place), extended=extended, ack=True, migrated=migrated)
        region.expected[8 * place:8 * place + 8] = pattern(8, place)
        qp.psn += 1
        qp.done()


@case
def a_limited_member_of_the_partition(play):
    """Its key lacks the highest bit; a full member takes its packets (10.9.3)."""
    region, qp = play.region(), play.qp()
    qp.packet(WRITE_ONLY, qp.psn, pattern(8), extended=reth(region.address, region.key, 8), ack=True, pkey=0x7fff)
    region.expected[:8] = pattern(8)
    qp.psn += 1
    qp.done()


@case
def sequence_numbers_wrap(play):
    """Within a message, between messages, and within the response to a READ."""
    region, qp = play.region(contents=pattern(8192)), play.qp(recv_psn=PSNS - 2, receives=4)
    qp.write(region, 0, pattern(1100, 1))
    qp.send(pattern(4))
    other = play.qp(recv_psn=PSNS - 1)
    other.write(region, 2048, pattern(1, 9))
    other.write(region, 2049, pattern(1, 10))
    third = play.qp(recv_psn=PSNS - 2)
    third.read(region, 4096, 1000)


@case
def acknowledged_once(play):
    """Requests that ask for no ACK, and one that does."""
    region, qp = play.region(), play.qp()
    for place in range(5):
        qp.write(region, 100 * place, pattern(100, place), ack=place == 4)


@case
def a_duplicate_is_answered_and_not_done_again(play):
    """The second time with other data: none of them are taken. Those that ask for no ACK may have one."""
    region, qp = play.region(), play.qp(receives=4)
    qp.spare_acks = 2
    first = qp.psn
    qp.write(region, 0, pattern(600))
    qp.send(pattern(50))
    last = qp.psn - 1
    for psn, data in ((first, pattern(256, 99)), (first + 1, pattern(256, 98))):
        operation = WRITE_FIRST if psn == first else WRITE_MIDDLE
        extended = reth(region.address, region.key, 600) if psn == first else b""
        qp.packet(operation, psn, data, extended=extended)
    qp.packet(WRITE_LAST, first + 2, pattern(88, 97), ack=True)
    qp.expect(ACKED, last)
    qp.packet(SEND_ONLY, last, pattern(50, 96), ack=True)
    qp.expect(ACKED, last)
    play.drop("duplicate", 4)
    qp.write(region, 700, pattern(5))


@case
def a_duplicate_READ_is_read_again(play):
    """As a whole, and from a packet in the middle on."""
    region, qp = play.region(contents=pattern(8192)), play.qp()
    first = qp.psn
    qp.read(region, 0, 1000)
    qp.write(region, 300, b"changed")
    qp.packet(READ, first, extended=reth(region.address, region.key, 1000), ack=True)
    qp.expect_responses(first, bytes(region.expected[:1000]))
    qp.packet(READ, first + 1, extended=reth(region.address + 256, region.key, 744), ack=True)
    qp.expect_responses(first + 1, bytes(region.expected[256:1000]))
    qp.write(region, 2000, pattern(9))


@case
def one_NAK_for_a_gap(play):
    """However many packets follow it; and one for the next gap."""
    region, qp = play.region(), play.qp()
    qp.write(region, 0, pattern(10))
    for gap in (1, 2):
        for place in range(gap, gap + 4):
            qp.packet(WRITE_ONLY, qp.psn + place, pattern(4), ack=True,
                      extended=reth(region.address + 4000, region.key, 4))
        qp.expect(NAK | SEQUENCE, qp.psn)
        for place in range(3):
            qp.write(region, 1000 * gap + 100 * place, pattern(100, place))
    play.drop("psn-gap", 8)


@case
def a_gap_within_a_message(play):
    region, qp = play.region(), play.qp(receives=1, receive_bytes=2000)
    data = pattern(1000)
    qp.request(SENDS, data, only=(0, 2, 3))
    qp.expect(NAK | SEQUENCE, qp.psn + 1)
    qp.request(SENDS, data, only=(1, 2, 3))
    qp.psn += 4
    play.complete(qp, "received", "send", bytes=1000, crc32=zlib.crc32(data))
    qp.done()
    qp.write(region, 0, pattern(3))


@case
def not_ready(play):
    """One receive: the second SEND has to wait, and so does what follows it; the timer is the
    responder's own."""
    region, qp = play.region(), play.qp(receives=1, rnr_timer=14)
    qp.send(pattern(5))
    for _ in range(2):
        qp.packet(SEND_ONLY, qp.psn, pattern(6), ack=True)
        qp.expect(RNR | 14, qp.psn)
        for place in (1, 2):
            qp.packet(SEND_ONLY, qp.psn + place, pattern(7), ack=True)
        play.wait(2000)
    # It may give up, and write instead.
    qp.write(region, 0, pattern(9))


@case
def two_queue_pairs_in_turns(play):
    """Each has its own state in the middle of a message."""
    left, right, a, b = play.region(), play.region(), play.qp(), play.qp()
    data = {a: pattern(700), b: pattern(700, 50)}
    for place in range(3):
        for qp, region in ((a, left), (b, right)):
            qp.request((WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, 0, 0, 0), data[qp],
                       reth(region.address + 8, region.key, 700), only=(place,))
    for qp, region in ((a, left), (b, right)):
        qp.psn += 3
        region.expected[8:708] = data[qp]
        qp.done()


@case
def a_message_of_many_packets(play):
    region, qp = play.region(1 << 20), play.qp(mtu=4096)
    qp.write(region, 0, pattern(1 << 20))
    qp.read(region, 100, 50000)


@family("congestion marks of", ("RC", "UC"))
def congestion(play, kind):
    """A marked packet is answered by a notification, but for those within 50 us of the last."""
    region, qp = play.region(), play.qp(kind=kind.lower())
    for place, pause in enumerate((0, 0, 0, 100, 0)):
        play.wait(pause)
        data = pattern(8, place)
        qp.packet(WRITE_ONLY, qp.psn, data, extended=reth(region.address + 8 * place, region.key, 8), ecn=MARKED)
        region.expected[8 * place:8 * place + 8] = data
        qp.psn += 1
        qp.msn += 1
    qp.notifications = 2
    qp.write(region, 100, pattern(8))
