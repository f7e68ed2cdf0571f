"""plx_prbs31_gen: figure 49-9, a bit at a time."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from clocks import Clock

PARAMETERS = [{"WIDTH": 66}, {"WIDTH": 20}]


@cocotb.test()
async def pattern_is_that_of_figure_49_9(dut):
    width = dut.WIDTH.value
    cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
    dut.enable.value, dut.rst.value = 0, 1
    await ClockCycles(dut.clk, 3)
    dut.rst.value, dut.enable.value = 0, 1
    register = [1] * 31
    for number in range(400):
        await RisingEdge(dut.clk)
        bits = dut.pattern.value.integer
        for i in range(width):
            # S27 and S30 of the figure; the output is inverted.
            bit = register[27] ^ register[30]
            register = [bit, *register[:-1]]
            assert bits >> i & 1 == 1 - bit, f"bit {i} of cycle {number}"
