"""plx_axil_cdc: accesses arrive once, in order, and each completes, for any clocks and resets."""

import random

import cocotb
from cocotb.regression import TestFactory
from cocotb.triggers import FallingEdge, RisingEdge, Timer, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiLiteRam

from clocks import Clock

# Periods in ps: core to ports, back, nearly the same.
CLOCKS = [(4000, 6400), (6400, 4000), (4000, 4002)]


class TB:
    def __init__(self, dut, clocks, idle=0.0):
        self.dut, self.share = dut, idle
        for clock, period in zip((dut.s_clk, dut.m_clk), clocks):
            cocotb.start_soon(Clock(clock, period, "ps").start())
        self.near = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.s_clk, dut.s_rst)
        self.far = AxiLiteRam(AxiLiteBus.from_prefix(dut, "m_axil"), dut.m_clk, dut.m_rst, size=1 << 14)
        for end in (self.near, self.far):
            for channel in (end.write_if.aw_channel, end.write_if.w_channel, end.write_if.b_channel,
                            end.read_if.ar_channel, end.read_if.r_channel):
                channel.set_pause_generator(self.idle())

    def idle(self):
        while True:
            yield random.random() < self.share

    async def reset(self):
        self.dut.s_rst.value = self.dut.m_rst.value = 1
        for clock in (self.dut.s_clk, self.dut.m_clk) * 4:
            await RisingEdge(clock)
        self.dut.s_rst.value = self.dut.m_rst.value = 0
        await RisingEdge(self.dut.s_clk)


async def what_is_written_is_read(dut, clocks, idle):
    tb = TB(dut, clocks, idle)
    await tb.reset()
    for _ in range(12):
        at, word = 4 * random.randrange(4096), random.getrandbits(32)
        await tb.near.write_dword(at, word)
        assert tb.far.read_dword(at) == word
        assert await tb.near.read_dword(at) == word


factory = TestFactory(what_is_written_is_read)
factory.add_option("clocks", CLOCKS)
factory.add_option("idle", [0.0, 0.5])
factory.generate_tests()


@cocotb.test()
async def single_bytes_arrive(dut):
    tb = TB(dut, CLOCKS[0])
    await tb.reset()
    await tb.near.write_dword(0x100, 0x11223344)
    await tb.near.write(0x102, b"\xaa")
    assert await tb.near.read_dword(0x100) == 0x11AA3344


@cocotb.test()
async def an_access_during_a_reset_of_the_far_side_is_answered_after_it(dut):
    tb = TB(dut, CLOCKS[0])
    await tb.reset()
    await tb.near.write_dword(8, 7)
    for delay in range(0, 60, 5):
        dut.m_rst.value = 0
        reading = cocotb.start_soon(tb.near.read_dword(8))
        await Timer(delay + 1, "ns")
        dut.m_rst.value = 1
        for _ in range(5):
            await RisingEdge(dut.m_clk)
        dut.m_rst.value = 0
        assert await with_timeout(reading, 2, "us") == 7


@cocotb.test()
async def an_access_that_the_near_side_forgot_does_no_harm(dut):
    tb = TB(dut, CLOCKS[0])
    await tb.reset()
    await tb.near.write_dword(12, 9)
    for delay in range(0, 60, 5):
        forgotten = cocotb.start_soon(tb.near.read_dword(4))
        await Timer(delay + 1, "ns")
        forgotten.kill()
        dut.s_rst.value = 1
        # Five edges of the far clock, from the first one that samples the reset.
        await RisingEdge(dut.s_clk)
        for _ in range(5):
            await RisingEdge(dut.m_clk)
        dut.s_rst.value = 0
        await FallingEdge(dut.s_clk)
        assert await with_timeout(tb.near.read_dword(12), 2, "us") == 9
