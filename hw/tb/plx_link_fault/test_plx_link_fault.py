"""plx_link_fault: the state diagram of IEEE 802.3, figure 46-11."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from xgmii import Wire, payload, with_fcs

from clocks import Clock

LOCAL, REMOTE = 1, 2


async def start(dut):
    cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
    await play(dut, idle(8))
    dut.rst.value = 1
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0


def idle(columns):
    wire = Wire()
    wire.idle(4 * columns)
    return wire


async def play(dut, wire):
    """Plays a wire, and returns the faults after each of its words."""
    faults = []
    for data, control in wire.words():
        dut.xgmii_rxd.value, dut.xgmii_rxc.value = data, control
        await RisingEdge(dut.clk)
        faults.append(str(dut.remote_fault.value) + str(dut.local_fault.value))
    return faults


async def settled(dut):
    """The fault that is on once two idle words have gone through."""
    await play(dut, idle(6))
    return dut.local_fault.value * LOCAL + dut.remote_fault.value * REMOTE


def sequences(*codes, gap=0):
    """Ordered sets, with so many columns of idles before each."""
    wire = Wire()
    for code in codes:
        wire.idle(4 * gap)
        wire.sequence(code)
    return wire


@cocotb.test()
async def four_of_a_kind(dut):
    for code in (LOCAL, REMOTE):
        for gap in (0, 1, 2, 60, 127):
            await start(dut)
            await play(dut, sequences(*[code] * 3, gap=gap))
            assert await settled(dut) == 0
            await start(dut)
            await play(dut, sequences(*[code] * 4, gap=gap))
            assert await settled(dut) == code


@cocotb.test()
async def too_far_apart(dut):
    """128 columns without one restart the count."""
    await start(dut)
    await play(dut, sequences(*[LOCAL] * 6, gap=132))
    assert await settled(dut) == 0


@cocotb.test()
async def the_other_kind_begins_anew(dut):
    for first in (0, 1):
        await start(dut)
        wire = idle(first)
        wire.lanes += sequences(LOCAL, LOCAL, LOCAL, REMOTE, LOCAL, LOCAL, LOCAL, REMOTE, REMOTE, REMOTE).lanes
        await play(dut, wire)
        assert await settled(dut) == 0
        await play(dut, sequences(REMOTE))
        assert await settled(dut) == REMOTE
        await play(dut, sequences(*[LOCAL] * 4))
        assert await settled(dut) == LOCAL


@cocotb.test()
async def ends_after_128_columns(dut):
    """Frames do not end a fault, and columns without one do, also those of frames."""
    await start(dut)
    # Two columns a word, and there are none but these two states.
    await play(dut, sequences(*[REMOTE] * 4))
    faults = await play(dut, idle(160))
    assert faults.count("10") == 64 and faults.count("00") == 16, faults
    await play(dut, sequences(*[LOCAL] * 4))
    assert await settled(dut) == LOCAL
    wire = Wire()
    wire.frame(with_fcs(payload(600)))
    await play(dut, wire)
    assert await settled(dut) == 0


@cocotb.test()
async def data_is_no_fault(dut):
    """The same bytes in a frame, and other ordered sets, are none."""
    await start(dut)
    wire = Wire()
    wire.frame(bytes([0x9C, 0, 0, 1]) * 20)
    for _ in range(8):
        wire.sequence(3)
    assert set(await play(dut, wire)) == {"00"}
    assert await settled(dut) == 0
