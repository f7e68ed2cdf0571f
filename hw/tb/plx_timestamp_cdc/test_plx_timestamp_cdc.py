"""plx_timestamp_cdc: the output is a recent value, and never decreases."""

import cocotb
from cocotb.triggers import FallingEdge

from clocks import Clock


@cocotb.test()
async def it_is_late_by_a_few_cycles_and_never_wrong(dut):
    dut.s_cycle_ts.value = now = (1 << 32) - 100
    dut.m_rst.value = 1
    cocotb.start_soon(Clock(dut.s_clk, 6400, "ps").start())
    cocotb.start_soon(Clock(dut.m_clk, 4000, "ps").start())
    for _ in range(8):
        await FallingEdge(dut.m_clk)
    dut.m_rst.value = 0

    async def count():
        nonlocal now
        while True:
            await FallingEdge(dut.s_clk)
            now += 1
            dut.s_cycle_ts.value = now

    cocotb.start_soon(count())
    for _ in range(8):
        await FallingEdge(dut.m_clk)
    last, behind = 0, set()
    for _ in range(600):
        await FallingEdge(dut.m_clk)
        seen = dut.m_cycle_ts.value.integer
        assert last <= seen <= last + 1 or not last
        last = seen
        behind.add(now - seen)
    assert now > 1 << 32 and behind <= {2, 3, 4}, behind
