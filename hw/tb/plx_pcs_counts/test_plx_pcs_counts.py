"""plx_pcs_counts: each count of the received clock is counted once in the other."""

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from clocks import Clock

PERIOD = 6400
FLAGS = {"s_ber": "inc_ber", "s_errored_block": "inc_errored_blocks", "s_deleted": "inc_deleted",
         "s_overflow": "inc_overflow"}
ERRORS = ("s_prbs31_errors", "inc_prbs31_errors")
PAIRS = (*FLAGS.items(), ERRORS)


class TB:
    def __init__(self, dut):
        self.dut, self.rate, self.sent, self.seen, self.most = dut, 0.0, [0] * 5, [0] * 5, [0] * 5

    async def start(self, faster=0, phase=1700):
        """The received clock is faster by some parts per million."""
        dut = self.dut
        for name, _ in PAIRS:
            getattr(dut, name).value = 0
        dut.rst_rx.value = dut.rst_net.value = 1
        self.net = cocotb.start_soon(Clock(dut.clk_net, PERIOD, "ps").start())
        await Timer(phase, "ps")
        period = round(PERIOD / (1 + faster / 1e6) / 2) * 2
        self.received = cocotb.start_soon(Clock(dut.clk_rx_net, period, "ps").start())
        await Timer(20 * PERIOD, "ps")
        dut.rst_rx.value = 0
        await Timer(5 * PERIOD, "ps")
        dut.rst_net.value = 0
        await RisingEdge(dut.clk_net)
        for task in (self.send(), self.watch()):
            cocotb.start_soon(task)
        return self

    async def send(self):
        dut = self.dut
        while True:
            await FallingEdge(dut.clk_rx_net)
            for i, (name, _) in enumerate(PAIRS):
                most = 66 if name == ERRORS[0] else 1
                value = random.choice((most, random.randint(1, most))) if random.random() < self.rate else 0
                getattr(dut, name).value = value
                self.sent[i] += value

    async def watch(self):
        dut = self.dut
        while True:
            await FallingEdge(dut.clk_net)
            values = [getattr(dut, name).value.integer for _, name in PAIRS]
            self.seen = [seen + value for seen, value in zip(self.seen, values)]
            self.most = [max(pair) for pair in zip(self.most, values)]

    async def run(self, rate, cycles):
        self.rate = rate
        await Timer(cycles * PERIOD, "ps")

    async def settle(self):
        await self.run(0.0, 40)


@cocotb.test()
async def each_is_counted_once(dut):
    """Seldom, often, in each cycle; clocks of any phase, 200 ppm apart, and far more."""
    for faster, phase in ((0, 100), (200, 3100), (-200, 6300), (40_000, 1000)):
        tb = await TB(dut).start(faster, phase)
        for rate in (0.01, 0.4, 1.0):
            await tb.run(rate, 600)
        await tb.settle()
        assert tb.seen == tb.sent and min(tb.sent) > 600, (faster, tb.seen, tb.sent)
        tb.net.kill()
        tb.received.kill()


@cocotb.test()
async def a_clock_of_ports_that_stands_loses_counts_and_adds_none(dut):
    tb = await TB(dut).start()
    await tb.run(0.5, 300)
    await tb.settle()
    assert tb.seen == tb.sent
    tb.net.kill()
    await tb.run(1.0, 500)
    await tb.settle()
    # 16 words of one or 66 are in the queue, and amounts wait that are as great as they can be.
    tb.seen, tb.sent = [0] * 5, [0] * 5
    cocotb.start_soon(Clock(dut.clk_net, PERIOD, "ps").start())
    await tb.settle()
    assert tb.seen[:4] == [16 + 3] * 4 and tb.most == [3, 3, 3, 3, 255], (tb.seen, tb.most)
    before = list(tb.seen)
    await tb.run(0.3, 500)
    await tb.settle()
    assert [seen - was for seen, was in zip(tb.seen, before)] == tb.sent


@cocotb.test()
async def a_reset_leaves_nothing(dut):
    """In the middle of many: none of before it is counted after."""
    tb = await TB(dut).start()
    await tb.run(1.0, 100)
    dut.rst_rx.value = dut.rst_net.value = 1
    await tb.run(1.0, 20)
    tb.rate = 0.0
    await Timer(3 * PERIOD, "ps")
    dut.rst_rx.value = 0
    await Timer(4 * PERIOD, "ps")
    tb.seen, tb.sent = [0] * 5, [0] * 5
    dut.rst_net.value = 0
    await tb.settle()
    assert tb.seen == [0] * 5
    await tb.run(0.5, 200)
    await tb.settle()
    assert tb.seen == tb.sent
