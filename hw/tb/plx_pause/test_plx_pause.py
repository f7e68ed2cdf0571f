"""plx_pause: quanta of 512 bit times."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge

from clocks import Clock


async def start(dut):
    cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
    dut.pause_valid.value = dut.pause_quanta.value = 0
    dut.cfg_pause.value = dut.rst.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0


async def pause(dut, quanta):
    dut.pause_valid.value, dut.pause_quanta.value = 1, quanta
    await RisingEdge(dut.clk)
    dut.pause_valid.value = 0
    await RisingEdge(dut.clk)


async def length(dut):
    cycles = 0
    while dut.paused.value == 1:
        cycles += 1
        await RisingEdge(dut.clk)
    return cycles


@cocotb.test()
async def lasts_for_its_quanta(dut):
    """A quantum is 8 cycles of 64 bits."""
    await start(dut)
    for quanta in (1, 2, 33):
        await pause(dut, quanta)
        assert await length(dut) == 8 * quanta


@cocotb.test()
async def the_last_one_counts(dut):
    await start(dut)
    await pause(dut, 0xFFFF)
    await ClockCycles(dut.clk, 20)
    assert dut.paused.value == 1
    await pause(dut, 3)
    assert await length(dut) == 24
    await pause(dut, 0xFFFF)
    await pause(dut, 0)
    assert await length(dut) == 0


@cocotb.test()
async def not_honoured(dut):
    """Nor one that has begun, once pauses are disabled."""
    await start(dut)
    await pause(dut, 100)
    dut.cfg_pause.value = 0
    await ClockCycles(dut.clk, 2)
    assert dut.paused.value == 0
    await pause(dut, 100)
    assert dut.paused.value == 0
