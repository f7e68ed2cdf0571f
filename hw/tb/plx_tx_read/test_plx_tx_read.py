"""plx_tx_read: segments in memory become packets without gaps; inconsistent or unreadable ones do not."""

import random

import cocotb

import cycles as table
from core import Cycles
from descriptors import (CHECKSUM_CARD, CHECKSUM_GIVEN, EVENT, FIRST, INLINE, LAST, RAW, SENT, BAD, FAILED, Data,
                         Descriptor, Done, inline, packet, pieces, slots, walk)
from host_bus import Reads

WORD = 32


def memory(address, length):
    return Reads.memory(address, length)


class TB:
    """A ring that issues descriptors, a plx_dma_rd that responds in order, and a fifo of `capacity` words."""

    def __init__(self, dut, capacity=300):
        self.dut, self.cycles, self.capacity = dut, Cycles(dut), capacity
        self.cycles.watchers.append(self.look)
        self.descriptors, self.waiting, self.piece, self.flush = [], [], False, False
        # Outstanding responses: first cycle, words.
        self.answers, self.requests, self.offered, self.refused = [], [], False, 0
        self.stored, self.whole, self.data, self.packets, self.dones = 0, 0, b"", [], []
        self.words_at, self.taken_at, self.asked_at = [], None, None
        self.idle, self.stall, self.delay, self.drain, self.failing = 0.0, 0.0, 5, 1.0, set()
        for name in ("s_tx_segment_valid", "s_tx_segment", "s_tx_segment_data", "s_tx_segment_ends", "s_tx_segment_flush", "m_desc_ready", "s_data_tvalid", "s_data_tdata",
                     "s_data_tkeep", "s_data_tlast", "s_data_tuser"):
            getattr(dut, name).value = 0
        dut.s_free.value = capacity

    def add(self, descriptors):
        self.descriptors += descriptors
        self.waiting += pieces(descriptors)

    async def step(self):
        dut = self.dut
        # An offer is stable.
        self.piece = bool(self.waiting) and (self.piece or random.random() >= self.idle)
        dut.s_tx_segment_valid.value = self.piece
        word, is_data, ends = self.waiting[0] if self.piece else (0, 0, 0)
        dut.s_tx_segment.value, dut.s_tx_segment_data.value, dut.s_tx_segment_ends.value = word, is_data, ends
        dut.s_tx_segment_flush.value = self.flush and not self.waiting
        dut.m_desc_ready.value = random.random() >= self.stall
        if self.whole and random.random() < self.drain:
            self.stored, self.whole = self.stored - 1, self.whole - 1
        dut.s_free.value = self.capacity - self.stored
        if not self.offered and self.answers and self.answers[0][0] <= self.cycles.number:
            self.offered = random.random() >= self.stall
        dut.s_data_tvalid.value = self.offered
        if self.offered:
            data, keep, last, bad = self.answers[0][1][0]
            dut.s_data_tdata.value, dut.s_data_tkeep.value = data, keep
            dut.s_data_tlast.value, dut.s_data_tuser.value = last, bad
        await self.cycles.cycle()

    def answer(self, address, length):
        """Words as plx_dma_rd has them; where it fails, the last one of a part of them is bad, and void."""
        words = []
        for at in range(0, length, WORD):
            piece = memory(address + at, min(WORD, length - at))
            words.append((int.from_bytes(piece.ljust(WORD, b"\xaa"), "little"), (1 << len(piece)) - 1,
                          at + WORD >= length, False))
        if len(self.requests) in self.failing:
            words = words[:random.randint(1, len(words))]
            words[-1] = (random.getrandbits(256), (1 << WORD) - 1, True, True)
        self.answers.append((self.cycles.number + 1 + random.randrange(self.delay), words))
        self.requests.append((address, length))

    def look(self):
        dut = self.dut
        if self.offered:
            taken = int(dut.s_data_tready.value)
            self.refused = 0 if taken else self.refused + 1
            # A cycle for each descriptor before it that has no answer, and one behind a packet.
            assert self.refused <= 33, "an answer is held up"
            if taken:
                words = self.answers[0][1]
                words.pop(0)
                self.offered = False
                if not words:
                    self.answers.pop(0)
        if int(dut.m_desc_valid.value):
            self.asked_at = self.asked_at or self.cycles.number
            if int(dut.m_desc_ready.value):
                self.answer(int(dut.m_desc_address.value), int(dut.m_desc_length.value))
        if self.piece and int(dut.s_tx_segment_ready.value):
            self.waiting.pop(0)
            self.taken_at = self.taken_at or self.cycles.number
            self.piece = False
        if int(dut.m_done_valid.value) or int(dut.m_done_end.value):
            end = int(dut.m_done_end.value)
            status, length = (int(dut.m_done_status.value), int(dut.m_done_length.value)) if end else (0, 0)
            self.dones.append(Done(bool(int(dut.m_done_valid.value)), bool(end), status, length))
        if int(dut.m_axis_tx_tvalid.value):
            self.word()

    def word(self):
        dut = self.dut
        last, bad = int(dut.m_axis_tx_tlast.value), int(dut.m_axis_tx_tuser.value)
        if last and bad:
            self.stored -= (len(self.data) + WORD - 1) // WORD
            self.data = b""
            return
        keep = int(dut.m_axis_tx_tkeep.value)
        count = keep.bit_length()
        assert keep == (1 << count) - 1 and (count == WORD or last), f"tkeep {keep:08x}: a gap"
        self.data += int(dut.m_axis_tx_tdata.value.binstr[256 - 8 * count:] or "0", 2).to_bytes(count, "little")
        self.stored += 1
        assert self.stored <= self.capacity, "a word that has no room"
        self.words_at.append(self.cycles.number)
        if last:
            self.packets.append((self.data, int(dut.m_axis_meta_tdata.value)))
            self.whole += max(1, (len(self.data) + WORD - 1) // WORD)
            self.data = b""

    async def finish(self, most=20000):
        self.flush = True
        for _ in range(most):
            await self.step()
            if not self.waiting and not self.answers and int(self.dut.idle.value):
                break
        await self.step()
        dones, packets, requests = walk(self.descriptors, lambda number: number in self.failing, memory)
        assert int(self.dut.idle.value), "it hangs"
        assert self.requests == requests
        assert self.dones == dones
        assert self.packets == packets
        assert self.stored == self.whole


async def started(dut, **settings):
    tb = TB(dut, **settings)
    await tb.cycles.start()
    return tb


def scattered(total, most=400):
    """Segments of these bytes, at random addresses."""
    pieces = []
    while total:
        length = min(total, random.choice((1, 2, 31, 32, 33, random.randrange(1, most))))
        pieces.append((random.getrandbits(40), length))
        total -= length
    return pieces or [(random.getrandbits(40), 0)]


def some_packet(longest=1500):
    if random.random() < 0.3:
        data = random.randbytes(random.choice((1, 2, 31, 32, 33, 63, 64)))
        flags = random.choice((0, CHECKSUM_GIVEN, CHECKSUM_CARD, RAW if len(data) >= 14 else 0))
        return inline(data, flags, checksum=random.getrandbits(16), cookie=random.getrandbits(32))
    total = random.choice((0, 1, 31, 32, 33, 64, 65, random.randrange(longest)))
    flags = random.choice((0, 0, CHECKSUM_GIVEN, CHECKSUM_CARD, RAW if total >= 14 else 0)) | random.choice((0, EVENT))
    return packet(scattered(total), flags, checksum=random.getrandbits(16), ip=random.getrandbits(32),
                  dport=random.getrandbits(16), sport=random.getrandbits(16), cookie=random.getrandbits(32))


@cocotb.test()
async def pieces_are_joined_at_any_byte(dut):
    tb = await started(dut)
    for first in (1, 2, 15, 31, 32, 33):
        for second in (1, 30, 31, 32, 33, 64):
            tb.add(packet([(100, first), (1000, second)]))
            tb.add(packet([(103, first), (1001, second), (5000, 1)]))
    tb.add(packet([(7 * at, 1) for at in range(70)]))
    await tb.finish()
    assert len(tb.packets) == 73


@cocotb.test()
async def packets_of_all_kinds_under_random_soak(dut):
    for idle, stall, drain, delay in ((0.0, 0.0, 1.0, 30), (0.3, 0.3, 0.3, 5), (0.0, 0.2, 0.15, 60)):
        tb = await started(dut, capacity=64)
        tb.idle, tb.stall, tb.drain, tb.delay = idle, stall, drain, delay
        for _ in range(30):
            tb.add(some_packet())
        await tb.finish()
        assert len(tb.packets) == 30


@cocotb.test()
async def data_in_the_ring_need_no_read(dut):
    """Of each length, one packet after the other without a lost cycle, and between packets that are read."""
    tb = await started(dut)
    for length in range(1, 65):
        tb.add(inline(random.randbytes(length)))
    await tb.finish()
    assert len(tb.packets) == 64 and not tb.requests
    # A descriptor and a slot each, or two.
    assert tb.words_at[-1] - tb.words_at[0] <= 64 + 96
    tb = await started(dut)
    for length in (1, 32, 33, 64):
        tb.add(inline(random.randbytes(length)) + packet([(100, 33), (200, 31)]) + inline(random.randbytes(65 - length)))
    await tb.finish()
    assert len(tb.packets) == 12 and len(tb.requests) == 8
    # Contradictions; the slots behind them are data all the same.
    tb = await started(dut)
    opens = packet([(0, 100), (200, 100)])[:1]
    one, two = Data(b"\xff" * 32), Data(bytes(32))
    wrong = [
        [Descriptor(0, 0, FIRST | LAST | INLINE, 0)],
        [Descriptor(0, 65, FIRST | LAST | INLINE, 65)],
        [Descriptor(0, 1 << 31 | 5, FIRST | LAST | INLINE, 5)],
        inline(bytes(20), total=21),
        inline(bytes(40), total=32),
        inline(bytes(13), RAW),
        inline(bytes(40), CHECKSUM_GIVEN | CHECKSUM_CARD),
        [Descriptor(0, 33, FIRST | INLINE, 33), one, two],
        [Descriptor(0, 32, LAST | INLINE, 32), one],
        opens + [Descriptor(0, 64, LAST | INLINE, 64), one, two],
        opens + [Descriptor(0, 0, INLINE, 64)],
        opens + inline(bytes(64), total=63),
    ]
    for descriptors in wrong:
        tb.add(descriptors + inline(b"good") + packet([(7, 50)]))
    await tb.finish()
    assert len(tb.packets) == 2 * len(wrong) and sum(done.status == BAD for done in tb.dones if done.end) == 13
    # Its data never come: a flush ends it.
    tb = await started(dut)
    tb.add(inline(bytes(64))[:2])
    for _ in range(20):
        await tb.step()
    assert not any(done.end for done in tb.dones) and not int(dut.idle.value)
    await tb.finish()
    assert tb.dones[-1] == Done(False, True, BAD, 64)


@cocotb.test()
async def the_longest_packets(dut):
    tb = await started(dut)
    for total, flags in ((9000, CHECKSUM_CARD), (9596, RAW), (9000, 0)):
        tb.add(packet([(3, total)], flags))
    tb.add(packet([(3, 9001)]) + packet([(3, 9597)], RAW) + packet([(3, 13)], RAW) + packet([(0, 65535)]))
    tb.add(packet([(5, 14)], RAW))
    await tb.finish()
    assert [done.status for done in tb.dones] == [SENT] * 3 + [BAD] * 4 + [SENT]


@cocotb.test()
async def descriptors_that_contradict_themselves(dut):
    """Each between good packets, which are sent; no part of it is; no space is lost."""
    for stall in (0.0, 0.4):
        tb = await started(dut, capacity=32)
        tb.stall = stall
        wrong = [
            packet([(0, 10), (64, 10)], total=21),
            packet([(0, 10), (64, 10)], total=19),
            packet([(0, 10), (64, 0), (64, 10)]),
            packet([(0, 0)], total=4),
            packet([(0, 0), (64, 4)], total=0),
            packet([(0, 0)], RAW),
            packet([(0, 0x1000A)], total=10),
            packet([(0, 40)], CHECKSUM_GIVEN | CHECKSUM_CARD),
            packet([(0, 40)], RAW | CHECKSUM_CARD),
            packet([(0, 40)], RAW | CHECKSUM_GIVEN),
            # It begins without a beginning; it does not end before the next one begins.
            [Descriptor(0, 10, LAST, 10)],
            [Descriptor(0, 10, 0, 10), Descriptor(0, 10, 0, 10)],
            packet([(0, 100), (200, 100)], total=300)[:1],
            packet([(0, 100), (200, 100)], total=300)[:1] * 2,
            [Descriptor(0, 10, FIRST, 10)],
            [Descriptor(0, 0, FIRST, 0)],
        ]
        random.shuffle(wrong)
        for descriptors in wrong:
            tb.add(descriptors)
            tb.add(some_packet(900))
        await tb.finish()
        bad = sum(done.status == BAD for done in tb.dones if done.end)
        # Two packets begin in one of them; one has no end, for the next one has none.
        assert bad >= len(wrong) and len(tb.packets) == len(wrong), (bad, len(tb.packets))


@cocotb.test()
async def any_descriptors_at_all(dut):
    """Random flags and lengths: every descriptor is done, every packet ends, and good ones are sent."""
    tb = await started(dut, capacity=64)
    tb.stall = 0.2
    for _ in range(250):
        length = random.choice((0, 1, 32, 40))
        flags = random.choice((0, FIRST, LAST, FIRST | LAST, 63)) | random.choice((0, 0, RAW))
        flags |= random.choice((0, 0, 0, INLINE))
        made = Descriptor(random.getrandbits(40), length, flags, random.choice((length, length, 0, 40, 72)))
        tb.add([made, *(Data(random.randbytes(32)) for _ in range(slots(made)))])
    tb.failing = set(random.sample(range(100), 15))
    await tb.finish()
    assert {done.status for done in tb.dones} == {SENT, BAD, FAILED}


@cocotb.test()
async def a_failed_read_takes_its_packet_back_and_no_other(dut):
    for stall in (0.0, 0.3):
        tb = await started(dut, capacity=64)
        tb.stall = stall
        for _ in range(40):
            tb.add(some_packet(600))
        tb.failing = set(random.sample(range(100), 25))
        await tb.finish()
        assert any(done.status == FAILED for done in tb.dones) and tb.packets


@cocotb.test()
async def a_packet_without_an_end_ends_when_nothing_follows(dut):
    tb = await started(dut)
    tb.add(packet([(0, 100), (200, 100)])[:1])
    for _ in range(60):
        await tb.step()
    assert tb.dones == [Done(True, False)] and not int(dut.idle.value), "its end may come yet"
    await tb.finish()
    tb.add(some_packet())
    await tb.finish()


@cocotb.test()
async def nothing_is_asked_for_without_room(dut):
    """A port that does not send does not delay the others' data."""
    tb = await started(dut, capacity=100)
    tb.drain = 0.0
    for _ in range(6):
        tb.add(packet([(random.getrandbits(40), 500), (random.getrandbits(40), 524)]))
    for _ in range(300):
        await tb.step()
    assert len(tb.requests) == 6 and len(tb.packets) == 3 and not tb.answers
    tb.drain = 1.0
    await tb.finish()
    assert len(tb.packets) == 6


@cocotb.test()
async def no_cycle_is_lost_between_packets(dut):
    tb = await started(dut)
    tb.delay = 1
    for _ in range(12):
        tb.add(packet([(random.getrandbits(40), 1024)]))
    await tb.finish()
    assert tb.words_at[-1] - tb.words_at[0] == 12 * 32 - 1


@cocotb.test()
async def latency(dut):
    tb = await started(dut)
    tb.add(packet([(0x100, 64)]))
    await tb.finish()
    table.check("tx_read", tb.asked_at - tb.taken_at)
