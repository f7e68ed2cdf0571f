"""plx_sync_reset and plx_sync_bit between the clocks of the card."""

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

from clocks import Clock

CLOCKS = 6400, 4000


async def start(dut):
    dut.s_level.value = 0
    dut.rst_async.value = 1
    running = [cocotb.start_soon(Clock(clock, period, "ps").start())
               for clock, period in zip((dut.s_clk, dut.m_clk), CLOCKS)]
    await ClockCycles(dut.s_clk, 8)
    dut.rst_async.value = 0
    await ClockCycles(dut.s_clk, 12)
    return running


@cocotb.test()
async def reset_begins_at_once_and_ends_with_the_clock(dut):
    """Also while the clock is stopped; it ends four edges after its cause, and at an edge."""
    running = await start(dut)
    assert dut.s_rst.value == 0 and dut.m_rst.value == 0
    for clock in running:
        clock.kill()
    await Timer(1, "ns")
    dut.rst_async.value = 1
    await Timer(1, "ns")
    assert dut.s_rst.value == 1 and dut.m_rst.value == 1
    dut.rst_async.value = 0
    await Timer(1, "ns")
    assert dut.s_rst.value == 1 and dut.m_rst.value == 1
    cocotb.start_soon(Clock(dut.m_clk, 4000, "ps").start(start_high=False))
    edges = 0
    while dut.m_rst.value == 1:
        await RisingEdge(dut.m_clk)
        await FallingEdge(dut.m_clk)
        edges += 1
    assert edges == 4


@cocotb.test()
async def levels_follow(dut):
    """Two edges later."""
    await start(dut)
    for level in (1, 0, 1):
        await FallingEdge(dut.m_clk)
        dut.s_level.value = level
        await ClockCycles(dut.m_clk, 1)
        await FallingEdge(dut.m_clk)
        assert dut.m_level.value != level
        await FallingEdge(dut.m_clk)
        assert dut.m_level.value == level
