"""sync_reset, plx_sync_bit, plx_sync_pulse between the clocks of the card, both ways."""

import random

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer

from clocks import Clock

CLOCKS = ((6400, 4000), (4000, 6400))


async def start(dut, clocks):
    dut.s_level.value = dut.s_pulse.value = 0
    dut.rst_async.value = 1
    running = [cocotb.start_soon(Clock(clock, period, "ps").start())
               for clock, period in zip((dut.s_clk, dut.m_clk), clocks)]
    await ClockCycles(dut.s_clk, 8)
    dut.rst_async.value = 0
    await ClockCycles(dut.s_clk, 12)
    return running


@cocotb.test()
async def reset_begins_at_once_and_ends_with_the_clock(dut):
    """Also while the clock is stopped; it ends four edges after its cause, and at an edge."""
    running = await start(dut, CLOCKS[0])
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
async def every_pulse_is_one_pulse(dut):
    """As close together as they may be: none lost, none doubled."""
    for clocks in CLOCKS:
        running = await start(dut, clocks)
        seen = 0

        async def count():
            nonlocal seen
            while True:
                await RisingEdge(dut.m_clk)
                seen += dut.m_pulse.value.integer

        running.append(cocotb.start_soon(count()))
        for _ in range(40):
            dut.s_pulse.value = 1
            await RisingEdge(dut.s_clk)
            dut.s_pulse.value = 0
            await Timer(3 * max(clocks) + random.randrange(6000), "ps")
            await RisingEdge(dut.s_clk)
        await ClockCycles(dut.m_clk, 6)
        assert seen == 40
        for task in running:
            task.kill()


@cocotb.test()
async def levels_follow(dut):
    """Two edges later."""
    await start(dut, CLOCKS[0])
    for level in (1, 0, 1):
        await FallingEdge(dut.m_clk)
        dut.s_level.value = level
        await ClockCycles(dut.m_clk, 1)
        await FallingEdge(dut.m_clk)
        assert dut.m_level.value != level
        await FallingEdge(dut.m_clk)
        assert dut.m_level.value == level
