"""plx_evb_ring: a scheduler, two feeders and their nodes; run after run without a reset, each beginning in the midst of
the one before."""

import random

import cocotb

from core import joined, part
from evb import RUN
from scheduler import (COPIES, DESCRIPTORS, EVENT, FEEDER_BITS, LIMIT, OTHER_RUN, RING_ERRORS, RUN_NUMBER, SETUP, STALE,
                       TIMEOUT, Scheduler)

FEEDERS, NODES, BUFFERS = 2, 4, 8
PARAMETERS = [{"FEEDERS": 2, "COLUMNS": 4, "NODES": 4, "BUFFERS": 8, "SLOTS": 8}]


class TB(Scheduler):
    """Nodes with two buffers each, one column a node. Feeder f has 64 (n + 1) + 8 f bytes of event n, and as many
    more as the run says."""

    def __init__(self, dut):
        super().__init__(dut, NODES, ("w_table", "w_descriptor", "w_address", "s_store_valid", "s_store_bytes",
                                      "s_done", "fault_lose", "fault_flip", "fault_bit"))
        dut.cfg_slot.value, dut.cfg_bypass_above.value = 2048, 2048
        self.run = RUN
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

    async def start(self):
        dut = self.dut
        await self.cycles.start()
        for descriptor in range(BUFFERS):
            dut.w_table.value, dut.w_descriptor.value, dut.w_address.value = 1, descriptor, descriptor << 20
            await self.cycles.cycle()
        dut.w_table.value = 0
        await self.cycles.cycle(40)
        await self.configure(NODES, {DESCRIPTORS: BUFFERS, FEEDER_BITS: 3, TIMEOUT: 5000, LIMIT: 8})

    async def begin(self, run):
        """A run begins, while the one before goes on as its messages have the number that they have."""
        await self.write(RUN_NUMBER, run)
        self.dut.s_store_valid.value = 0
        self.run = run
        await self.set_up()
        await self.enable()
        self.dut.s_store_valid.value = 3
        for descriptor in range(BUFFERS):
            await self.feedback(descriptor, run=run)

    async def triggers(self, count, rest):
        for _ in range(count):
            await self.trigger(rest)

    def expected(self, count):
        return [[(n, n % NODES + n // NODES * NODES, self.length(f, n) + 8) for n in range(count)] for f in range(FEEDERS)]


async def complete(tb, count):
    """Events of a run, each transferred by both feeders and returned."""
    await tb.triggers(count, 4)
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
        await tb.begin(run)
        await complete(tb, 7)


@cocotb.test()
async def a_set_up_in_the_midst_of_a_run_leaves_nothing_of_it(dut):
    """Of the next run with another number, and with the same."""
    tb = TB(dut)
    await tb.start()
    await tb.begin(RUN)
    for round_ in range(24):
        random.seed(round_)
        tb.slow = random.choice((3, 12, 80))
        task = cocotb.start_soon(tb.bus.write_dword(SETUP, 1)) if round_ % 3 == 0 else None
        await tb.triggers(6, random.randint(0, 3))
        await tb.cycle(random.randint(0, 2 * tb.slow))
        while task and not task.done():
            await tb.cycle()
        await tb.begin(tb.run + round_ % 2)
        await complete(tb, 6)
