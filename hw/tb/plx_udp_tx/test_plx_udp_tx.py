"""plx_udp_tx: headers in front of payloads of all lengths, and complaints of users of UDP cores."""

import random

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from frames import IP_ADDRESS, MAC, PEER, PEER_IP, integer, ones_sum, some, udp
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from sending import GIVEN, NONE, SUM, Frames, Packets, judge, meta

from clocks import Clock

STRANGER = "10.0.0.200"


class TB:
    """The bench: packets in, frames out, and a neighbour table that responds on command."""

    def __init__(self, dut):
        self.dut, self.unresolved, self.delay, self.asked, self.lost = dut, 0, 0, [], []
        self.packets, self.frames = Packets(dut), Frames(dut)
        cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())

    async def start(self, busy=0.0):
        dut = self.dut
        dut.cfg_mac.value, dut.cfg_ip.value = integer(MAC), integer(IP_ADDRESS)
        dut.cfg_destination_ip.value, dut.cfg_destination_port.value = integer("10.0.0.77"), 7777
        dut.cfg_source_port.value, dut.cfg_ttl.value, dut.cfg_tos.value = 6666, 64, 0
        dut.s_lookup_done.value = dut.s_lookup_hit.value = dut.s_lookup_mac.value = dut.discard.value = 0
        dut.rst.value = 1
        await ClockCycles(dut.clk, 3)
        dut.rst.value = 0
        self.frames.busy = busy
        for task in (self.frames.run(), self.directory(), self.count()):
            cocotb.start_soon(task)
        await RisingEdge(dut.clk)
        return self

    async def directory(self):
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            if dut.m_lookup_valid.value == 1:
                ip = dut.m_lookup_ip.value.integer
                self.asked.append(ip)
                for _ in range(self.delay):
                    await RisingEdge(dut.clk)
                    assert dut.m_lookup_valid.value == 1 and dut.m_lookup_ip.value.integer == ip
                dut.s_lookup_done.value, dut.s_lookup_mac.value = 1, integer(PEER)
                dut.s_lookup_hit.value = ip != integer(STRANGER)
                await RisingEdge(dut.clk)
                dut.s_lookup_done.value = 0

    async def count(self):
        while True:
            await RisingEdge(self.dut.clk)
            self.unresolved += self.dut.inc_unresolved.value.integer
            if self.dut.m_lost_valid.value == 1:
                self.lost.append(self.dut.m_lost_cookie.value.integer)

    async def send(self, packets, pause=0.0):
        offering = cocotb.start_soon(self.packets.metadata(packets))
        await self.packets.words(packets, pause)
        await offering
        for _ in range(4000):
            await RisingEdge(self.dut.clk)
            if self.dut.busy.value == 0:
                break
        await ClockCycles(self.dut.clk, 3)
        assert self.dut.busy.value == 0
        frames, self.frames.frames = self.frames.frames, []
        return frames


@cocotb.test()
async def empty_udp_and_1472_bytes_and_more(dut):
    """liteeth#128: all lengths of the last word, none at all, the longest."""
    tb = await TB(dut).start()
    payloads = [some(size) for size in (*range(0, 40), 1471, 1472, 1473, 1480, 8999, 9000, 0, 0, 1)]
    frames = await tb.send([(data, meta(len(data))) for data in payloads])
    assert len(frames) == len(payloads)
    for frame, data in zip(frames, payloads):
        judge(frame, data, checksum=0)


@cocotb.test()
async def no_byte_is_lost_under_back_pressure(dut):
    """verilog-ethernet#105: a MAC that is not ready, and pauses between packets."""
    tb = await TB(dut).start()
    for tb.frames.busy in (0.1, 0.5, 0.9):
        payloads = [some(random.choice((0, 1, 5, 6, 7, 8, 14, 22, random.randrange(100)))) for _ in range(40)]
        frames = await tb.send([(data, meta(len(data))) for data in payloads], pause=0.3)
        assert len(frames) == len(payloads)
        for frame, data in zip(frames, payloads):
            judge(frame, data, checksum=0)


@cocotb.test()
async def checksums_never_wait(dut):
    """verilog-ethernet#186: the sum comes beside the payload; all modes, packet after packet."""
    tb = await TB(dut).start()
    packets, expected = [], []
    for size in (*range(0, 20), 100, 101):
        for data in (some(size), bytes(size), b"\xff" * size):
            given = random.getrandbits(16)
            for mode, checksum, field in ((NONE, given, 0), (GIVEN, given, given), (SUM, ones_sum(data), None)):
                packets.append((data, meta(size, checksum=checksum, mode=mode)))
                expected.append((data, field))
    frames = await tb.send(packets)
    assert len(frames) == len(packets)
    for frame, (data, field) in zip(frames, expected):
        judge(frame, data, checksum=field)


@cocotb.test()
async def a_sum_of_zero_is_sent_as_ones(dut):
    """RFC 768: zero would mean no checksum."""
    tb = await TB(dut).start()
    # With the checksum that it would have had as payload, a datagram has the checksum zero.
    data = udp(bytes(2), ip={"src": IP_ADDRESS, "dst": PEER_IP})[40:42]
    frame, = await tb.send([(data, meta(2, checksum=ones_sum(data), mode=SUM))])
    judge(frame, data, checksum=0xFFFF)


@cocotb.test()
async def destinations(dut):
    """The packet's, or the registers'; the settings of the header."""
    tb = await TB(dut).start()
    dut.cfg_ttl.value, dut.cfg_tos.value = 3, 0xB8
    frames = await tb.send([(b"abc", meta(3, "10.9.8.7", 1, 65535)), (b"defg", meta(4, "0.0.0.0", 9, 9))])
    judge(frames[0], b"abc", "10.9.8.7", 1, 65535, ttl=3, checksum=0)
    judge(frames[1], b"defg", "10.0.0.77", 7777, 6666, ttl=3, checksum=0)
    assert tb.asked == [integer("10.9.8.7"), integer("10.0.0.77")]
    header = Ether(frames[0])[IP]
    assert (header.tos, str(header.flags), header.frag) == (0xB8, "DF", 0)


@cocotb.test()
async def packets_without_a_neighbour(dut):
    """Without a neighbour a packet is lost and counted, and its ring is told; those around it are sent."""
    tb = await TB(dut).start(0.2)
    ips = [random.choice((PEER_IP, STRANGER)) for _ in range(30)]
    payloads = [some(random.choice((0, 8, 30, 300))) for _ in ips]
    tb.delay = 3
    frames = await tb.send([(data, meta(len(data), ip, cookie=1000 + number, told=number % 3 != 0))
                            for number, (data, ip) in enumerate(zip(payloads, ips))])
    assert tb.lost == [1000 + number for number, ip in enumerate(ips) if ip == STRANGER and number % 3]
    sent = [data for data, ip in zip(payloads, ips) if ip == PEER_IP]
    assert len(frames) == len(sent) and tb.unresolved == ips.count(STRANGER) > 0
    for frame, data in zip(frames, sent):
        judge(frame, data, checksum=0)


@cocotb.test()
async def raw_frames(dut):
    """Raw frames pass unchanged, without a lookup, between others."""
    tb = await TB(dut).start(0.3)
    packets, expected = [], []
    for size in (14, 15, 16, 22, 60, 63, 64, 65, 1514):
        data = some(size)
        packets += [(data, meta(size, raw=1)), (data, meta(size)), (data, meta(size, raw=1))]
    expected = [bool(word >> 98 & 1) for _, word in packets]
    frames = await tb.send(packets)
    assert len(frames) == len(packets) and len(tb.asked) == len(packets) // 3
    for frame, (data, _), raw in zip(frames, packets, expected):
        assert frame == data if raw else judge(frame, data, checksum=0) is None


@cocotb.test()
async def line_rate_of_the_smallest_frames(dut):
    """A frame of 64 bytes takes 10.5 cycles on the wire (IEEE 802.3, 4.4.2); these come faster."""
    tb = await TB(dut).start()
    payloads = [some(18) for _ in range(30)]
    frames = await tb.send([(data, meta(18)) for data in payloads])
    for frame, data in zip(frames, payloads):
        judge(frame, data, checksum=0)
    assert len(frames) == 30
    assert (tb.frames.first[-1] - tb.frames.first[4]) / 25 <= 10


@cocotb.test()
async def a_port_in_reset_throws_its_packets_away(dut):
    """But the one that has begun. None is looked up, counted, or told to a ring."""
    tb = await TB(dut).start(0.2)
    payloads = [some(size) for size in (400, 0, 8, 300, 64)]
    sending = cocotb.start_soon(tb.send([(data, meta(len(data), STRANGER if number else PEER_IP, told=1, raw=number == 2))
                                         for number, data in enumerate(payloads)]))
    while not tb.frames.first:
        await RisingEdge(dut.clk)
    assert dut.ring_busy.value == 1
    dut.discard.value = 1
    frame, = await sending
    judge(frame, payloads[0], checksum=0)
    # The second had been looked up by then.
    assert len(tb.asked) <= 2 and (tb.unresolved, tb.lost) == (0, []) and dut.ring_busy.value == 0
    dut.discard.value = 0
    frame, = await tb.send([(payloads[3], meta(300))])
    judge(frame, payloads[3], checksum=0)
