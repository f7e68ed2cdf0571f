"""plx_functions: what a reset of a function writes, and when it has ended."""

import random

import cocotb
from cocotb.triggers import Edge

from core import Cycles, Window, joined

PARAMETERS = [{"PORTS": 4, "EVENT_QUEUES": 16}, {"PORTS": 1, "EVENT_QUEUES": 2, "TLB_ENTRIES": 4}]


class TB:
    """Registers, sources, and a bus that ends writes in their order."""

    def __init__(self, dut):
        self.dut, self.cycles = dut, Cycles(dut)
        self.ports, self.queues = int(dut.PORTS.value), int(dut.EVENT_QUEUES.value)
        self.entries = int(dut.TLB_ENTRIES.value)
        self.owners = [[random.randrange(8) for _ in range(number)] for number in (self.ports, self.queues, 8)]
        self.writes, self.done, self.stall, self.extra = [], [], 0.5, None
        self.faults = Window(dut, "fault", self.access)
        self.cycles.watchers.append(self.look)
        dut.cfg_port_owner.value = joined(self.owners[0], 3)
        cocotb.start_soon(self.look_up())
        dut.cfg_page_owner.value = joined(self.owners[2], 3)
        for name in ("win_write", "win_addr", "win_wdata", "win_wstrb"):
            getattr(dut, name).value = 0
        for name in ("s_reset", "s_flr", "m_write_ready", "s_irq_busy", "s_accepted", "s_ended", "s_placing"):
            getattr(dut, name).value = 0
        dut.s_ring_quiet.value, dut.s_event_rest.value = (1 << self.ports) - 1, 7

    async def look_up(self):
        """Owners of queues, in the same cycle."""
        while True:
            asked = self.dut.m_owner_queue.value
            self.dut.s_owner.value = self.owners[1][int(asked) % self.queues] if asked.is_resolvable else 0
            await Edge(self.dut.m_owner_queue)

    def look(self):
        dut = self.dut
        if self.extra:
            self.extra()
        if int(dut.m_write_valid.value) and int(dut.m_write_ready.value):
            self.writes.append((int(dut.m_write_func.value), int(dut.m_write_vector.value),
                                int(dut.m_write_offset.value), int(dut.m_write_data.value)))
            assert int(dut.resetting.value) == 1 << int(dut.m_write_func.value)
        for function in range(8):
            if int(dut.m_flr_done.value) >> function & 1:
                self.done.append(function)

    def expected(self, function):
        """The writes for a function, in any order."""
        found = []
        for port in (port for port in range(self.ports) if self.owners[0][port] == function):
            at = 0x18000 + 0x2000 * port
            found += [(0, at + 0x200 + 4 * stream, 0) for stream in range(16)]
            found += [(0, 0xA018 + 0x40 * (32 * port + number), 0) for number in range(17)]
            found += [(0, at + 0x24, 0), (0, at + 0x5C, 0), (0, at + 0x34, 0x104), (0, at + 0x40, 2), (0, at + 8, 0x22),
                      (0, 0x6108 + 0x40 * port, 0x300)]
        for queue in (queue for queue in range(self.queues) if self.owners[1][queue] == function):
            found += [(0, 0x14008 + 0x40 * queue, 0), (1, 16 * queue + 12, 1)]
        return found + [(0, 0x5010 + 0x20 * entry, 0) for entry in range(self.entries)
                        if self.owners[2][entry // 16] == function]

    async def access(self, extra):
        """A cycle of an access to a register."""
        self.extra = extra
        await self.step()
        self.extra = None

    async def step(self, count=1):
        for _ in range(count):
            self.dut.m_write_ready.value = random.random() >= self.stall
            await self.cycles.cycle()

    async def until_written(self):
        """All registers are written: nothing for some time."""
        last = -1
        while last != len(self.writes):
            last = len(self.writes)
            await self.step(900)

    async def until_done(self):
        for _ in range(20000):
            if int(self.dut.resetting.value) == 0:
                return
            await self.step()
        raise AssertionError("the reset goes on for ever")

    async def begin(self, function):
        self.dut.s_reset.value = 1 << function
        await self.step()
        self.dut.s_reset.value = 0


async def started(dut):
    tb = TB(dut)
    await tb.cycles.start()
    return tb


@cocotb.test()
async def a_reset_writes_what_is_the_functions_and_nothing_else(dut):
    tb = await started(dut)
    for function in range(8):
        tb.writes.clear()
        await tb.begin(function)
        await tb.step(4)
        assert int(dut.resetting.value) == 1 << function
        await tb.until_done()
        assert all(write[0] == function for write in tb.writes)
        assert sorted(write[1:] for write in tb.writes) == sorted(tb.expected(function))
    assert not tb.done, "nobody asked for a function level reset"


@cocotb.test()
async def a_function_level_reset_of_several_is_done_once_for_each(dut):
    tb = await started(dut)
    tb.stall = 0.0
    dut.s_flr.value = 0b10100101
    for _ in range(8):
        await tb.step(1200)
        dut.s_flr.value = int(dut.s_flr.value) & ~sum(1 << function for function in tb.done)
    assert sorted(tb.done) == [0, 2, 5, 7] and int(dut.resetting.value) == 0
    # Asked for again, it comes again.
    dut.s_flr.value = 4
    await tb.step(1200)
    assert tb.done[4:] == [2]


@cocotb.test()
async def a_reset_that_waits_for_another_is_in_progress(dut):
    tb = await started(dut)
    tb.stall = 0.0
    tb.owners[0][0] = 3
    dut.cfg_port_owner.value = joined(tb.owners[0], 3)
    await tb.begin(1)
    await tb.step(20)
    await tb.begin(3)
    await tb.step()
    # From the command on, until it is done.
    while int(dut.m_due.value):
        assert int(dut.m_due.value) & 8, "the second one is not done"
        await tb.step()
    await tb.step(10)
    assert sorted(write[1:] for write in tb.writes if write[0] == 3) == sorted(tb.expected(3))


@cocotb.test()
async def it_waits_for_each_source_and_for_the_writes_before_it_ends(dut):
    tb = await started(dut)
    port, function = 0, tb.owners[0][0]
    others = [other for other in range(tb.ports) if tb.owners[0][other] != function]
    busy = {"s_placing": 1, "s_ring_quiet": 0, "s_event_rest": 0, "s_irq_busy": 1}
    for held in busy:
        # Ports of other functions are always busy.
        foreign = sum(1 << other for other in others)
        full = (1 << tb.ports) - 1
        dut.s_placing.value, dut.s_ring_quiet.value = foreign, full & ~foreign
        if held == "s_placing":
            dut.s_placing.value = foreign | 1 << port
        elif held == "s_ring_quiet":
            dut.s_ring_quiet.value = full & ~foreign & ~(1 << port)
        else:
            getattr(dut, held).value = busy[held]
        await tb.begin(function)
        await tb.until_written()
        assert int(dut.resetting.value) == 1 << function, held
        # At rest for one cycle is enough, events for three; three writes have been accepted by then, one more after.
        dut.s_accepted.value = 1
        await tb.step(3)
        dut.s_accepted.value = 0
        dut.s_placing.value, dut.s_ring_quiet.value = foreign, full & ~foreign
        dut.s_event_rest.value, dut.s_irq_busy.value = 7, 0
        await tb.step(4)
        dut.s_placing.value, dut.s_event_rest.value, dut.s_irq_busy.value = full, 0, 1
        await tb.step(20)
        for ended in range(3):
            assert int(dut.resetting.value) == 1 << function, f"{held}: {ended} writes have ended"
            dut.s_accepted.value, dut.s_ended.value = ended == 1, 1
            await tb.step()
            dut.s_accepted.value = dut.s_ended.value = 0
            await tb.step(3)
        assert int(dut.resetting.value) == 0, held
        dut.s_event_rest.value, dut.s_irq_busy.value = 7, 0
        dut.s_ended.value = 1
        await tb.step()
        dut.s_ended.value = 0


@cocotb.test()
async def events_of_others_that_never_end_do_not_hold_up_a_reset(dut):
    """Their places rest one after the other, never all at once."""
    tb = await started(dut)
    dut.s_event_rest.value = 0
    await tb.begin(5)
    await tb.until_written()
    # The second place had not rested before the first one, nor the third before the second.
    for rest in (4, 2, 1, 1, 4, 2, 1, 0):
        dut.s_event_rest.value = rest
        await tb.step()
        dut.s_event_rest.value = 0
        await tb.step(4)
        assert int(dut.resetting.value) == 1 << 5, rest
    dut.s_event_rest.value = 4
    await tb.step()
    dut.s_event_rest.value = 0
    await tb.step(6)
    assert int(dut.resetting.value) == 0


@cocotb.test()
async def a_reset_of_a_function_forgets_where_its_faults_are_told(dut):
    """Not those of others; and nothing is written while it lasts."""
    tb = await started(dut)
    dut.s_event_rest.value = 0

    async def check(now):
        assert int(dut.cfg_event_fault.value) == sum((value & 1) << row for row, value in enumerate(now))
        assert int(dut.cfg_fault_queue.value) == joined([value >> 8 for value in now], 8)
        assert [await tb.faults.read(4 * row) for row in range(8)] == now

    await check([0] * 8)
    now = [(17 * row + 3) << 8 | 1 for row in range(8)]
    for row, value in enumerate(now):
        await tb.faults.write(4 * row, value | 0xFFFF00FE)
    await check(now)
    # By bytes.
    await tb.faults.access(8, 0xFFFFFFFF, strobe=2)
    await tb.faults.access(12, 0xFFFFFFFE, strobe=1)
    now[2], now[3] = 0xFF01, now[3] & 0xFF00
    await check(now)
    for function in (5, 0):
        dut.s_event_rest.value = 0
        await tb.begin(function)
        await tb.step(2)
        now[function] = 0
        await check(now)
        await tb.faults.write(4 * function, 0x701)
        await check(now)
        other = (function + 1) % 8
        await tb.faults.write(4 * other, 0x901)
        now[other] = 0x901
        await check(now)
        dut.s_event_rest.value = 7
        await tb.until_done()
        await check(now)
        await tb.faults.write(4 * function, 0xB01)
        now[function] = 0xB01
        await check(now)
    dut.rst.value = 1
    await tb.step()
    dut.rst.value = 0
    await check([0] * 8)
