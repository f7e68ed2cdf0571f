"""nic_lanes: what software sees of each lane, and its test pattern, through plx_nic."""

import random

import baser
import cocotb
from cocotb.handle import Force, Release
from cocotb.triggers import ClockCycles, FallingEdge, Timer

from clocks import Clock

QUICK = ("a_lane_without_signal_or_lock_has_no_link", "a_pair_of_ports_tests_its_link_by_prbs31")

NET_PS, CORE_PS = 6400, 4000
# Registers, of hw/docs/registers.md.
MAC_STATUS, PCS_CTRL, PCS_STATUS, COUNTS = 0xC, 0x5C, 0x60, 0x4C0
NAMES = ("ber", "errored_blocks", "prbs31_errors", "deleted", "inserted", "overflow", "underflow", "tx_errors")
PRESENT, SIGNAL, LOCK, HI_BER = 1, 2, 4, 8
UP = PRESENT | SIGNAL | LOCK
SEND, CHECK = 1, 2
LINK, LOCAL_FAULT, REMOTE_FAULT = 1, 2, 4


class TB:
    def __init__(self, dut):
        self.dut, self.tag, self.clocks = dut, 0, (dut.clk_rx_0, dut.clk_rx_1)

    async def start(self, far=0, periods=(NET_PS, NET_PS)):
        dut = self.dut
        dut.rst_net.value = dut.rst_core.value = dut.far_rst.value = 1
        dut.s_axis_cq_tvalid.value = dut.spoil.value = 0
        dut.signal_ok.value, dut.far.value = 3, far
        dut.far_txd.value, dut.far_txc.value = baser.IDLES
        cocotb.start_soon(Clock(dut.clk_net, NET_PS, "ps").start())
        cocotb.start_soon(Clock(dut.clk_core, CORE_PS, "ps").start())
        await Timer(2700, "ps")
        self.received = [cocotb.start_soon(Clock(clock, period, "ps").start())
                         for clock, period in zip(self.clocks, periods)]
        await ClockCycles(dut.clk_net, 8)
        dut.rst_net.value = dut.rst_core.value = dut.far_rst.value = 0
        await self.until(lambda: int(dut.locked.value) == 3)
        # The card is out of its own reset, and both ends have seen no faults for 128 columns.
        await ClockCycles(dut.clk_net, 200)
        return self

    async def until(self, condition, patience=4000):
        for _ in range(patience):
            await FallingEdge(self.dut.clk_net)
            if condition():
                return
        raise AssertionError("it does not happen")

    async def request(self, offset, kind, data=0):
        """One DW of BAR 0, in the format of PG213."""
        dut, self.tag = self.dut, (self.tag + 1) % 32
        await FallingEdge(dut.clk_core)
        dut.s_axis_cq_tdata.value = data << 128 | 17 << 115 | self.tag << 96 | kind << 75 | 1 << 64 | offset
        dut.s_axis_cq_tuser.value, dut.s_axis_cq_tvalid.value = 1 << 40 | 0xF, 1
        await Timer(1, "ns")
        while not int(dut.s_axis_cq_tready.value):
            await FallingEdge(dut.clk_core)
        await FallingEdge(dut.clk_core)
        dut.s_axis_cq_tvalid.value = 0

    async def write(self, number, register, value):
        await self.request(0x18000 + 0x2000 * number + register, 1, value)
        # It has taken effect.
        await self.read(number, register)

    async def read(self, number, register):
        dut = self.dut
        await self.request(0x18000 + 0x2000 * number + register, 0)
        while not int(dut.m_axis_cc_tvalid.value):
            await FallingEdge(dut.clk_core)
        found = int(dut.m_axis_cc_tdata.value)
        assert (found >> 64 & 0xFF, found >> 43 & 7) == (self.tag, 0)
        return found >> 96 & 0xFFFFFFFF

    async def state(self, register, bits=15):
        return [await self.read(number, register) & bits for number in range(2)]

    async def counts(self, number):
        return {name: await self.read(number, COUNTS + 8 * i) for i, name in enumerate(NAMES)}

    async def more(self, number, before):
        """Counts since then that are not 0, when those under way have arrived."""
        await ClockCycles(self.dut.clk_net, 80)
        now = await self.counts(number)
        return {name: now[name] - before[name] for name in NAMES if now[name] != before[name]}

    async def spoil(self, number, bits):
        """Inverts bits of one block, in one cycle of the received clock."""
        dut = self.dut
        await FallingEdge(self.clocks[number])
        dut.spoil.value = bits << 66 * number
        await FallingEdge(self.clocks[number])
        dut.spoil.value = 0


@cocotb.test()
async def a_lane_without_signal_or_lock_has_no_link(dut):
    tb = await TB(dut).start()
    assert await tb.state(PCS_STATUS) == [UP, UP] and await tb.state(MAC_STATUS, 7) == [LINK, LINK]
    for number in (0, 1):
        dut.signal_ok.value = 3 & ~(1 << number)
        await ClockCycles(dut.clk_net, 150)
        states, links = await tb.state(PCS_STATUS), await tb.state(MAC_STATUS, 7)
        assert (states[number], states[1 - number]) == (PRESENT, UP)
        # The other end sees a remote fault.
        assert (links[number], links[1 - number]) == (LOCAL_FAULT, REMOTE_FAULT)
        dut.signal_ok.value = 3
        await tb.until(lambda: int(dut.locked.value) == 3)
        await ClockCycles(dut.clk_net, 200)
        assert await tb.state(PCS_STATUS) == [UP, UP] and await tb.state(MAC_STATUS, 7) == [LINK, LINK]


@cocotb.test()
async def a_pair_of_ports_tests_its_link_by_prbs31(dut):
    tb = await TB(dut).start()
    for control in (SEND, SEND | CHECK):
        for number in (0, 1):
            await tb.write(number, PCS_CTRL, control)
    await ClockCycles(dut.clk_net, 60)
    before = [await tb.counts(number) for number in (0, 1)]
    await ClockCycles(dut.clk_net, 200)
    assert [await tb.more(number, before[number]) for number in (0, 1)] == [{}, {}]
    # Checked, it is no block.
    assert await tb.state(PCS_STATUS) == [PRESENT | SIGNAL] * 2
    assert await tb.state(MAC_STATUS, LINK | LOCAL_FAULT) == [LOCAL_FAULT] * 2
    # A wrong bit, anywhere, in the register and at its taps.
    for _ in range(7):
        await tb.spoil(1, 1 << random.randrange(66))
        await ClockCycles(dut.clk_net, 4)
    assert [await tb.more(number, before[number]) for number in (0, 1)] == [{}, {"prbs31_errors": 21}]
    # A partner that sends blocks instead.
    await tb.write(0, PCS_CTRL, CHECK)
    await ClockCycles(dut.clk_net, 100)
    assert (await tb.more(1, before[1]))["prbs31_errors"] > 100 * 20 and await tb.more(0, before[0]) == {}
    for number in (0, 1):
        await tb.write(number, PCS_CTRL, 0)
    await tb.until(lambda: int(dut.locked.value) == 3)
    await ClockCycles(dut.clk_net, 200)
    assert await tb.state(PCS_STATUS) == [UP, UP] and await tb.state(MAC_STATUS, 7) == [LINK, LINK]


@cocotb.test()
async def each_lane_counts_what_is_wrong_with_it(dut):
    tb = await TB(dut).start()
    before = [await tb.counts(number) for number in (0, 1)]
    # Both bits of a header are equal: no block, and the state of the block behind it is as of idles again.
    for _ in range(5):
        await tb.spoil(0, 1)
        await ClockCycles(dut.clk_net, 30)
    assert await tb.more(0, before[0]) == {"ber": 5, "errored_blocks": 5}
    assert await tb.more(1, before[1]) == {}
    # A header of data, without a frame.
    await tb.spoil(1, 3)
    assert await tb.more(1, before[1]) == {"errored_blocks": 1}
    # A start is no word of its own frame: eight starts.
    before = [await tb.counts(number) for number in (0, 1)]
    await FallingEdge(dut.clk_net)
    xgmii = dut.nic.g_lane[0].pcs.tx.xgmii_txd, dut.nic.g_lane[0].pcs.tx.xgmii_txc
    xgmii[0].value, xgmii[1].value = Force(int.from_bytes([baser.START] * 8, "little")), Force(0xFF)
    await ClockCycles(dut.clk_net, 3)
    await FallingEdge(dut.clk_net)
    for signal in xgmii:
        signal.value = Release()
    errors = (await tb.more(0, before[0]))["tx_errors"]
    assert errors in (3, 4) and await tb.more(1, before[1]) == {"errored_blocks": errors}
    # 16 invalid headers in 125 us, fewer of 64: locked, and faults.
    for _ in range(16):
        await tb.spoil(0, 1)
        await ClockCycles(dut.clk_net, 12)
    await ClockCycles(dut.clk_net, 150)
    assert await tb.state(PCS_STATUS) == [UP | HI_BER, UP]
    assert await tb.state(MAC_STATUS, LINK | LOCAL_FAULT) == [LOCAL_FAULT, 0]


@cocotb.test()
async def each_lane_counts_what_its_elastic_buffer_does(dut):
    """Partners that are slower and faster by 1.25 %; a frame without an end; a clock that stands."""
    tb = await TB(dut).start(far=3, periods=(6480, 6320))
    # Eight words more, until columns are deleted.
    await ClockCycles(dut.clk_net, 800)
    before = [await tb.counts(number) for number in (0, 1)]
    await ClockCycles(dut.clk_net, 400)
    slow, fast = [await tb.more(number, before[number]) for number in (0, 1)]
    # Words, and columns of half of one, of 400 cycles and of those of the accesses.
    assert set(slow) == {"inserted"} and 5 <= slow["inserted"] <= 10, slow
    assert set(fast) == {"deleted"} and 10 <= fast["deleted"] <= 24, fast
    before = await tb.counts(1)
    dut.far_txd.value, dut.far_txc.value = 0x555555555555_55FB | 0xD5 << 56, 1
    await FallingEdge(dut.clk_rx_1)
    dut.far_txd.value, dut.far_txc.value = 0, 0
    await ClockCycles(dut.clk_net, 700)
    assert 3 <= (await tb.more(1, before))["overflow"] <= 9
    dut.far_txd.value, dut.far_txc.value = baser.IDLES
    await ClockCycles(dut.clk_net, 100)
    before = await tb.counts(1)
    tb.received[1].kill()
    assert (await tb.more(1, before))["underflow"] == 1
    assert await tb.state(PCS_STATUS) == [UP, PRESENT | SIGNAL]
