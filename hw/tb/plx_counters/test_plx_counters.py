"""plx_counters: no increment is lost or added, for any reads meanwhile."""

import random

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

from clocks import Clock

PARAMETERS = [{"COUNT": 5, "AMOUNT_W": 14, "SUMS": 0b01010}, {"COUNT": 32, "AMOUNT_W": 14, "SUMS": 0b10},
              {"COUNT": 3, "AMOUNT_W": 1, "SUMS": 0}]


class TB:
    def __init__(self, dut):
        self.dut = dut
        self.count, self.bits, self.sums = dut.COUNT.value, dut.AMOUNT_W.value, dut.SUMS.value
        self.expected = [0] * self.count
        cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())

    async def start(self):
        dut = self.dut
        dut.amount.value = dut.win_valid.value = dut.win_write.value = dut.win_addr.value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        self.expected = [0] * self.count
        return self

    async def add(self, *amounts):
        """Counts these in this cycle."""
        self.dut.amount.value = sum(amount << i * self.bits for i, amount in enumerate(amounts))
        for i, amount in enumerate(amounts):
            self.expected[i] += amount if self.sums >> i & 1 else amount != 0
        await RisingEdge(self.dut.clk)
        self.dut.amount.value = 0

    async def access(self, word, write=0):
        dut = self.dut
        dut.win_valid.value, dut.win_write.value, dut.win_addr.value = 1, write, word
        while True:
            await FallingEdge(dut.clk)
            ready, data = dut.win_ready.value == 1, dut.win_rdata.value
            await RisingEdge(dut.clk)
            if ready:
                dut.win_valid.value = 0
                # The next access is not in the same cycle.
                await RisingEdge(dut.clk)
                return data.integer if not write else None

    async def read(self, index):
        low = await self.access(2 * index)
        return low | await self.access(2 * index + 1) << 32

    async def settle(self):
        await ClockCycles(self.dut.clk, 2 * self.count)
        assert [await self.read(i) for i in range(self.count)] == self.expected


@cocotb.test()
async def nothing_is_lost(dut):
    """Every counter in every cycle, with reads and writes at the same time."""
    tb = await TB(dut).start()
    await tb.settle()
    busy = cocotb.start_soon(reads(tb))
    for _ in range(300):
        await tb.add(*[random.getrandbits(min(5, tb.bits)) for _ in range(tb.count)])
    busy.kill()
    dut.win_valid.value = 0
    await RisingEdge(dut.clk)
    await tb.settle()


async def reads(tb):
    while True:
        await tb.access(random.randrange(2 * tb.count), random.random() < 0.2)


@cocotb.test()
async def the_longest_frames(dut):
    """Amounts at their largest, as far apart as frames of that length are."""
    tb = await TB(dut).start()
    for _ in range(4):
        await tb.add(*[(1 << tb.bits) - 1] * tb.count)
        await ClockCycles(dut.clk, 2 * tb.count)
    await tb.settle()


@cocotb.test()
async def high_half_belongs_to_low_half(dut):
    """A counter that carries between the two reads returns its old value."""
    tb = await TB(dut).start()
    await ClockCycles(dut.clk, 2 * tb.count)
    # 2^32 frames would take too long.
    dut.ram.memory[0].value = 0xFFFFFFFF
    low = await tb.access(0)
    assert low == 0xFFFFFFFF
    await tb.add(1)
    await ClockCycles(dut.clk, 2 * tb.count)
    assert await tb.access(1) == 0
    assert await tb.read(0) == 1 << 32


@cocotb.test()
async def a_reset_clears(dut):
    tb = await TB(dut).start()
    await tb.add(*[1] * tb.count)
    await tb.settle()
    await tb.start()
    await tb.settle()


@cocotb.test()
async def behind_the_last(dut):
    tb = await TB(dut).start()
    for word in range(2 * tb.count, 64):
        assert await tb.access(word) == 0
