"""plx_pcs_elastic: clocks that differ for as long as the test lasts; deletion and insertion (IEEE 802.3, 49.2.4)."""

import random

import baser
import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from xgmii import SEQUENCE, Wire, payload, received, with_fcs

from clocks import Clock

# Periods of a hundredth of the frequency, so that ppm are whole picoseconds; 200 ppm are what is permitted, and
# twenty times that shows in a few thousand words.
NORMAL = 640_000
FAST, SLOW = NORMAL - 128, NORMAL + 128
HURRY, DAWDLE = NORMAL - 2560, NORMAL + 2560


class TB:
    """Words in, and words out, in their clocks."""

    def __init__(self, dut):
        self.dut, self.words = dut, []
        self.deleted = self.inserted = self.overflows = self.underflows = 0

    async def start(self, received_period):
        dut = self.dut
        self.clock = self.turn(received_period)
        cocotb.start_soon(Clock(dut.clk_net, NORMAL, "ps").start())
        self.put(baser.IDLES)
        dut.rst_rx.value = dut.rst_net.value = 1
        for _ in range(4):
            await RisingEdge(dut.clk_rx_net)
        await FallingEdge(dut.clk_rx_net)
        dut.rst_rx.value = dut.rst_net.value = 0
        cocotb.start_soon(self.read())
        cocotb.start_soon(self.watch())
        await self.play([baser.IDLES] * 40)
        return self

    def turn(self, period):
        return cocotb.start_soon(Clock(self.dut.clk_rx_net, period, "ps").start())

    def put(self, word):
        self.dut.s_xgmii_rxd.value, self.dut.s_xgmii_rxc.value = word

    async def play(self, words):
        for word in words:
            self.put(word)
            await FallingEdge(self.dut.clk_rx_net)

    async def read(self):
        while True:
            await RisingEdge(self.dut.clk_net)
            self.words.append((self.dut.m_xgmii_rxd.value.integer, self.dut.m_xgmii_rxc.value.integer))
            self.inserted += self.dut.inc_inserted.value.integer
            self.underflows += self.dut.inc_underflow.value.integer

    async def watch(self):
        while True:
            await RisingEdge(self.dut.clk_rx_net)
            self.deleted += self.dut.inc_deleted.value.integer
            self.overflows += self.dut.inc_overflow.value.integer


def traffic(frames):
    """Frames with gaps as small as they may be, or not; and the words of them."""
    wire, sent = Wire(), []
    for size, gap in frames:
        sent.append(with_fcs(payload(size)))
        wire.frame(sent[-1], gap=gap)
    wire.idle(200)
    return sent, list(wire.words())


async def passes(dut, received_period, frames, deleted=0, inserted=0):
    """All frames arrive; nothing is lost; the end of each is followed by a column of idles, at least."""
    tb = await TB(dut).start(received_period)
    tb.words.clear()
    sent, words = traffic(frames)
    await tb.play(words)
    found = received(tb.words)
    assert [frame.data for frame in found] == sent, (len(found), len(sent))
    assert all(frame.gap is None or frame.gap >= 5 for frame in found), [frame.gap for frame in found]
    assert not tb.overflows and not tb.underflows
    assert tb.deleted >= deleted and tb.inserted >= inserted, (tb.deleted, tb.inserted)
    # What is deleted or inserted is what is missing or surplus in the end.
    assert tb.deleted == 0 or tb.inserted == 0
    return tb


@cocotb.test()
async def equal_clocks_change_nothing(dut):
    tb = await passes(dut, NORMAL, [(size, 12) for size in range(60, 76)])
    assert (tb.deleted, tb.inserted) == (0, 0)


@cocotb.test()
async def a_fast_sender_loses_idles(dut):
    """Gaps of the smallest size that has a column to spare, ends in all lanes; a long row of them."""
    await passes(dut, HURRY, [(60 + n % 9, 12) for n in range(300)], deleted=15)


@cocotb.test()
async def a_slow_sender_gets_idles(dut):
    await passes(dut, DAWDLE, [(60 + n % 9, random.choice((9, 12))) for n in range(300)], inserted=6)


@cocotb.test()
async def columns_are_deleted_in_any_half(dut):
    """Frames whose end and start leave no word of idles: only columns can go, so that words shift by half."""
    await passes(dut, HURRY, [(64, 12)] * 250, deleted=12)


@cocotb.test()
async def long_frames_fit(dut):
    """Jumbo frames at 200 ppm, both ways: the buffer waits for the end of each."""
    await passes(dut, FAST, [(9600, 12), (9600, 12), (60, 12)])


@cocotb.test()
async def long_frames_fit_a_slow_sender(dut):
    await passes(dut, SLOW, [(9600, 12), (9600, 12), (60, 12)])


@cocotb.test()
async def ordered_sets_go_in_pairs_only(dut):
    """Of two equal sequence ordered sets one may go, of different ones and of signals none."""
    tb = await TB(dut).start(HURRY)
    tb.words.clear()
    wire = Wire()
    for _ in range(3500):
        wire.sequence(1)
        wire.sequence(2)
    wire.idle(8)
    await tb.play(list(wire.words()))
    lanes = [one for word in tb.words for one in baser.lanes_of(word)]
    codes = [lanes[at + 3][0] for at in range(0, len(lanes), 4) if lanes[at] == (SEQUENCE, 1)]
    first = codes.index(1)
    # There is nothing to delete, so that words are lost: counted, and seen as errors.
    assert tb.overflows > 0 and baser.ERRORS in tb.words and tb.deleted == 0, (tb.overflows, tb.deleted)
    assert codes[first:first + 200] == [1, 2] * 100
    wire = Wire()
    for _ in range(3000):
        wire.sequence(2)
    tb.overflows = 0
    await tb.play(list(wire.words())[:1500])
    tb.words.clear()
    overflows = tb.overflows
    await tb.play(list(wire.words())[:1000])
    assert tb.deleted > 5 and tb.overflows == overflows
    assert set(tb.words) == {(0x0200009C0200009C, 0x11)}


@cocotb.test()
async def no_gap_is_an_error_not_a_lie(dut):
    """A sender too fast or slow that never pauses: words are lost or missing, and the frame is bad."""
    tb = await TB(dut).start(NORMAL)
    for period in (HURRY, DAWDLE):
        tb.clock.kill()
        tb.clock = tb.turn(period)
        await tb.play([baser.IDLES] * 200)
        tb.words.clear()
        lost = tb.overflows + tb.underflows
        wire = Wire()
        wire.frame(payload(30000))
        wire.idle(64)
        await tb.play(list(wire.words()))
        assert tb.overflows + tb.underflows > lost
        assert any(control and (data >> 8 * lane & 0xFF) == 0xFE for data, control in tb.words
                   for lane in range(8) if control >> lane & 1)
        await tb.play([baser.IDLES] * 100)
        assert tb.words[-1] == baser.IDLES


@cocotb.test()
async def a_received_clock_that_stands_is_a_fault(dut):
    """At once errors, if in a frame, and faults until it goes on; idles never."""
    tb = await TB(dut).start(NORMAL)
    for inside in (True, False):
        if inside:
            wire = Wire()
            wire.frame(payload(100))
            await tb.play(list(wire.words())[:8])
        tb.clock.kill()
        await Timer(20 * NORMAL, "ps")
        tb.words.clear()
        await Timer(100 * NORMAL, "ps")
        assert set(tb.words) == {baser.FAULTS} and dut.flows.value == 0
        tb.clock = tb.turn(NORMAL)
        await tb.play([baser.IDLES] * 40)
        assert tb.words[-1] == baser.IDLES and dut.flows.value == 1
        assert tb.underflows == 1 + (not inside)
