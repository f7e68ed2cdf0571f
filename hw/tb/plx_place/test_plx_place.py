"""plx_place: payloads of all lengths and ends at their addresses in memory, cut-through; one commit for each."""

import random
import struct

import cocotb

import cycles as table
from core import Cycles
from hostbus import Memory, Writes

PARAMETERS = [{"PORT": 3}, {"PORT": 0, "FRAMES": 2}]

GOOD, BAD, MALFORMED, VERSION = range(4)
# Outcomes of the commit.
OUTCOME = {GOOD: 0, BAD: 8, MALFORMED: 6, VERSION: 7}
# Virtual and bus addresses differ by this.
VIRTUAL = 1 << 60


class Payload:
    """The input, and the responses of `clop` and `tlb`."""

    def __init__(self, length, user=GOOD, known=True, bound=None, stride=0, select=0, hit=True, address=None):
        self.data, self.user, self.known = random.randbytes(length), user, known
        self.bound, self.stride, self.select, self.hit = length if bound is None else bound, stride, select, hit
        self.address = random.randrange(1 << 50) * 16 if address is None else address
        self.stamp, self.stamped = random.getrandbits(64), random.random() < 0.8
        self.mac, self.parsed, self.port = random.getrandbits(32), random.getrandbits(32), random.getrandbits(16)
        self.stream, self.sequence = random.randrange(17), random.getrandbits(32)

    @property
    def space(self):
        return self.stride * 16 or (self.bound + 15) // 16 * 16 + 16

    @property
    def outcome(self):
        if self.user or self.select:
            return OUTCOME[self.user] or self.select
        return 4 if not self.hit else 3 if len(self.data) > self.bound else 0

    def meta(self):
        return (self.stamp | self.mac << 64 | self.parsed << 96 | self.bound << 128 | self.port << 144
                | self.stream << 160 | self.known << 167 | self.stamped << 168)

    def words(self):
        """(tdata, tkeep, tlast, tuser); bytes that are not kept are anything."""
        pieces = [self.data[at:at + 8] for at in range(0, len(self.data), 8)] or [b""]
        return [(int.from_bytes(piece + random.randbytes(8 - len(piece)), "little"), (1 << len(piece)) - 1, last,
                 self.user if last else 0)
                for piece, last in zip(pieces, [False] * (len(pieces) - 1) + [True])]

    def expected(self):
        if self.stride:
            return self.data.ljust(self.stride * 16, b"\0")
        record = struct.pack("<IHHII", len(self.data), self.port, self.stamped, self.sequence,
                             self.stamp & 0xFFFFFFFF if self.stamped else 0)
        return (record + self.data).ljust((len(self.data) + 31) // 16 * 16, b"\0")


class TB:
    def __init__(self, dut):
        self.dut, self.cycles, self.memory = dut, Cycles(dut), Memory()
        self.cycles.watchers.append(self.look)
        self.writes = Writes(self.memory)
        self.queue, self.words, self.meta, self.waiting, self.done = [], [], None, [], []
        self.idle = self.stall = self.slow = 0.0
        self.word = self.select_at = self.tlb_at = self.last_in = self.latency = None
        self.taken = self.open = 0

    async def start(self):
        await self.cycles.start()

    def offer(self, *lengths, **what):
        for length in lengths:
            payload = Payload(length, **what)
            self.memory.register(payload.address, payload.space)
            self.queue.append(payload)

    def drive(self):
        dut = self.dut
        if self.meta is None and not self.words and self.word is None and self.queue:
            payload = self.queue.pop(0)
            self.meta, self.words = payload.meta(), payload.words()
            self.waiting.append(payload)
        # Words are not offered before their metadata.
        if self.word is None and self.words and random.random() >= self.idle:
            self.word = self.words.pop(0)
        dut.s_axis_meta_tvalid.value, dut.s_axis_meta_tdata.value = self.meta is not None, self.meta or 0
        data, keep, last, user = self.word or (0, 0, 0, 0)
        dut.s_axis_payload_tvalid.value = self.word is not None
        dut.s_axis_payload_tdata.value, dut.s_axis_payload_tkeep.value = data, keep
        dut.s_axis_payload_tlast.value, dut.s_axis_payload_tuser.value = last, user
        for name in ("select", "tlb", "commit"):
            getattr(dut, f"m_{name}_ready").value = random.random() >= self.slow
        dut.s_select_valid.value = self.select_at == self.cycles.number
        dut.s_tlb_valid.value = self.tlb_at == self.cycles.number
        first = self.waiting[0] if self.waiting else Payload(0)
        dut.s_select_outcome.value, dut.s_select_address.value = first.select, first.address + VIRTUAL
        dut.s_select_sequence.value, dut.s_select_bare.value = first.sequence, first.stride != 0
        dut.s_select_stride.value, dut.s_select_func.value = first.stride, first.stream
        dut.s_tlb_hit.value, dut.s_tlb_address.value = first.hit, first.address
        ready = random.random() >= self.stall
        dut.m_desc_ready.value = ready and self.writes.descriptor is None
        dut.m_data_tready.value = ready and self.writes.descriptor is not None
        dut.m_taken.value = self.taken > 0
        self.taken -= self.taken > 0
        dut.now_stamp.value = self.cycles.number

    async def step(self):
        self.drive()
        await self.cycles.cycle()

    def moved(self, name):
        valid, ready = ("tvalid", "tready") if name.startswith("s_axis") or name == "m_data" else ("valid", "ready")
        return int(getattr(self.dut, f"{name}_{valid}").value) and int(getattr(self.dut, f"{name}_{ready}").value)

    def look(self):
        dut, now = self.dut, self.cycles.number
        if self.moved("s_axis_payload"):
            if self.word[2]:
                self.last_in = now
            self.word = None
        if self.moved("s_axis_meta"):
            self.meta = None
        if self.moved("m_select"):
            first = self.waiting[0]
            assert self.open == 0, "two places at a time"
            self.open, self.select_at = 1, now + 2
            assert int(dut.m_select_list.value) == int(dut.PORT.value) * 32 + first.stream
            assert int(dut.m_select_length.value) == first.bound
        if self.moved("m_tlb"):
            first, self.tlb_at = self.waiting[0], now + 2
            assert first.select == 0 and int(dut.m_tlb_address.value) == first.address + VIRTUAL
            assert int(dut.m_tlb_length.value) == first.space and int(dut.m_tlb_func.value) == first.stream
        if int(dut.m_desc_valid.value) and self.latency is None and self.last_in is not None:
            self.latency = now - self.last_in
        if self.moved("m_desc"):
            length = int(dut.m_desc_length.value)
            assert length <= 256 and not self.waiting[0].select and self.waiting[0].hit
            self.writes.descriptor_taken(int(dut.m_desc_address.value), length)
        if self.moved("m_data"):
            self.taken += self.writes.word_taken(int(dut.m_data_tdata.value), int(dut.m_data_tlast.value))
        if self.moved("m_commit"):
            self.committed(self.waiting.pop(0))

    def committed(self, first):
        dut = self.dut
        assert self.taken == 0 and self.writes.descriptor is None, "a commit before its payload was taken"
        self.open = 0
        assert int(dut.m_commit_outcome.value) == first.outcome
        assert int(dut.m_commit_list.value) == int(dut.PORT.value) * 32 + first.stream
        if first.outcome == 0:
            assert int(dut.m_commit_length.value) == len(first.data)
            assert int(dut.m_commit_wire.value) == first.stamp
            assert int(dut.m_commit_wire_valid.value) == first.stamped
            assert int(dut.m_commit_stamp_mac.value) == first.mac
            assert int(dut.m_commit_stamp_parsed.value) == first.parsed
            assert self.cycles.number - 300 < int(dut.m_commit_stamp_placed.value) <= self.cycles.number
            expected = first.expected()
            assert self.memory.read(first.address, len(expected)) == expected
        self.done.append(first)

    async def run(self, limit=30000):
        for _ in range(limit):
            if not self.queue and not self.waiting:
                break
            await self.step()
        else:
            raise AssertionError("a payload that never ends")
        await self.step()
        assert int(self.dut.idle.value) == 1


def offer_anything(tb):
    length = random.choice([0, 1, 8, 15, 16, 17, 18, 60, 239, 240, 241, 256, 500, 1024])
    bound, known = length, random.random() < 0.6
    if not known:
        bound = random.choice([length, length + 1, length + 16, length + 700, length // 2])
    stride = random.choice([0, 0, (bound + 15) // 16 + random.choice([0, 1, 20])])
    tb.offer(length, user=random.choice([GOOD] * 6 + [BAD, MALFORMED, VERSION]), known=known, bound=bound,
             stride=stride, select=random.choice([0] * 9 + [1, 2]), hit=random.random() < 0.93)


@cocotb.test()
async def payloads_of_all_kinds_lie_where_they_should(dut):
    """Also longer than announced, refused, faulted, bad at the end; no write is outside its space."""
    for idle, stall, slow in ((0, 0, 0), (0.3, 0.5, 0.3), (0.7, 0, 0), (0, 0.8, 0.2)):
        tb = TB(dut)
        tb.drive()
        await tb.start()
        tb.idle, tb.stall, tb.slow = idle, stall, slow
        for _ in range(30):
            offer_anything(tb)
        await tb.run()
        assert len(tb.done) == 30


@cocotb.test()
async def a_payload_is_written_while_its_tail_is_on_the_wire(dut):
    """Cut-through: of 1024 B all but the last chunks have left when the last word arrives, whether its length is known or not."""
    for known in (True, False):
        tb = TB(dut)
        tb.drive()
        await tb.start()
        tb.idle = 0.4
        tb.offer(1024, address=0x10010, known=known, bound=1500)
        if known:
            tb.queue[0].bound = 1024
        while tb.last_in is None:
            await tb.step()
        assert len(tb.memory.writes) >= 3, known
        assert all((address + len(data)) % 256 == 0 for _, address, data in tb.memory.writes)
        await tb.run()
        assert len(tb.memory.writes) == (5 if known else 6)


@cocotb.test()
async def one_write_where_one_is_enough(dut):
    """Up to 240 B: one write with the record, wherever it begins."""
    tb = TB(dut)
    tb.drive()
    await tb.start()
    for length in (0, 18, 60, 240):
        for address in (0x2000, 0x20F0, 0x2080):
            tb.offer(length, address=address + 0x10000 * length)
    await tb.run()
    assert len(tb.memory.writes) == 12


@cocotb.test()
async def latency_from_the_last_word(dut):
    tb = TB(dut)
    tb.drive()
    await tb.start()
    tb.offer(200, address=0x40000)
    await tb.run()
    table.check("place", tb.latency)


@cocotb.test()
async def minimum_frames_at_line_rate(dut):
    """One frame in 16.8 cycles for each port, 60 B as a whole, with a bus that is busy a third of the time."""
    tb = TB(dut)
    tb.drive()
    await tb.start()
    tb.stall, tb.slow = 0.33, 0.3
    tb.offer(*[60] * 60)
    begun = tb.cycles.number
    await tb.run()
    assert (tb.cycles.number - begun) / 60 <= 16.8
