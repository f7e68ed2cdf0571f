"""plx_generator: packets by its registers, and complete packets of the host before and after them."""

import random

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from frames import PEER_IP, integer, kept
from sending import Packets, cycle, meta

from clocks import Clock

GEN_PORTS = (7000, 7001)


def generated(number, size):
    """A payload, as operations.md defines it."""
    return (number.to_bytes(4, "little") + bytes((number + i) % 256 for i in range(4, size)))[:size]


class TB:
    """Accepts packets as plx_udp_tx does: words at random times, metadata one for each, early or late."""

    def __init__(self, dut):
        self.dut, self.host, self.busy, self.meta_busy = dut, Packets(dut), 0.0, 0.0
        self.packets, self.metas, self.first, self.last, self.counted = [], [], [], [], 0
        for name in ("size", "count", "gap", "destination_ip", "destination_port", "source_port"):
            getattr(dut, f"cfg_{name}").value = 0
        dut.start.value = dut.stop.value = dut.m_axis_tx_tready.value = dut.m_axis_meta_tready.value = 0

    async def start(self):
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
        dut.rst.value = 1
        for _ in range(3):
            await RisingEdge(dut.clk)
        dut.rst.value = 0
        dut.cfg_destination_ip.value = integer(PEER_IP)
        dut.cfg_destination_port.value, dut.cfg_source_port.value = GEN_PORTS
        cocotb.start_soon(self.take())
        return self

    async def take(self):
        dut, data, offered = self.dut, None, [None, None]
        while True:
            dut.m_axis_tx_tready.value = word_ready = int(random.random() >= self.busy)
            # As plx_udp_tx: the metadata of one packet wait, and no more.
            late = len(self.metas) > len(self.packets)
            dut.m_axis_meta_tready.value = meta_ready = int(not late and random.random() >= self.meta_busy)
            await RisingEdge(dut.clk)
            self.counted += int(dut.inc_packets.value)
            word = meta_word = None
            if int(dut.m_axis_tx_tvalid.value):
                count = int(dut.m_axis_tx_tkeep.value).bit_length()
                word = kept(dut.m_axis_tx_tdata, count), int(dut.m_axis_tx_tlast.value)
            if int(dut.m_axis_meta_tvalid.value):
                meta_word = int(dut.m_axis_meta_tdata.value)
            for stood, now in zip(offered, (word, meta_word)):
                assert stood in (None, now), "an offer was changed or taken back"
            offered = [None if word_ready else word, None if meta_ready else meta_word]
            if meta_word is not None and meta_ready:
                self.metas.append(meta_word)
            if word is None or not word_ready:
                continue
            if data is None:
                data = b""
                self.first.append(cycle())
            data += word[0]
            if word[1]:
                self.packets.append(data)
                self.last.append(cycle())
                data = None

    async def pulse(self, signal):
        signal.value = 1
        await RisingEdge(self.dut.clk)
        signal.value = 0

    async def generate(self, size, count, gap=0):
        self.dut.cfg_size.value, self.dut.cfg_count.value, self.dut.cfg_gap.value = size, count, gap
        await self.pulse(self.dut.start)
        await RisingEdge(self.dut.clk)

    async def finished(self):
        for _ in range(20000):
            await RisingEdge(self.dut.clk)
            await ReadOnly()
            if not int(self.dut.running.value):
                for _ in range(4):
                    await RisingEdge(self.dut.clk)
                return
        raise AssertionError("the generator does not stop")

    def taken(self):
        assert len(self.metas) == len(self.packets)
        packets = list(zip(self.packets, self.metas))
        self.packets, self.metas, self.first, self.last = [], [], [], []
        return packets


def expected(size, count):
    return [(generated(number, size), meta(size, PEER_IP, *GEN_PORTS)) for number in range(count)]


@cocotb.test()
async def sizes_of_all_kinds(dut):
    tb = await TB(dut).start()
    for size in (0, 1, 3, 4, 5, 7, 8, 9, 16, 18, 255, 1472):
        tb.busy, tb.meta_busy = random.choice(((0, 0), (0.5, 0), (0.3, 0.8)))
        await tb.generate(size, 3)
        await tb.finished()
        assert tb.taken() == expected(size, 3), size
    assert tb.counted == 36
    dut.cfg_size.value = 0x3FFF
    await tb.generate(0x3FFF, 1)
    await tb.finished()
    assert tb.taken() == expected(9000, 1), "never longer than a jumbo frame"


@cocotb.test()
async def a_word_in_every_cycle_and_gaps_to_the_cycle(dut):
    tb = await TB(dut).start()
    for gap in (0, 1, 2, 7):
        await tb.generate(30, 5, gap)
        await tb.finished()
        assert [last - first for first, last in zip(tb.first, tb.last)] == [3] * 5
        assert [first - last for last, first in zip(tb.last, tb.first[1:])] == [gap + 1] * 4
        assert tb.taken() == expected(30, 5)


@cocotb.test()
async def it_stops_behind_the_packet_that_is_sent(dut):
    tb = await TB(dut).start()
    for wait, gap in ((3, 0), (30, 0), (11, 50)):
        await tb.generate(64, 0, gap)
        for _ in range(wait):
            await RisingEdge(dut.clk)
        await tb.pulse(dut.stop)
        await tb.finished()
        sent = tb.taken()
        assert sent == expected(64, len(sent)) and len(sent) <= wait // 8 + 1


@cocotb.test()
async def packets_of_the_host_are_whole_before_and_behind(dut):
    tb = await TB(dut).start()
    for turn in range(12):
        tb.busy, tb.meta_busy = random.choice(((0, 0), (0.5, 0.2), (0.2, 0.9)))
        packets = [(random.randbytes(size), meta(size, dport=turn))
                   for size in (random.choice((0, 1, 8, 40, random.randrange(100))) for _ in range(12))]
        offering = [cocotb.start_soon(tb.host.metadata(packets)), cocotb.start_soon(tb.host.words(packets, 0.3))]
        for _ in range(random.randrange(40)):
            await RisingEdge(dut.clk)
        await tb.generate(20, 4)
        await tb.finished()
        for one in offering:
            await one
        for _ in range(100):
            await RisingEdge(dut.clk)
        sent = tb.taken()
        own = [one for one in sent if one[1] == meta(20, PEER_IP, *GEN_PORTS)]
        assert own == expected(20, 4) and [one for one in sent if one not in own] == packets
        begun = sent.index(own[0])
        assert sent[begun:begun + 4] == own, "the host's between its own"
