"""plx_rx_dma_writer: payloads of all lengths and ends at their addresses in memory, cut-through; one commit
for each."""

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
PAGE = 4096


class Payload:
    """The input, and the responses of `clop` and `xlate`: a page for each 4 KiB, none behind another. `faults`: the
    number of the page that is missing."""

    def __init__(self, length, user=GOOD, known=True, bound=None, stride=0, select=0, faults=None, address=None):
        self.data, self.user, self.known = random.randbytes(length), user, known
        self.bound, self.stride, self.select, self.faults = length if bound is None else bound, stride, select, faults
        self.address = random.randrange(1 << 50) * 16 if address is None else address
        self.pages = [random.randrange(1 << 51) * 2 for _ in range((self.address % PAGE + self.space) // PAGE + 1)]
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
        last = (self.address % PAGE + len(self.expected()) - 1) // PAGE
        return 4 if self.faults is not None and self.faults <= last else 3 if len(self.data) > self.bound else 0

    def bus(self, address):
        return self.pages[address // PAGE - self.address // PAGE] * PAGE + address % PAGE

    def pieces(self, length):
        """(address, bytes) of its first bytes, in each page."""
        at, end = self.address, self.address + length
        while at < end:
            there = min(PAGE - at % PAGE, end - at)
            yield at, there
            at += there

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
        self.lookups = [3]
        self.word = self.select_at = self.last_in = self.latency = None
        self.taken = self.open = 0
        # The translation that is asked for, and when its response comes; the page in use, with its epoch.
        self.asked = self.xlate_at = self.used = None
        self.epoch = 0

    async def start(self):
        await self.cycles.start()

    def offer(self, *lengths, **what):
        for length in lengths:
            payload = Payload(length, **what)
            for address, there in payload.pieces(payload.space):
                self.memory.register(payload.bus(address), there)
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
        for name in ("select", "commit"):
            getattr(dut, f"m_{name}_ready").value = random.random() >= self.slow
        dut.s_select_valid.value = self.select_at == self.cycles.number
        dut.s_xlate_valid.value = self.xlate_at == self.cycles.number
        first = self.waiting[0] if self.waiting else Payload(0)
        dut.s_select_status.value, dut.s_select_address.value = first.select, first.address
        dut.s_select_sequence.value, dut.s_select_bare.value = first.sequence, first.stride != 0
        dut.s_select_stride.value, dut.s_select_func.value = first.stride, first.stream
        dut.s_xlate_hit.value, dut.s_xlate_address.value, dut.s_xlate_epoch.value = 0, 0, self.epoch
        if self.asked is not None:
            dut.s_xlate_hit.value = self.asked // PAGE - first.address // PAGE != first.faults
            dut.s_xlate_address.value = first.bus(self.asked)
        ready = random.random() >= self.stall
        dut.m_desc_ready.value = ready and self.writes.descriptor is None
        dut.m_data_tready.value = ready and self.writes.descriptor is not None
        dut.m_accepted.value = self.taken > 0
        self.taken -= self.taken > 0
        dut.now_cycle_ts.value = self.cycles.number

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
            assert self.open == 0 and self.used is None, "two places at a time"
            self.open, self.select_at = 1, now + 2
            assert int(dut.m_select_list.value) == int(dut.PORT.value) * 32 + first.stream
            assert int(dut.m_select_length.value) == first.bound
        self.translation(now)
        if int(dut.m_desc_valid.value) and self.latency is None and self.last_in is not None:
            self.latency = now - self.last_in
        if self.moved("m_desc"):
            length = int(dut.m_desc_length.value)
            address = int(dut.m_desc_address.value)
            assert length <= 256 and not self.waiting[0].select
            assert self.used and address // PAGE == (address + length - 1) // PAGE == self.used[0], "of another page"
            self.writes.descriptor_taken(address, length)
        if self.moved("m_data"):
            self.taken += self.writes.word_taken(int(dut.m_data_tdata.value), int(dut.m_data_tlast.value))
        if self.moved("m_commit"):
            self.committed(self.waiting.pop(0))

    def translation(self, now):
        """One at a time, from its response until all writes in it have been accepted."""
        dut = self.dut
        if int(dut.m_xlate_done.value):
            assert self.used and self.taken == 0 and self.writes.descriptor is None, "done before its writes were"
            assert int(dut.m_xlate_done_epoch.value) == self.used[1]
            self.used = None
        if self.xlate_at == now:
            first = self.waiting[0]
            assert int(dut.m_xlate_valid.value) and self.used is None
            if int(dut.s_xlate_hit.value):
                self.used = (first.bus(self.asked) // PAGE, self.epoch)
            self.asked = self.xlate_at = None
            self.epoch = random.randrange(2)
        elif int(dut.m_xlate_valid.value):
            first, address = self.waiting[0], int(dut.m_xlate_address.value)
            assert first.select == 0 and first.address <= address < first.address + first.space
            assert int(dut.m_xlate_length.value) == PAGE - address % PAGE
            assert int(dut.m_xlate_func.value) == first.stream
            assert int(dut.m_xlate_list.value) == int(dut.PORT.value) * 32 + first.stream
            assert self.asked in (None, address), "a request was changed"
            if self.asked is None:
                self.asked, self.xlate_at = address, now + random.choice(self.lookups)
        else:
            assert self.asked is None, "a request was taken back"

    def committed(self, first):
        dut = self.dut
        assert self.taken == 0 and self.writes.descriptor is None, "a commit before its payload was taken"
        self.open = 0
        assert int(dut.m_commit_status.value) == first.outcome
        if first.outcome == 0:
            assert int(dut.m_commit_length.value) == len(first.data)
            assert int(dut.m_commit_timestamp_ns.value) == first.stamp
            assert int(dut.m_commit_timestamp_valid.value) == first.stamped
            assert int(dut.m_commit_cycle_ts_mac.value) == first.mac
            assert int(dut.m_commit_cycle_ts_parsed.value) == first.parsed
            assert self.cycles.number - 300 < int(dut.m_commit_cycle_ts_placed.value) <= self.cycles.number
            expected = first.expected()
            found = b"".join(self.memory.read(first.bus(address), there)
                             for address, there in first.pieces(len(expected)))
            assert found == expected
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
    user = random.choice([GOOD] * 6 + [BAD, MALFORMED, VERSION])
    # A payload that is lost for two reasons has the one that is found first.
    faults = random.choice([None] * 12 + [0, 1]) if user == GOOD and length <= bound else None
    address = random.choice([None, random.randrange(1, 1 << 40) * PAGE - 16 * random.randrange(40)])
    tb.offer(length, user=user, known=known, bound=bound, stride=stride, select=random.choice([0] * 9 + [1, 2]),
             faults=faults, address=address)


@cocotb.test()
async def payloads_of_all_kinds_lie_where_they_should(dut):
    """Also longer than announced, refused, faulted, bad at the end; no write is outside its space."""
    for idle, stall, slow in ((0, 0, 0), (0.3, 0.5, 0.3), (0.7, 0, 0), (0, 0.8, 0.2)):
        tb = TB(dut)
        tb.drive()
        await tb.start()
        tb.idle, tb.stall, tb.slow, tb.lookups = idle, stall, slow, [3, 4, 30]
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
    tb.offer(*[60] * 600)
    begun = tb.cycles.number
    await tb.run()
    each = (tb.cycles.number - begun) / 600
    assert each <= 16.8, each


@cocotb.test()
async def payloads_lie_in_pages_that_do_not_follow_each_other(dut):
    """Around the end of 4 KiB, from each unit before it; and of 9000 B, through three pages. Also with a record that
    is written last, in the first page."""
    tb = TB(dut)
    tb.drive()
    await tb.start()
    page = 1 << 30
    for units in range(1, 20):
        for length in (0, 8, 16 * units - 16, 16 * units, 16 * units + 8, 700):
            known, stride = random.random() < 0.5, random.choice([0, 0, (length + 15) // 16 + 1])
            page += 16
            tb.offer(length, known=known, bound=length + (not known) * 40, stride=stride, address=page * PAGE - 16 * units)
    for known in (True, False):
        tb.offer(9000, known=known, bound=9000 + (not known) * 600, address=(page + 99) * PAGE - 16)
    await tb.run(200000)
    assert all(payload.outcome == 0 for payload in tb.done) and len(tb.done) == 19 * 6 + 2


@cocotb.test()
async def a_missing_page_costs_its_payload_only(dut):
    """The second or third page of a payload: what was written remains beyond the write pointer."""
    tb = TB(dut)
    tb.drive()
    await tb.start()
    for faults in (0, 1, 2, None):
        tb.offer(9000, faults=faults, known=False, bound=9100, address=(1 << 30) - 32)
        tb.offer(100)
    await tb.run()
    assert [payload.outcome for payload in tb.done] == [4, 0, 4, 0, 4, 0, 0, 0]
