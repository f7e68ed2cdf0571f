"""A register block generated from SystemRDL: flags, and reads of changing values."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from clocks import Clock

FLAGS, NOW, SET = 0x0C, 0x20, 0x28


async def start(dut):
    cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
    for handle in dut:
        if handle._name.startswith(("sts_", "set_", "win_counters_r")):
            handle.setimmediatevalue(0)
    bus = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
    dut.rst.value = 1
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return bus


@cocotb.test()
async def a_flag_stays_until_it_is_cleared(dut):
    bus = await start(dut)
    for flag in (dut.set_flags_early, dut.set_flags_event):
        flag.value = 1
        await RisingEdge(dut.clk)
        flag.value = 0
    assert await bus.read_dword(FLAGS) == 0b10100
    await bus.write_dword(FLAGS, 0b00100)
    assert await bus.read_dword(FLAGS) == 0b10000


@cocotb.test()
async def a_flag_that_is_set_while_it_is_cleared_is_set(dut):
    bus = await start(dut)
    dut.set_flags_lost.value = 1
    await bus.write_dword(FLAGS, 0b11111)
    assert await bus.read_dword(FLAGS) == 0b01000


@cocotb.test()
async def a_counter_is_read_as_one_number(dut):
    bus = await start(dut)
    now = 0xFFFF_FFF0

    async def count():
        nonlocal now
        while True:
            await FallingEdge(dut.clk)
            now += 1
            dut.sts_now.value = now

    cocotb.start_soon(count())
    before, last = now, 0
    while last < 1 << 32:
        low = await bus.read_dword(NOW)
        last = await bus.read_dword(NOW + 4) << 32 | low
        assert before <= last <= now
        before = last


@cocotb.test()
async def the_doorbell_rings_with_the_second_half(dut):
    bus = await start(dut)
    rung = []

    async def listen():
        while True:
            await FallingEdge(dut.clk)
            if dut.wr_set.value == 1:
                rung.append(dut.cfg_set.value.integer)

    cocotb.start_soon(listen())
    await bus.write_dword(SET, 0x89AB_CDEF)
    assert not rung
    await bus.write_dword(SET + 4, 0x0123_4567)
    assert rung == [0x0123_4567_89AB_CDEF]
