"""plx_mac_rx: from XGMII to frames. Any behaviour of the wire, and complaints of MAC users."""

import logging
import random
from collections import Counter

import cocotb
import cycles
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.eth import XgmiiFrame, XgmiiSource
from xgmii import ERROR, IDLE, SEQUENCE, START, TERMINATE, Wire, payload, with_fcs

from clocks import Clock

PERIOD = 6400
CAUSES = ("oversize", "symbol", "runt", "fcs", "pause")
MAC = bytes.fromhex("02004c4f4c01")
# Without FCS: the smallest, every length of the last word, jumbo frames, the longest.
SIZES = [*range(60, 78), *range(1510, 1519), 9017, 9018]


class TB:
    """The bench: clock, reset, output, and counts."""

    def __init__(self, dut):
        self.dut = dut
        self.frames, self.counts, self.bytes, self.pauses = [], Counter(), 0, []
        self.starts, self.stamps = [], []
        cocotb.start_soon(Clock(dut.clk, PERIOD, "ps").start())

    @property
    def cycle(self):
        return int(get_sim_time("ps")) // PERIOD

    async def start(self, max_frame=9022):
        dut = self.dut
        self.put(*next(self.idle().words()))
        dut.now_cycle_ts.value = dut.now_timestamp_ns.value = dut.now_timestamp_valid.value = 0
        dut.cfg_enable.value, dut.cfg_max_frame.value, dut.cfg_mac.value = 1, max_frame, int.from_bytes(MAC, "big")
        dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 2)
        cocotb.start_soon(self.watch())
        return self

    @staticmethod
    def idle(words=1):
        wire = Wire()
        wire.idle(8 * words)
        return wire

    def put(self, data, control):
        self.dut.xgmii_rxd.value, self.dut.xgmii_rxc.value = data, control

    async def watch(self):
        """Samples output and counts in every cycle."""
        dut, data = self.dut, b""
        while True:
            await RisingEdge(dut.clk)
            if dut.m_axis_rx_tvalid.value == 1:
                if not data:
                    self.starts.append(self.cycle)
                    self.stamps.append(dut.m_axis_rx_cycle_ts.value.integer)
                keep, last = dut.m_axis_rx_tkeep.value.integer, dut.m_axis_rx_tlast.value == 1
                # Each frame is counted with its last word, and a frame without a cause is good.
                bad = any(getattr(dut, f"inc_{cause}").value == 1 for cause in CAUSES)
                assert not last or dut.inc_frames.value == 1 and bad == (dut.m_axis_rx_tuser.value == 1)
                count = keep.bit_length()
                assert keep == (1 << count) - 1 and (last or count == 8) and count, f"tkeep {keep:08b}"
                data += dut.m_axis_rx_tdata.value.integer.to_bytes(8, "little")[:count]
                if last:
                    self.frames.append((data, dut.m_axis_rx_tuser.value == 1))
                    data = b""
            if dut.inc_frames.value == 1:
                self.counts["frames"] += 1
                self.bytes += dut.inc_bytes.value.integer
                causes = [cause for cause in CAUSES if getattr(dut, f"inc_{cause}").value == 1]
                assert len(causes) <= 1, causes
                self.counts.update(causes or ["good"])
                if dut.pause_valid.value == 1:
                    self.pauses.append(dut.pause_quanta.value.integer)
            else:
                assert dut.inc_pause.value == 0 and dut.pause_valid.value == 0

    async def send(self, wire, stamp=False):
        """Plays a wire, and waits for the output; `stamp`: with the cycle as time."""
        for data, control in [*wire.words(), *self.idle(8).words()]:
            self.put(data, control)
            if stamp:
                self.dut.now_cycle_ts.value = self.cycle
            await RisingEdge(self.dut.clk)
        assert self.dut.busy.value == 0

    def settle(self, frames, **causes):
        """The balance: each start is good or has one cause."""
        counts = {cause: count for cause, count in self.counts.items() if cause not in ("frames", "good")}
        assert counts == {cause: count for cause, count in causes.items() if count}, (counts, causes)
        assert self.counts["frames"] == frames, self.counts
        good = [data for data, bad in self.frames if not bad]
        assert len(good) == self.counts["good"] == frames - sum(causes.values())
        return good


@cocotb.test()
async def sizes(dut):
    """Frames of all lengths, as an independent source sends them, gaps by deficit idle count."""
    tb = TB(dut)
    source = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk)
    source.log.setLevel(logging.WARNING)
    await tb.start()
    sent = [payload(size) for size in SIZES]
    random.shuffle(sent)
    for data in sent:
        await source.send(XgmiiFrame.from_payload(data))
    await source.wait()
    await ClockCycles(dut.clk, 8)
    assert tb.settle(len(sent)) == sent
    assert tb.bytes == sum(map(len, sent))


@cocotb.test()
async def no_loss_on_back_to_back_frames(dut):
    """Gaps from 5 bytes on, the least at a receiver (46.2.1), in all lanes."""
    tb = await TB(dut).start()
    wire, sent = Wire(), []
    wire.idle(16)
    for gap in (5, 6, 8, 9, 12):
        for size in range(60, 69):
            sent.append(payload(size))
            wire.frame(with_fcs(sent[-1]), gap)
    await tb.send(wire)
    assert tb.settle(len(sent)) == sent


@cocotb.test()
async def no_ghost_packet_of_no_length(dut):
    """Frames that end before their FCS are counted, without output; the next one is whole."""
    tb = await TB(dut).start()
    wire, sent = Wire(), []
    for lane in (0, 4):
        for size in range(5):
            wire.frame(payload(size), 5, lane)
            sent.append(payload(60))
            wire.frame(with_fcs(sent[-1]), 5)
    await tb.send(wire)
    assert tb.settle(20, runt=10) == sent
    assert len(tb.frames) == len(sent)


@cocotb.test()
async def runts(dut):
    """Below 64 bytes: output, bad, and counted."""
    tb = await TB(dut).start()
    wire, sent = Wire(), [payload(size) for size in range(1, 60)]
    for data in sent:
        wire.frame(with_fcs(data), 5)
    await tb.send(wire)
    tb.settle(len(sent), runt=len(sent))
    assert tb.frames == [(data, True) for data in sent]
    assert tb.bytes == sum(map(len, sent))


@cocotb.test()
async def longer_than_allowed(dut):
    """The longest is accepted; one byte more ends early, bad; the next frame is unaffected."""
    for limit in (508, 509, 514, 519):
        tb = await TB(dut).start(limit)
        wire, sent = Wire(), []
        for more in (0, 1, 2, 3, 4, 5, 8, 9, 60):
            data = payload(limit - 4 + more)
            wire.frame(with_fcs(data), 12, random.choice((0, 4)))
            if more == 0:
                sent.append(data)
            sent.append(payload(60))
            wire.frame(with_fcs(sent[-1]), 5)
        await tb.send(wire)
        assert tb.settle(18, oversize=8) == sent
        assert all(len(data) <= limit for data, _ in tb.frames)
        assert tb.bytes == sum(len(data) for data, _ in tb.frames)


@cocotb.test()
async def a_flipped_bit_is_found(dut):
    """Anywhere in the frame, its FCS included, with every length of the last word."""
    tb = await TB(dut).start()
    wire, count = Wire(), 0
    for size in range(60, 68):
        for place in (0, 7, 8, size // 2, size - 1, size, size + 3):
            data = bytearray(with_fcs(payload(size)))
            data[place] ^= 1 << random.randrange(8)
            wire.frame(data, 5)
            count += 1
    await tb.send(wire)
    tb.settle(count, fcs=count)
    assert len(tb.frames) == count


@cocotb.test()
async def error_characters(dut):
    """An error character in any lane of any word of a frame (46.3.3.1)."""
    tb = await TB(dut).start()
    wire, count = Wire(), 0
    for place in (*range(8), *range(56, 72)):
        wire.frame(with_fcs(payload(68)), 12, place // 2 % 2 * 4)
        wire.lanes[len(wire.lanes) - 73 + place] = (ERROR, 1)
        wire.frame(with_fcs(payload(60)), 5)
        count += 1
    await tb.send(wire)
    tb.settle(2 * count, symbol=count)


@cocotb.test()
async def frames_without_an_end(dut):
    """Cut off by idles, by a fault, by the next start: bad, and the next frame is not lost."""
    tb = await TB(dut).start()
    wire, sent = Wire(), []
    for size in (1, 5, 64, 65, 70, 71, 72):
        for end in (IDLE, SEQUENCE, START):
            wire.frame(payload(size), 12, end=None if end == START else end)
            if end == START:
                # The column after the last whole one.
                del wire.lanes[len(wire.lanes) // 4 * 4:]
            sent.append(payload(61))
            wire.frame(with_fcs(sent[-1]), 0 if end == START else 5)
    await tb.send(wire)
    assert tb.settle(2 * len(sent), symbol=len(sent)) == sent


@cocotb.test()
async def starts_without_delimiter(dut):
    """A damaged preamble is a lost frame, and counted as one."""
    tb = await TB(dut).start()
    wire, sent = Wire(), []
    for lane in (0, 4):
        for preamble in (bytes([0x55] * 7), bytes(7), bytes([0x55] * 6 + [0xD4])):
            wire.frame(with_fcs(payload(60)), 12, lane, preamble)
            sent.append(payload(60))
            wire.frame(with_fcs(sent[-1]), 5)
        wire.frame(with_fcs(payload(60)), 12, lane)
        wire.lanes[-70] = (ERROR, 1)
    await tb.send(wire)
    assert tb.settle(14, symbol=8) == sent
    assert len(tb.frames) == len(sent)


@cocotb.test()
async def starts_in_consecutive_words(dut):
    """Each ends as one bad frame, with a delimiter or without, in either lane, and the good frames between them pass."""
    tb = await TB(dut).start()
    sent, starts = [], 0
    wire = Wire()
    # A word with a start in each, or in turn with and without a delimiter; many more than can wait.
    for lane, delimiters in ((0, (0,)), (4, (0,)), (0, (0, 1)), (4, (0, 1)), (0, (1, 1, 0))):
        wire.align(lane)
        for number in range(60):
            wire.control(START)
            wire.data([0x55] * 6 + [0xD5 if delimiters[number % len(delimiters)] else 0x55])
        starts += 60
        # The next one follows at once.
        sent.append(payload(60 + lane))
        wire.frame(with_fcs(sent[-1]), 0)
    columns = (lambda: wire.control(START) or wire.data([0x55] * 3), lambda: wire.control(START, IDLE, IDLE, IDLE),
               lambda: wire.data([0x55] * 3 + [0xD5]), lambda: wire.data([0x55] * 4), lambda: wire.idle(4),
               lambda: wire.control(TERMINATE, IDLE, IDLE, IDLE), lambda: wire.control(START, ERROR, ERROR, ERROR))
    for _ in range(400):
        wire.align()
        before = wire.lanes.count((START, 1))
        for _ in range(random.randint(1, 6)):
            random.choice(columns)()
        starts += wire.lanes.count((START, 1)) - before
        if random.random() < 0.5:
            sent.append(payload(random.randint(60, 80)))
            wire.frame(with_fcs(sent[-1]), random.choice((0, 5, 12)))
        wire.idle(80)
    await tb.send(wire)
    assert tb.counts["frames"] == starts + len(sent), (tb.counts, starts, len(sent))
    assert [data for data, bad in tb.frames if not bad] == sent
    # Two in each word, for longer than that can wait: some are not counted, and it recovers.
    wire, before = Wire(), tb.counts["frames"]
    for _ in range(50):
        wire.control(START, IDLE, IDLE, IDLE, START, IDLE, IDLE, IDLE)
    sent.append(payload(60))
    wire.frame(with_fcs(sent[-1]), 5)
    wire.idle(160)
    await tb.send(wire)
    assert 50 + 7 <= tb.counts["frames"] - before <= 100
    assert [data for data, bad in tb.frames if not bad] == sent


@cocotb.test()
async def pause_frames(dut):
    """Consumed by the MAC, for either of the two addresses (31B.1); others pass."""
    tb = await TB(dut).start()
    group, other = bytes.fromhex("0180c2000001"), bytes.fromhex("02004c4f4c02")

    def pause(address, quanta, kind=b"\x88\x08\x00\x01"):
        return address + other + kind + quanta.to_bytes(2, "big") + bytes(42)

    wire = Wire()
    for lane in (0, 4):
        wire.frame(with_fcs(pause(group, 0x1234)), 5, lane)
        wire.frame(with_fcs(pause(MAC, 0)), 5, lane)
        broken = bytearray(with_fcs(pause(group, 7)))
        broken[20] ^= 1
        wire.frame(broken, 5, lane)
        wire.frame(with_fcs(pause(other, 7)), 5, lane)
        wire.frame(with_fcs(pause(group, 7, b"\x88\x08\x01\x01")), 5, lane)
        wire.frame(with_fcs(pause(group, 7, b"\x08\x00\x00\x01")), 5, lane)
    await tb.send(wire)
    tb.settle(12, pause=4, fcs=2)
    assert tb.pauses == [0x1234, 0] * 2
    assert [bad for _, bad in tb.frames] == [True, True, True, False, False, False] * 2


@cocotb.test()
async def switched_off_and_on(dut):
    """Takes effect between frames; frames that are not received are not counted."""
    tb = await TB(dut).start()
    first, lost, last = payload(600), payload(60), payload(60)
    wires = [Wire(), Wire()]
    wires[0].frame(with_fcs(first))
    wires[0].frame(with_fcs(lost), 5)
    wires[1].frame(with_fcs(last))
    sending = cocotb.start_soon(tb.send(wires[0]))
    await ClockCycles(dut.clk, 20)
    dut.cfg_enable.value = 0
    await sending
    dut.cfg_enable.value = 1
    await tb.send(wires[1])
    assert tb.settle(2) == [first, last]


@cocotb.test()
async def latency(dut):
    """And the time stamp: that of the start word."""
    tb = await TB(dut).start()
    for lane, name, word in ((0, "mac_rx", 1), (4, "mac_rx_lane4", 1), (4, "mac_rx", 2)):
        wire = Wire()
        wire.frame(with_fcs(payload(64)), 0, lane)
        tb.starts, tb.stamps = [], []
        now = tb.cycle
        await tb.send(wire, stamp=True)
        # A word that is output after edge n is accepted at edge n + 1.
        cycles.check(name, tb.starts[0] - (now + word + 1))
        assert tb.stamps == [now]


@cocotb.test()
async def soak(dut):
    """Everything at once, at random; the counts balance and no good frame is lost or changed."""
    tb = await TB(dut).start(1522)
    wire, sent, counts = Wire(), [], Counter()
    for _ in range(150):
        kind = random.choice(("good", "good", "good", "runt", "oversize", "fcs", "symbol", "noise"))
        size = random.choice((60, 61, 64, 67, 128, 255))
        gap = random.choice((5, 5, 7, 12, 12, 40))
        if kind == "noise":
            wire.sequence(random.choice((1, 2)))
            continue
        data = bytearray(with_fcs(payload({"runt": random.randrange(59), "oversize": 1600}.get(kind, size))))
        if kind == "fcs":
            data[random.randrange(len(data))] ^= 0x10
        wire.frame(data, gap)
        if kind == "symbol":
            wire.lanes[-2 - random.randrange(len(data))] = (ERROR, 1)
        if kind == "good":
            sent.append(bytes(data[:-4]))
        else:
            counts[kind] += 1
    await tb.send(wire)
    assert tb.settle(len(sent) + sum(counts.values()), **counts) == sent
