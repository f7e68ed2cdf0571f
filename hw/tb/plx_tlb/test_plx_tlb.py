"""plx_tlb: permission and translation against a model; latency of three cycles, one request a cycle; faults."""

import random

import cocotb

import cycles as table
from core import Cycles, Window, joined

PARAMETERS = [{"PORTS": 4, "ENTRIES": 128}, {"PORTS": 1, "ENTRIES": 2}]

NONE, BEYOND, OTHER = 0, 1, 2
LATENCY = 3


class TB:
    """Requests of all ports, their responses by a model of the table, and the events of faults."""

    def __init__(self, dut):
        self.dut, self.ports, self.size = dut, int(dut.PORTS.value), int(dut.ENTRIES.value)
        self.cycles = Cycles(dut)
        self.cycles.watchers.append(self.look)
        self.extra = None
        self.window = Window(dut, "entry", self.step)
        self.entries = {}
        # Waiting requests of each port; accepted requests, with their cycle and expected response.
        self.requests = [[] for _ in range(self.ports)]
        self.idle, self.taken, self.answers, self.faults, self.events = 0.0, [], 0, [], []
        self.lost = self.counted = 0
        self.event_stall, self.room_bits = 0.0, 0xFF
        for name in ("s_req_valid", "s_req_address", "s_req_length", "s_req_func", "s_req_list", "win_write",
                     "win_addr", "win_wdata", "now_stamp", "m_event_ready"):
            getattr(dut, name).value = 0
        dut.cfg_event_fault.value, dut.cfg_queue.value, dut.room.value = 1, 5, 0xFF
        self.offered = [False] * self.ports

    async def start(self):
        await self.cycles.start()

    async def step(self, extra=None):
        """One cycle."""
        self.extra = extra
        for port in range(self.ports):
            self.offered[port] = bool(self.requests[port]) and (self.offered[port] or random.random() >= self.idle)
        heads = [queue[0] if offered else (0, 0, 0, 0) for queue, offered in zip(self.requests, self.offered)]
        self.dut.s_req_valid.value = joined(self.offered, 1)
        for name, index, width in (("address", 0, 64), ("length", 1, 21), ("func", 2, 8), ("list", 3, 7)):
            getattr(self.dut, f"s_req_{name}").value = joined([head[index] for head in heads], width)
        self.dut.now_stamp.value = self.cycles.number
        self.dut.room.value = self.room_bits
        self.dut.m_event_ready.value = random.random() >= self.event_stall
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        if self.extra:
            self.extra()
        ready = int(dut.s_req_ready.value)
        assert ready & (ready - 1) == 0, "more than one granted"
        answer = int(dut.m_rsp_valid.value)
        if self.taken and self.taken[0][0] + LATENCY == self.cycles.number:
            _, port, expected = self.taken.pop(0)
            assert answer == 1 << port, "the answer is three cycles after the request"
            got = int(dut.m_rsp_address.value) if int(dut.m_rsp_hit.value) else None
            assert got == expected, f"{got} instead of {expected}"
            self.answers += 1
        else:
            assert answer == 0, "a response without a request"
        for port in range(self.ports):
            if self.offered[port] and ready >> port & 1:
                address, length, func, number = self.requests[port].pop(0)
                self.offered[port] = False
                hit, what = self.translate(address, length, func)
                self.taken.append((self.cycles.number, port, what if hit else None))
                if not hit:
                    self.faults.append((address, length, func, number, what, self.cycles.number + LATENCY))
        self.counted += int(dut.inc_faults.value)
        self.lost += int(dut.inc_events_lost.value)
        if int(dut.m_event_valid.value) and int(dut.m_event_ready.value):
            assert int(dut.m_event_queue.value) == 5
            self.events.append(int(dut.m_event_record.value))

    def translate(self, address, length, func):
        """(True, bus address), or (False, reason): by hw/rdl/tlb.rdl, the lowest entry first."""
        reason = NONE
        for number in sorted(self.entries):
            page, bus, log2, owner = self.entries[number]
            if address >> log2 != page >> log2:
                continue
            if owner != func:
                reason = OTHER
                continue
            inside = address & ((1 << log2) - 1)
            if inside + length > 1 << log2:
                return False, BEYOND
            return True, bus + inside
        return False, reason

    async def enter(self, number, page, bus, log2, owner):
        await self.remove(number)
        await self.window.write64(number * 32, page)
        await self.window.write64(number * 32 + 8, bus)
        await self.window.write(number * 32 + 16, 1 | log2 << 8 | owner << 16)
        if 12 <= log2 <= 30:
            self.entries[number] = (page, bus, log2, owner)

    async def remove(self, number):
        await self.window.write(number * 32 + 16, 0)
        self.entries.pop(number, None)

    async def settle(self, limit=3000):
        for _ in range(limit):
            if not any(self.requests) and not self.taken:
                return
            await self.step()
        raise AssertionError("requests that are never answered")

    def check_events(self):
        assert len(self.events) + self.lost == len(self.faults) == self.counted
        for sequence, (record, fault) in enumerate(zip(self.events, self.faults)):
            address, length, func, number, reason, when = fault
            bits = lambda low, width, record=record: record >> low & ((1 << width) - 1)
            assert bits(64, 32) == number and bits(96, 32) == length and bits(128, 64) == address
            assert bits(192, 32) == func and bits(224, 32) == reason and bits(384, 32) == when
            assert bits(448, 32) == sequence and bits(496, 8) == 3 and bits(504, 8) == 0


async def filled(dut, count):
    """Entries of random page sizes, unrelated virtual and bus addresses."""
    tb = TB(dut)
    await tb.start()
    for number in range(count):
        log2 = random.choice([12, 12, 13, 16, 21, 29, 30])
        await tb.enter(number, (number + 1) << 32 | random.getrandbits(32) >> log2 << log2,
                       random.getrandbits(62 - log2) << log2, log2, random.choice([0, 0, 3]))
    return tb


def some_access(tb):
    page, _, log2, owner = random.choice(list(tb.entries.values()))
    size, length = 1 << log2, random.choice([1, 16, 256, 4096, 1 << 20, (1 << 20) - 16])
    inside = random.choice([0, 1, max(size - length, 0), max(size - length, 0) + 1, random.randrange(size)])
    func = owner if random.random() < 0.9 else 7
    where = page + inside + (random.choice([0, 0, 0, 0, size, -size]))
    return where % (1 << 64), length, func, random.getrandbits(7)


@cocotb.test()
async def every_access_as_the_model_says(dut):
    tb = await filled(dut, min(int(dut.ENTRIES.value), 12))
    tb.idle, tb.event_stall = 0.3, 0.2
    for queue in tb.requests:
        queue += [some_access(tb) for _ in range(300 // tb.ports)]
    await tb.settle()
    await drain(tb)
    assert tb.answers == 300 // tb.ports * tb.ports
    assert len(tb.events) + tb.lost == len(tb.faults) == tb.counted > 20


async def drain(tb):
    tb.event_stall = 0
    for _ in range(40):
        await tb.step()


@cocotb.test()
async def a_request_in_every_cycle(dut):
    """Pipelined: as many cycles as requests, and every port has its turn."""
    tb = await filled(dut, 2)
    for queue in tb.requests:
        queue += [some_access(tb) for _ in range(40)]
    begun = tb.cycles.number
    await tb.settle()
    assert tb.cycles.number - begun == 40 * tb.ports + LATENCY
    table.check("tlb_hit", LATENCY)
    assert tb.answers == 40 * tb.ports


@cocotb.test()
async def faults_are_told_in_order_and_lost_ones_counted(dut):
    """Events are not accepted for a while: as many wait as fit, the others are counted."""
    tb = await filled(dut, 2)
    tb.room_bits = 0xFF & ~(1 << 5)
    tb.requests[0] += [(0x1000 * n, 64, 0, 1) for n in range(6)]
    await tb.settle()
    assert not tb.events and tb.lost == 0, "an event without room"
    tb.room_bits = 0xFF
    await drain(tb)
    tb.check_events()
    tb.room_bits = 0
    tb.requests[0] += [(0x1000 * n, 64, 0, 1) for n in range(12)]
    await tb.settle()
    assert tb.lost == 12 - 8
    tb.room_bits = 0xFF
    await drain(tb)
    assert len(tb.events) == 6 + 8 and tb.counted == 18


@cocotb.test()
async def an_entry_that_was_taken_away_allows_nothing(dut):
    """Removed while requests are in flight: those before succeed, those after fault."""
    tb = await filled(dut, 2)
    page, _, _, owner = tb.entries[1]
    for _ in range(5):
        tb.requests[0] += [(page, 16, owner, 2)] * 3
        await tb.step()
        await tb.step()
        saved = tb.entries[1]
        tb.requests[0].clear()
        tb.offered[0] = False
        await tb.remove(1)
        tb.requests[0].append((page, 16, owner, 2))
        await tb.settle()
        assert tb.translate(page, 16, owner) == (False, NONE)
        await tb.enter(1, *saved)
    assert len(tb.faults) == 5


@cocotb.test()
async def software_reads_what_it_wrote(dut):
    tb = await filled(dut, 2)
    for number, (page, bus, log2, owner) in tb.entries.items():
        for offset, value in ((0, page), (8, bus)):
            low, high = await tb.window.read(number * 32 + offset), await tb.window.read(number * 32 + offset + 4)
            assert low | high << 32 == value
        assert await tb.window.read(number * 32 + 16) == 1 | log2 << 8 | owner << 16
    # An unsupported page size makes no entry.
    await tb.enter(0, 0x5000, 0x7000, 11, 0)
    assert await tb.window.read(16) & 1 == 0
    dut.rst.value = 1
    await tb.step()
    dut.rst.value = 0
    assert await tb.window.read(32 + 16) & 1 == 0


@cocotb.test()
async def bytes_that_are_not_enabled_stay(dut):
    """Of the page, of what it belongs to; and only its own byte enables or disables an entry."""
    tb = TB(dut)
    await tb.start()
    await tb.enter(1, 0x1122_3344_5566_7000, 0x9000, 12, 3)
    await tb.window.access(32 + 4, 0xAABBCCDD, strobe=0b0100)
    assert await tb.window.read(32 + 4) == 0x11BB_3344
    await tb.window.access(32 + 16, 0xFFFF_FF00, strobe=0b0100)
    assert await tb.window.read(32 + 16) == 1 | 12 << 8 | 0xFF << 16
    tb.entries[1] = (0x11BB_3344_5566_7000, 0x9000, 12, 0xFF)
    tb.requests[0] += [(0x11BB_3344_5566_7010, 16, 0xFF, 0), (0x1122_3344_5566_7010, 16, 3, 0)]
    await tb.settle()
    assert tb.answers == 2 and tb.counted == 1
