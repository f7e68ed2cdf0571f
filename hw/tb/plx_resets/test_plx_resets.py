"""plx_resets: the current write ends first, reads end meanwhile, and both clocks sample their resets."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer


class TB:
    def __init__(self, dut):
        self.dut = dut
        dut.request.value, dut.wr_idle.value, dut.rd_idle.value = 0, 1, 1
        dut.rst_net.value = dut.rst_core.value = 0

    async def start(self):
        dut = self.dut
        dut.rst_core.value = 1
        cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start())
        await Timer(900, "ps")
        cocotb.start_soon(Clock(dut.clk_core, 4000, "ps").start())
        await self.core(3)
        dut.rst_core.value = 0
        await self.core(40)
        assert not self.state() and not int(dut.host_rst.value)
        return self

    async def core(self, count=1):
        for _ in range(count):
            await FallingEdge(self.dut.clk_core)

    def state(self):
        """Active signals: R resetting, Q quiesce, D discard, O others, N net."""
        dut = self.dut
        held = (dut.resetting, dut.quiesce, dut.discard, dut.others_rst, dut.net_rst)
        return "".join(letter for letter, signal in zip("RQDON", held) if int(signal.value))

    async def ask(self):
        self.dut.request.value = 1
        await self.core()
        self.dut.request.value = 0


@cocotb.test()
async def nothing_is_reset_before_the_write_on_its_way_out_ends(dut):
    tb = await TB(dut).start()
    dut.wr_idle.value = 0
    await tb.ask()
    for _ in range(200):
        await tb.core()
        assert tb.state() == "RQ"
    dut.wr_idle.value = 1
    await tb.core(2)
    assert tb.state() == "RQDON"


@cocotb.test()
async def what_is_read_is_thrown_away_until_all_reads_have_ended(dut):
    tb = await TB(dut).start()
    dut.rd_idle.value = 0
    await tb.ask()
    await tb.core(2)
    for _ in range(300):
        await tb.core()
        assert tb.state() == "RQDON"
    dut.rd_idle.value = 1
    for _ in range(40):
        await tb.core()
        if "D" not in tb.state():
            break
    # Both clocks leave their resets, and only then the card reports it.
    seen = set()
    for _ in range(100):
        await tb.core()
        seen.add(tb.state())
    assert seen <= {"RQON", "RQN", "RQO", "RQ", ""} and tb.state() == ""
    assert not int(dut.host_rst.value)


@cocotb.test()
async def a_reset_from_outside_in_the_middle_of_one_by_register(dut):
    tb = await TB(dut).start()
    for outside in (dut.rst_net, dut.rst_core):
        dut.rd_idle.value = 0
        await tb.ask()
        await tb.core(random.randrange(2, 60))
        outside.value = 1
        await tb.core(2)
        assert int(dut.host_rst.value) and int(dut.others_rst.value) and int(dut.net_rst.value)
        outside.value = 0
        await tb.core(10)
        assert not int(dut.host_rst.value)
        await tb.core(10)
        assert tb.state() == ""
