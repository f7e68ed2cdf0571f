"""A register block generated from SystemRDL: settings, pulses, arrays, 64 bits, tables."""

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from clocks import Clock

MAC_CTRL, MAC_STATUS, MAX_FRAME, MAC, ARP_CTRL, STREAM, COUNTERS, ARP = (
    0x08, 0x0C, 0x10, 0x18, 0x34, 0x200, 0x400, 0x1000)


class TB:
    """The block on an AXI4-Lite bus with idle cycles on all channels, and tables that respond late."""

    def __init__(self, dut):
        self.dut = dut
        self.tables = {}
        cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
        for name in ("counters", "arp"):
            cocotb.start_soon(self.table(name))
        for handle in dut:
            if handle._name.startswith("sts_"):
                handle.setimmediatevalue(0)
        self.bus = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        for channel in (self.bus.write_if.aw_channel, self.bus.write_if.w_channel, self.bus.write_if.b_channel,
                        self.bus.read_if.ar_channel, self.bus.read_if.r_channel):
            channel.set_pause_generator(self.idle())

    @staticmethod
    def idle():
        while True:
            yield random.random() < 0.3

    async def reset(self):
        self.dut.rst.value = 1
        for _ in range(4):
            await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0
        await RisingEdge(self.dut.clk)

    async def table(self, name):
        """Holds what is written, by words."""
        dut = self.dut
        valid, ready, rdata = (getattr(dut, f"win_{name}_{end}") for end in ("valid", "ready", "rdata"))
        ready.setimmediatevalue(0)
        rdata.setimmediatevalue(0)
        while True:
            await FallingEdge(dut.clk)
            ready.value = 0
            if valid.value != 1 or random.random() < 0.5:
                continue
            at = dut.win_addr.value.integer
            ready.value, rdata.value = 1, self.tables.get(at, 0)
            if dut.win_write.value == 1:
                assert dut.win_wstrb.value == 15
                self.tables[at] = dut.win_wdata.value.integer


@cocotb.test()
async def settings_are_held(dut):
    tb = TB(dut)
    await tb.reset()
    assert await tb.bus.read_dword(0) == 0x0001_0008
    assert await tb.bus.read_dword(MAX_FRAME) == 1522 == dut.cfg_max_frame.value
    await tb.bus.write_dword(MAX_FRAME, 0xFFFF_FFFF)
    assert await tb.bus.read_dword(MAX_FRAME) == 0x3FFF
    await tb.bus.write_dword(MAC_CTRL, 0b100011)
    assert (dut.cfg_mac_ctrl_rx_enable.value, dut.cfg_mac_ctrl_loop.value) == (1, 0)


@cocotb.test()
async def bytes_that_are_not_enabled_stay(dut):
    tb = TB(dut)
    await tb.reset()
    await tb.bus.write_dword(STREAM + 4 * 5, 0x8001_1234)
    await tb.bus.write(STREAM + 4 * 5 + 1, b"\xab")
    assert await tb.bus.read_dword(STREAM + 4 * 5) == 0x8001_AB34
    assert await tb.bus.read_dword(STREAM + 4 * 4) == 0


@cocotb.test()
async def several_lie_side_by_side(dut):
    tb = TB(dut)
    await tb.reset()
    for n in range(16):
        await tb.bus.write_dword(STREAM + 4 * n, 1 << 31 | (n % 3) << 16 | 1000 + n)
    for n in range(16):
        assert dut.cfg_stream_port.value.integer >> 16 * n & 0xFFFF == 1000 + n
        assert dut.cfg_stream_form.value.integer >> 2 * n & 3 == n % 3
    assert dut.cfg_stream_enable.value.integer == 0xFFFF


@cocotb.test()
async def halves_take_effect_together(dut):
    tb = TB(dut)
    await tb.reset()
    await tb.bus.write_dword(MAC, 0x3344_5566)
    assert dut.cfg_mac.value.integer == 0
    await tb.bus.write_dword(MAC + 4, 0x1122)
    assert dut.cfg_mac.value.integer == 0x1122_3344_5566
    for at in (MAC, MAC + 3, MAC + 4):
        await tb.bus.write(at, b"\xee")
    assert dut.cfg_mac.value.integer == 0x1122_3344_5566, "bytes alone do nothing"
    low = await tb.bus.read_dword(MAC)
    await tb.bus.write_dword(MAC, 0)
    await tb.bus.write_dword(MAC + 4, 0)
    assert (low, await tb.bus.read_dword(MAC + 4)) == (0x3344_5566, 0x1122), "the read of the low half kept the high"


@cocotb.test()
async def a_pulse_is_one_cycle(dut):
    tb = TB(dut)
    await tb.reset()
    cycles = 0

    async def count():
        nonlocal cycles
        while True:
            await FallingEdge(dut.clk)
            cycles += int(dut.pulse_arp_ctrl_flush.value)

    cocotb.start_soon(count())
    for word in (0x102, 0x003, 0x104):
        await tb.bus.write_dword(ARP_CTRL, word)
    assert (await tb.bus.read_dword(ARP_CTRL), cycles) == (0, 2)


@cocotb.test()
async def tables_belong_to_another_module(dut):
    tb = TB(dut)
    await tb.reset()
    expected = {}
    for _ in range(40):
        at = random.choice((COUNTERS + 4 * random.randrange(64), ARP + 4 * random.randrange(1024)))
        expected[at] = random.getrandbits(32)
        await tb.bus.write_dword(at, expected[at])
    for at, word in expected.items():
        assert await tb.bus.read_dword(at) == word
    assert tb.tables == expected


@cocotb.test()
async def what_is_no_register_reads_zero(dut):
    tb = TB(dut)
    await tb.reset()
    dut.sts_mac_status_link.value = 1
    await tb.bus.write_dword(0x3F8, 0xFFFF_FFFF)
    assert await tb.bus.read_dword(0x3F8) == 0
    await tb.bus.write_dword(MAC_STATUS, 0)
    assert await tb.bus.read_dword(MAC_STATUS) == 1
