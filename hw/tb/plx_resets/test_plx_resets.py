"""plx_resets: the current write ends first, reads end meanwhile, and both clocks sample their resets, also if one stands."""

import random

import cocotb
from cocotb.triggers import FallingEdge, Timer

from clocks import Clock


class TB:
    def __init__(self, dut):
        self.dut = dut
        dut.request.value, dut.wr_idle.value, dut.rd_idle.value = 0, 1, 1
        dut.forget.value = dut.rst_net.value = dut.rst_core.value = self.lost = 0

    async def start(self):
        dut = self.dut
        dut.rst_core.value = 1
        self.net = cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start())
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
            self.lost += self.dut.net_lost.value == 1

    def state(self):
        """Active signals: R resetting, Q quiesce, D discard, O others, N net."""
        dut = self.dut
        held = (dut.resetting, dut.quiesce, dut.discard, dut.others_rst, dut.net_rst)
        return "".join(letter for letter, signal in zip("RQDON", held) if int(signal.value))

    def ports(self):
        """The ports: C in reset, U up."""
        return "".join(letter for letter, signal in (("C", self.dut.net_clear), ("U", self.dut.net_up)) if int(signal.value))

    async def until(self, condition, patience):
        for _ in range(patience):
            if condition():
                return
            await self.core()
        raise AssertionError("it does not happen")

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
    """That of the core ends it; that of the ports leaves the core alone."""
    tb = await TB(dut).start()
    for outside in (dut.rst_net, dut.rst_core):
        dut.rd_idle.value = 0
        await tb.ask()
        await tb.core(random.randrange(2, 60))
        outside.value = 1
        await tb.core(2)
        of_core = outside is dut.rst_core
        assert int(dut.host_rst.value) == of_core and int(dut.net_rst.value)
        outside.value, dut.rd_idle.value = 0, 1
        await tb.core(10)
        assert not int(dut.host_rst.value)
        await tb.core(10 if of_core else 120)
        assert tb.state() == "" and tb.ports() == "U"


@cocotb.test()
async def the_core_knows_before_the_ports_are_reset_and_until_they_are(dut):
    """Pointers that cross take two cycles more than the reset itself; the reset begins with or without a clock."""
    tb = await TB(dut).start()
    for number in range(24):
        stands = number % 3 == 2
        if stands:
            tb.net.kill()
        await Timer(random.randrange(6400), "ps")
        dut.rst_net.value = 1
        await tb.until(lambda: int(dut.net_clear.value), 6)
        assert not int(dut.net_rst.value), "the ports were reset first"
        await tb.core(random.randrange(10, 30))
        assert int(dut.net_rst.value) != stands
        dut.rst_net.value = 0
        await tb.core(40 if stands else 0)
        if stands:
            assert not int(dut.net_rst.value) and tb.ports() == "C"
            tb.net = cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start())
        await tb.until(lambda: not int(dut.net_clear.value), 30)
        assert not int(dut.net_rst.value) and tb.state() == "" and tb.ports() == "U"


@cocotb.test()
async def a_clock_of_the_ports_that_stands_is_told_once(dut):
    tb = await TB(dut).start()
    for _ in range(6):
        tb.lost = 0
        tb.net.kill()
        await tb.until(lambda: tb.ports() == "", 75)
        await tb.core(random.randrange(200))
        assert tb.ports() == "" and tb.lost == 1 and tb.state() == ""
        await Timer(random.randrange(4000), "ps")
        tb.net = cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start())
        await tb.core(8)
        assert tb.ports() == "", "its registers have had no edge"
        await tb.until(lambda: tb.ports() == "U", 30)
        await tb.core(200)
        assert tb.ports() == "U" and tb.lost == 1


@cocotb.test()
async def a_reset_by_register_without_the_clock_of_the_ports(dut):
    """It ends for the core, and holds for the ports until their clock has seen it."""
    tb = await TB(dut).start()
    tb.net.kill()
    await tb.core(100)
    await tb.ask()
    await tb.until(lambda: tb.state() in ("N", ""), 120)
    await tb.core(100)
    assert tb.state() == "N" and tb.ports() == "C"
    tb.net = cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start())
    await tb.until(lambda: tb.ports() == "U", 30)
    assert tb.state() == ""


@cocotb.test()
async def the_reset_of_a_function_without_the_clock_of_the_ports_resets_them(dut):
    """Its writes of their registers are lost meanwhile. With a clock there is no need."""
    tb = await TB(dut).start()
    dut.forget.value = 1
    for _ in range(100):
        await tb.core()
        assert tb.state() == "" and tb.ports() == "U"
    dut.forget.value = 0
    for length in (1, 200):
        tb.net.kill()
        await tb.until(lambda: tb.ports() == "", 75)
        dut.forget.value = 1
        await tb.core(length)
        dut.forget.value = 0
        await tb.core(100)
        assert tb.ports() == "C"
        await Timer(random.randrange(6400), "ps")
        tb.net = cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start())
        # The other side knows before.
        seen = set()
        while tb.ports() != "U":
            await tb.core()
            seen.add((tb.state(), tb.ports()))
        assert ("N", "C") in seen and seen <= {("", "C"), ("N", "C"), ("", ""), ("", "U")}
    assert tb.lost == 2


@cocotb.test()
async def the_core_cannot_see_a_gap_between_a_cause_and_the_reset_of_the_ports(dut):
    """Levels that change at one edge may be seen apart: of any two sets that follow each other, one level stays."""
    tb = await TB(dut).start()
    for cause in (dut.rst_net, dut.forget) * 4:
        tb.net.kill()
        await tb.until(lambda: tb.ports() == "", 75)
        cause.value = 1
        await tb.core(random.randrange(1, 20))
        cause.value = 0
        await tb.core(5)
        tb.net = cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start())
        before = int(dut.net_resets.d.value)
        assert before, "the cause waits for the clock"
        for _ in range(12):
            await FallingEdge(dut.clk_net)
            now = int(dut.net_resets.d.value)
            assert before & now or not now, f"{before:06b} {now:06b}"
            before = now
        assert not before
        await tb.until(lambda: tb.ports() == "U", 30)


@cocotb.test()
async def ports_that_are_up_for_a_moment_before_the_reset_for_a_function_are_lost(dut):
    """The function's reset began in the last cycle in which they were not up."""
    tb, moments = await TB(dut).start(), 0
    for wait in range(24):
        tb.net.kill()
        await tb.until(lambda: tb.ports() == "", 75)
        await tb.core(20)
        tb.net = cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start())
        tb.lost, states = 0, []
        for cycle in range(100):
            dut.forget.value = cycle == wait
            await tb.core()
            states.append(tb.ports())
        assert tb.ports() == "U"
        was_lost = any(state != "U" for state in states[states.index("U"):])
        assert (tb.lost > 0) == was_lost, states
        moments += was_lost
    assert moments
