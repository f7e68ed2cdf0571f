"""Shared by the benches that have the event builder's scheduler: registers, set-up, triggers, feedback."""

import cocotb
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from core import Cycles
from evb import FEEDBACK, RUN, pack

ENABLE, TRIGGER_SELECT, TRIGGER_ENABLE, STATE, RING_ERRORS, OVERFLOW, EVENT, PASSED, PEAK, INPUT, OUTPUT, COPIES = (
    0x10, 0x14, 0x18, 0x1C, 0x24, 0x2C, 0x30, 0x34, 0x38, 0x3C, 0x40, 0x44)
RETURNED, PENDING, COUNTERS, STALE, OTHER_RUN = 0x48, 0x4C, 0x100, 0x128, 0x1A0
RUN_NUMBER, NODE_COUNT, DESCRIPTORS, FEEDER_BITS, LOOPS, TIMEOUT, LIMIT = 0x80, 0x84, 0x88, 0x8C, 0x98, 0x9C, 0xA0
SETUP, COMMAND, BUSY, COLUMN, NODE = 0xA8, 0xAC, 0xB0, 0x400, 0x1000
EXTERNAL = 2


class Scheduler:
    """The base of a bench. Node n is in column n % `columns`, and so is descriptor n."""

    def __init__(self, dut, columns, inputs):
        """`inputs` are 0 at first, as are those of triggers, feedback and decisions."""
        self.dut, self.cycles, self.columns = dut, Cycles(dut), columns
        self.cycles.watchers.append(self.look)
        for name in ("trigger", "s_feedback_valid", "s_feedback_data", "s_decided_valid", "s_decided_data", *inputs):
            getattr(dut, name).value = 0
        self.bus = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)

    def look(self):
        """Once a cycle, with all signals settled."""

    async def cycle(self, count=1):
        await self.cycles.cycle(count)

    async def work(self, coroutine):
        """Cycles until a register access is done."""
        task = cocotb.start_soon(coroutine)
        while not task.done():
            await self.cycle()
        return task.result()

    async def write(self, at, value):
        await self.work(self.bus.write_dword(at, value))

    async def read(self, at):
        return await self.work(self.bus.read_dword(at))

    async def configure(self, nodes, settings):
        """Columns of the nodes, registers, and triggers from outside."""
        for node in range(nodes):
            await self.write(NODE + 4 * node, node % self.columns)
        for at, value in {NODE_COUNT: nodes, **settings, TRIGGER_SELECT: EXTERNAL}.items():
            await self.write(at, value)

    async def idle(self):
        """Until a set-up or a command has ended."""
        while await self.read(BUSY):
            pass

    async def set_up(self):
        await self.write(SETUP, 1)
        await self.idle()

    async def enable(self):
        await self.write(TRIGGER_ENABLE, 1)
        await self.write(ENABLE, 1)

    async def feedback(self, descriptor, number=0, generation=0, column=None, run=RUN):
        dut, own = self.dut, descriptor % self.columns
        dut.s_feedback_data.value = pack(FEEDBACK, run=run, number=number, generation=generation, descriptor=descriptor,
                                         column=own if column is None else column)
        dut.s_feedback_valid.value = 1
        await self.cycle()
        dut.s_feedback_valid.value = 0
        await self.cycle(16)

    async def trigger(self, rest=12):
        """Returns the cycle of the trigger."""
        self.dut.trigger.value = 1
        await self.cycle()
        self.dut.trigger.value = 0
        at = self.cycles.number - 1
        await self.cycle(rest)
        return at
