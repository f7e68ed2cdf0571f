"""plx_evb_ring: a scheduler, two feeders and their nodes; run after run without a reset, each beginning in the midst of
the one before."""

import random

import cocotb
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from core import Cycles, joined, part
from evb import FEEDBACK, RUN, pack

FEEDERS, NODES, BUFFERS = 2, 4, 8
PARAMETERS = [{"FEEDERS": 2, "COLUMNS": 4, "NODES": 4, "BUFFERS": 8, "SLOTS": 8}]

ENABLE, TRIGGER_SELECT, TRIGGER_ENABLE, RING_ERRORS, EVENT, COPIES = 0x10, 0x14, 0x18, 0x24, 0x30, 0x44
NODE_COUNT, DESCRIPTORS, FEEDER_BITS, TIMEOUT, LIMIT, SETUP, BUSY = 0x84, 0x88, 0x8C, 0x9C, 0xA0, 0xA8, 0xB0
RUN_NUMBER, NODE, STALE, OTHER_RUN = 0x80, 0x1000, 0x128, 0x1A0
EXTERNAL = 2


class TB:
    """Nodes with two buffers each, one column a node. Feeder f has 64 (n + 1) + 8 f bytes of event n, and as many
    more as the run says."""

    def __init__(self, dut):
        self.dut, self.cycles, self.run = dut, Cycles(dut), RUN
        for name in ("trigger", "s_feedback_valid", "s_feedback_data", "s_decided_valid", "s_decided_data", "w_table",
                     "w_descriptor", "w_address", "s_store_valid", "s_store_bytes", "s_done", "fault_lose", "fault_flip",
                     "fault_bit"):
            getattr(dut, name).value = 0
        dut.cfg_slot.value, dut.cfg_bypass_above.value = 2048, 2048
        self.bus = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.cycles.watchers.append(self.look)
        self.left = [0] * FEEDERS  # cycles until a transfer ends
        self.slow = 6
        self.new_run()

    def new_run(self):
        self.stored = [0] * FEEDERS
        self.begun = [[] for _ in range(FEEDERS)]

    def length(self, feeder, number):
        return 64 * (number % 8 + 1) + 8 * feeder + 16 * (self.run % 3)

    def look(self):
        """Stores, and transfers that begin and end."""
        dut = self.dut
        for feeder in range(FEEDERS):
            if part(dut.s_store_valid, feeder, 1) and part(dut.s_store_ready, feeder, 1):
                self.stored[feeder] += 1
            if not part(dut.m_transfer_valid, feeder, 1):
                self.left[feeder] = 0
            elif self.left[feeder] == 0:
                self.left[feeder] = random.randint(2, self.slow)
                self.begun[feeder].append((part(dut.m_transfer_number, feeder, 32),
                                           part(dut.m_transfer_address, feeder, 64) >> 20,
                                           part(dut.m_transfer_bytes, feeder, 17)))
        if int(dut.setup.value):
            self.new_run()

    async def cycle(self, count=1):
        dut = self.dut
        for _ in range(count):
            dut.s_store_bytes.value = joined([self.length(f, self.stored[f]) for f in range(FEEDERS)], 16)
            done = 0
            for feeder in range(FEEDERS):
                if self.left[feeder] > 1:
                    self.left[feeder] -= 1
                    done |= (self.left[feeder] == 1) << feeder
            dut.s_done.value = done
            await self.cycles.cycle()

    async def work(self, coroutine):
        task = cocotb.start_soon(coroutine)
        while not task.done():
            await self.cycle()
        return task.result()

    async def write(self, at, value):
        await self.work(self.bus.write_dword(at, value))

    async def read(self, at):
        return await self.work(self.bus.read_dword(at))

    async def start(self):
        dut = self.dut
        await self.cycles.start()
        for descriptor in range(BUFFERS):
            dut.w_table.value, dut.w_descriptor.value, dut.w_address.value = 1, descriptor, descriptor << 20
            await self.cycles.cycle()
        dut.w_table.value = 0
        await self.cycles.cycle(40)
        for node in range(NODES):
            await self.write(NODE + 4 * node, node)
        for at, value in ((NODE_COUNT, NODES), (DESCRIPTORS, BUFFERS), (FEEDER_BITS, 3), (TIMEOUT, 5000), (LIMIT, 8),
                          (TRIGGER_SELECT, EXTERNAL)):
            await self.write(at, value)

    async def set_up(self, run):
        """A run begins, while the one before goes on as its messages have the number that they have."""
        await self.write(RUN_NUMBER, run)
        self.dut.s_store_valid.value = 0
        self.run = run
        await self.write(SETUP, 1)
        while await self.read(BUSY):
            pass
        await self.write(TRIGGER_ENABLE, 1)
        await self.write(ENABLE, 1)
        self.dut.s_store_valid.value = 3
        for descriptor in range(BUFFERS):
            self.dut.s_feedback_data.value = pack(FEEDBACK, run=run, descriptor=descriptor, column=descriptor % NODES)
            self.dut.s_feedback_valid.value = 1
            await self.cycle()
            self.dut.s_feedback_valid.value = 0
            await self.cycle(12)

    async def trigger(self, count, rest):
        for _ in range(count):
            self.dut.trigger.value = 1
            await self.cycle()
            self.dut.trigger.value = 0
            await self.cycle(rest)

    def expected(self, count):
        return [[(n, n % NODES + n // NODES * NODES, self.length(f, n) + 8) for n in range(count)] for f in range(FEEDERS)]


async def complete(tb, count):
    """Events of a run, each transferred by both feeders and returned."""
    await tb.trigger(count, 4)
    await tb.cycle(count * (2 * tb.slow + 60))
    assert tb.begun == tb.expected(count), tb.begun
    assert await tb.read(EVENT) == count and await tb.read(COPIES) == 0
    for at in (RING_ERRORS, STALE, OTHER_RUN):
        assert await tb.read(at) == 0, f"{at:#x}"


@cocotb.test()
async def a_second_run_is_as_complete_as_the_first(dut):
    tb = TB(dut)
    await tb.start()
    for run in (RUN, RUN + 1, RUN + 1, 0):
        await tb.set_up(run)
        await complete(tb, 7)


@cocotb.test()
async def a_set_up_in_the_midst_of_a_run_leaves_nothing_of_it(dut):
    """Of the next run with another number, and with the same."""
    tb = TB(dut)
    await tb.start()
    await tb.set_up(RUN)
    for round_ in range(24):
        random.seed(round_)
        tb.slow = random.choice((3, 12, 80))
        task = cocotb.start_soon(tb.bus.write_dword(SETUP, 1)) if round_ % 3 == 0 else None
        await tb.trigger(6, random.randint(0, 3))
        await tb.cycle(random.randint(0, 2 * tb.slow))
        while task and not task.done():
            await tb.cycle()
        await tb.set_up(tb.run + round_ % 2)
        await complete(tb, 6)
