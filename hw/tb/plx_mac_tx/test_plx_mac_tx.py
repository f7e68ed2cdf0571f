"""plx_mac_tx: from frames to XGMII, checked by cocotbext-eth and by the words themselves."""

import logging
import random
from collections import Counter

import cocotb
import cycles
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.eth import XgmiiSink
from xgmii import payload, received

from clocks import Clock

PERIOD = 6400
IDLES = (int.from_bytes([7] * 8, "little"), 0xFF)
REMOTE_FAULT = (0x0200009C_0200009C, 0x11)


class TB:
    """The bench: clock, reset, frames in, words out, counts."""

    def __init__(self, dut):
        self.dut = dut
        self.words, self.counts, self.bytes = [], Counter(), 0
        # Cycles: of the first output word, and of the acceptance of each frame's first word.
        self.origin, self.taken = None, []
        cocotb.start_soon(Clock(dut.clk, PERIOD, "ps").start())

    @property
    def cycle(self):
        return int(get_sim_time("ps")) // PERIOD

    async def start(self):
        dut = self.dut
        for signal in (dut.s_axis_tx_tvalid, dut.s_axis_tx_tdata, dut.s_axis_tx_tkeep, dut.s_axis_tx_tlast,
                       dut.s_axis_tx_tuser, dut.pause, dut.local_fault, dut.remote_fault):
            signal.value = 0
        dut.cfg_enable.value = dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        cocotb.start_soon(self.watch())
        return self

    async def watch(self):
        dut = self.dut
        counters = {name: getattr(dut, f"inc_{name}") for name in ("frames", "aborted", "fault", "paused")}
        while True:
            await RisingEdge(dut.clk)
            self.origin = self.origin or self.cycle
            self.words.append((dut.xgmii_txd.value.integer, dut.xgmii_txc.value.integer))
            for name, counter in counters.items():
                if counter.value == 1:
                    self.counts[name] += 1
                    if name == "frames":
                        self.bytes += dut.inc_bytes.value.integer

    async def send(self, data, bad=False, hole=None):
        """One frame; `hole`: a word before which there is none for a cycle."""
        dut = self.dut
        for index, first in enumerate(range(0, len(data), 8)):
            word = data[first:first + 8]
            last = first + 8 >= len(data)
            if index == hole:
                dut.s_axis_tx_tvalid.value = 0
                await RisingEdge(dut.clk)
            dut.s_axis_tx_tvalid.value = 1
            # Bytes that are not kept may be anything.
            dut.s_axis_tx_tdata.value = int.from_bytes(word + payload(8 - len(word)), "little")
            dut.s_axis_tx_tkeep.value = (1 << len(word)) - 1
            dut.s_axis_tx_tlast.value = last
            dut.s_axis_tx_tuser.value = last and bad
            await RisingEdge(dut.clk)
            while dut.s_axis_tx_tready.value == 0:
                await RisingEdge(dut.clk)
            if index == 0:
                self.taken.append(self.cycle)
        dut.s_axis_tx_tvalid.value = 0

    async def end(self):
        await ClockCycles(self.dut.clk, 12)
        assert self.dut.busy.value == 0
        return received(self.words)

    def settle(self, sent, aborted=0, fault=0):
        """The counts: frames and their bytes with padding, and no other."""
        counts = {"frames": len(sent), "aborted": aborted, "fault": fault}
        paused = self.counts.pop("paused", 0)
        assert +self.counts == +Counter(counts), (self.counts, counts)
        assert self.bytes == sum(max(len(data), 60) for data in sent)
        return paused


def padded(data):
    return data + bytes(max(60 - len(data), 0))


@cocotb.test()
async def sizes(dut):
    """1 B to jumbo around every boundary, as an independent sink receives them."""
    tb = TB(dut)
    await tb.start()
    sink = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.clk)
    sink.log.setLevel(logging.WARNING)
    # Below 60 they are padded: around both ends of that.
    sent = [payload(size) for size in [*range(1, 10), *range(50, 74), *range(1513, 1519), 9018]]
    random.shuffle(sent)
    for data in sent:
        await tb.send(data)
        await ClockCycles(dut.clk, random.choice((0, 0, 0, 1, 2, 5)))
    frames = await tb.end()
    assert [frame.payload() for frame in frames] == [padded(data) for data in sent]
    for data in sent:
        frame = sink.recv_nowait()
        assert frame.check_fcs() and frame.get_payload() == padded(data)
    assert sink.empty()
    tb.settle(sent)


@cocotb.test()
async def minimum_frames_at_line_rate(dut):
    """84 bytes a frame on the wire: 14.88 million a second, 10.5 cycles each, in lanes 0 and 4."""
    tb = await TB(dut).start()
    sent = [payload(60) for _ in range(41)]
    for data in sent:
        await tb.send(data)
    frames = await tb.end()
    assert [frame.payload() for frame in frames] == sent
    assert frames[-1].start - frames[0].start == 40 * 84
    assert all(frame.gap == 12 for frame in frames[1:])
    tb.settle(sent)


@cocotb.test()
async def gaps_are_12_bytes_on_average(dut):
    """Deficit idle count (46.3.1.4): never under 9, a deficit of at most 3, for all lengths."""
    tb = await TB(dut).start()
    sent = [payload(60 + size) for size in (1, 2, 3, 5) for _ in range(8)]
    sent += [payload(random.randrange(1, 90)) for _ in range(60)]
    for data in sent:
        await tb.send(data)
    frames = await tb.end()
    assert [frame.payload() for frame in frames] == [padded(data) for data in sent]
    total = 0
    for count, frame in enumerate(frames[1:], 1):
        assert 9 <= frame.gap <= 15
        total += frame.gap
        assert 12 * count - 3 <= total <= 12 * count, (count, total)
    tb.settle(sent)


@cocotb.test()
async def after_idles_a_frame_begins_in_lane_0(dut):
    """Lane 4 is for frames that follow at once; a longer gap leaves no deficit."""
    tb = await TB(dut).start()
    for size in (60, 61, 62, 63, 64):
        await tb.send(payload(size))
        await ClockCycles(dut.clk, 9)
    frames = await tb.end()
    assert [frame.start % 8 for frame in frames] == [0] * 5
    assert all(frame.gap > 12 for frame in frames[1:])


@cocotb.test()
async def a_gap_in_the_input_spoils_the_frame(dut):
    """In every word: an error on the wire, one count, and the next frame is whole."""
    tb = await TB(dut).start()
    sent = []
    for size, holes in ((100, range(1, 13)), (60, range(1, 8)), (20, range(1, 3))):
        for hole in holes:
            await tb.send(payload(size), hole=hole)
            sent.append(payload(61))
            await tb.send(sent[-1])
    frames = await tb.end()
    assert [frame.spoilt for frame in frames] == [True, False] * len(sent)
    assert [frame.payload() for frame in frames[1::2]] == sent
    assert all(frame.gap >= 9 for frame in frames[1:])
    tb.settle(sent, aborted=len(sent))


@cocotb.test()
async def a_frame_that_ends_bad_is_spoilt(dut):
    tb = await TB(dut).start()
    sent = []
    for size in (1, 8, 9, 59, 60, 61, 64, 65, 100):
        await tb.send(payload(size), bad=True)
        sent.append(payload(60))
        await tb.send(sent[-1])
    frames = await tb.end()
    assert [frame.spoilt for frame in frames] == [True, False] * len(sent)
    assert [frame.payload() for frame in frames[1::2]] == sent
    tb.settle(sent, aborted=len(sent))


@cocotb.test()
async def pause_between_frames(dut):
    """A pause never cuts a frame, and delays the next one; the cycles are counted."""
    tb = await TB(dut).start()
    sent = [payload(200), payload(60)]
    sending = cocotb.start_soon(tb.send(sent[0]))
    await ClockCycles(dut.clk, 5)
    dut.pause.value = 1
    await sending
    sending = cocotb.start_soon(tb.send(sent[1]))
    await ClockCycles(dut.clk, 40)
    assert len(received(tb.words)) == 1
    dut.pause.value = 0
    await sending
    assert [frame.payload() for frame in await tb.end()] == sent
    # The gap after the first frame does not belong to the pause.
    assert 34 <= tb.settle(sent) <= 38


@cocotb.test()
async def switched_off(dut):
    """Between frames, and nothing is lost."""
    tb = await TB(dut).start()
    dut.cfg_enable.value = 0
    data = payload(60)
    sending = cocotb.start_soon(tb.send(data))
    await ClockCycles(dut.clk, 20)
    assert not received(tb.words)
    dut.cfg_enable.value = 1
    await sending
    assert [frame.payload() for frame in await tb.end()] == [data]
    tb.settle([data])


@cocotb.test()
async def link_faults(dut):
    """Frames are discarded and counted; a local fault is signalled, a remote one is answered by idles."""
    tb = await TB(dut).start()
    before, after = payload(60), payload(65)
    await tb.send(before)
    await ClockCycles(dut.clk, 12)
    for fault, words in ((dut.local_fault, REMOTE_FAULT), (dut.remote_fault, IDLES)):
        fault.value = 1
        await ClockCycles(dut.clk, 4)
        seen = len(tb.words)
        for size in (1, 60, 500):
            await tb.send(payload(size))
        assert set(tb.words[seen:]) == {words}
        fault.value = 0
        await ClockCycles(dut.clk, 4)
    await tb.send(after)
    assert [frame.payload() for frame in await tb.end()] == [before, after]
    tb.settle([before, after], fault=6)


@cocotb.test()
async def latency(dut):
    """From the edge that accepts the first word to the one at which XGMII has the first byte."""
    tb = await TB(dut).start()
    for size in (60, 60):
        await tb.send(payload(size))
    frames = await tb.end()
    assert [frame.start % 8 for frame in frames] == [0, 4]
    for frame, taken in zip(frames, tb.taken):
        cycles.check("mac_tx", tb.origin + (frame.start + 8) // 8 - taken)


@cocotb.test()
async def soak(dut):
    """Everything at random: each frame is sent whole, or aborted and counted."""
    tb = await TB(dut).start()
    sent, aborted = [], 0
    for _ in range(120):
        data = payload(random.choice((1, 7, 8, 46, 59, 60, 61, 63, 64, 65, 130, 257)))
        kind = random.choice(("good", "good", "good", "bad", "hole"))
        words = -(-len(data) // 8)
        if kind == "hole" and words > 1:
            await tb.send(data, hole=random.randrange(1, words))
            aborted += 1
        elif kind == "bad":
            await tb.send(data, bad=True)
            aborted += 1
        else:
            await tb.send(data)
            sent.append(data)
        dut.pause.value = random.random() < 0.1
        await ClockCycles(dut.clk, random.choice((0, 0, 0, 1, 3, 9)))
        dut.pause.value = 0
    frames = await tb.end()
    assert [frame.payload() for frame in frames if not frame.spoilt] == [padded(data) for data in sent]
    assert all(frame.gap >= 9 for frame in frames[1:])
    tb.settle(sent, aborted=aborted)
