"""The transmit path: descriptors and segments in memory become frames on the wire, checked by scapy, at line rate."""

import random
import struct

import cocotb
from cocotb.triggers import RisingEdge, Timer

from clocks import Clock
import cycles as table
from core import Cycles, joined, part
from descriptors import BAD, CHECKSUM_CARD, CHECKSUM_GIVEN, EVENT, FAILED, RAW, SENT, STOPPED, inline, packet
from frames import IP_ADDRESS, MAC, PEER, PEER_IP, integer, some
from host_bus import UNSUPPORTED, Reads, field
from sending import judge
from xgmii import received

NET_PS = 6400
LOG2 = 6
# An unreadable range.
HOLE = 0x7_0000_0000
# 1 us of 4 ns.
ROUND_TRIP = 250


class Memory(Reads):
    """Host memory: the written data, and an unreadable hole."""

    def __init__(self, dut):
        super().__init__(dut, 512)
        self.bytes = {}

    def memory(self, address, length):
        return bytes(self.bytes.get(at, 0xCC) for at in range(address, address + length))

    def put(self, address, data):
        self.bytes.update(enumerate(data, address))

    def answer(self, head, fault=None):
        super().answer(head, UNSUPPORTED if field(head, "address") >= HOLE else fault)


class Ring:
    """Software's side of a ring."""

    def __init__(self, tb, number):
        self.tb, self.number, self.posted, self.pulse = tb, number, 0, False
        self.base, self.next = (number + 1) << 24 | 0x240, (number + 1) << 28
        # Frames as they must be, how packets end, events.
        self.expected, self.statuses, self.events, self.told = [], [], [], 0

    def place(self, data, pieces):
        """Data in a number of segments anywhere in memory: their addresses and lengths."""
        cuts = sorted(random.sample(range(1, len(data)), pieces - 1)) if pieces > 1 else []
        made = []
        for begin, end in zip([0, *cuts], [*cuts, len(data)]):
            self.next += random.randrange(300)
            self.tb.host.put(self.next, data[begin:end])
            made.append((self.next, end - begin))
            self.next += end - begin
        return made

    def descriptors(self, made):
        for descriptor in made:
            self.tb.host.put(self.base + self.posted % (1 << LOG2) * 32, descriptor.bytes())
            self.posted += 1

    def send(self, data, pieces=1, flags=0, checksum=0, event=True, status=SENT):
        """A packet, in the ring if it has no pieces; without a doorbell yet."""
        made = (packet(self.place(data, pieces), flags | EVENT * event, checksum=checksum) if pieces
                else inline(data, flags | EVENT * event, checksum=checksum))
        if status == FAILED:
            random.choice(made).address += HOLE
        if status == BAD:
            made[0].total += 1
        self.descriptors(made)
        self.statuses.append(status)
        if status == SENT:
            self.expected.append((data, flags, checksum))

    def judge(self, frame, data, flags, checksum):
        if flags & RAW:
            assert frame[:len(data)] == data and not any(frame[len(data):])
            return
        assert not any(frame[42 + len(data):]), "padding"
        judge(frame[:42 + len(data)], data, PEER_IP,
              checksum=None if flags & CHECKSUM_CARD else checksum if flags & CHECKSUM_GIVEN else 0)


class TB:
    def __init__(self, dut):
        self.dut, self.ports = dut, int(dut.PORTS.value)
        self.cycles, self.host = Cycles(dut, dut.clk_core), Memory(dut)
        self.rings = [Ring(self, number) for number in range(self.ports)]
        self.words, self.counts = [[] for _ in self.rings], [[0] * 4 for _ in self.rings]
        self.rang_at, self.asked_at = None, None
        self.cycles.watchers += [self.host.look, self.look]
        dut.now_cycle_ts.value = dut.wr_ring_producer.value = dut.cfg_ring_producer.value = 0
        dut.cfg_ring_base.value = joined([ring.base for ring in self.rings], 64)
        dut.cfg_ring_ctrl_log2_size.value = joined([LOG2] * self.ports, 5)
        dut.cfg_ring_ctrl_queue.value = dut.cfg_ring_ctrl_enable.value = 0
        dut.cfg_max_read.value, dut.cfg_timeout_cycles.value, dut.m_event_ready.value = 2, 3000, 1
        dut.cfg_mac.value, dut.cfg_ip.value, dut.cfg_neighbour.value = integer(MAC), integer(IP_ADDRESS), integer(PEER)
        dut.cfg_tx_enable.value = (1 << self.ports) - 1

    async def start(self):
        dut = self.dut
        cocotb.start_soon(Clock(dut.clk_net, NET_PS, "ps").start())
        # Edges never coincide.
        await Timer(700, "ps")
        await self.cycles.start([dut.rst_core, dut.rst_net])
        for _ in range(5):
            await self.step()
        dut.cfg_ring_ctrl_enable.value = (1 << self.ports) - 1
        for _ in range(3):
            await self.step()
        cocotb.start_soon(self.wire())

    async def wire(self):
        while True:
            await RisingEdge(self.dut.clk_net)
            for port, words in enumerate(self.words):
                words.append((part(self.dut.xgmii_txd, port, 64), part(self.dut.xgmii_txc, port, 8)))
            assert int(self.dut.aborted.value) == 0, "a gap in a frame"

    async def step(self):
        dut = self.dut
        dut.now_cycle_ts.value = self.cycles.number
        dut.cfg_ring_producer.value = joined([ring.posted for ring in self.rings], 32)
        dut.wr_ring_producer.value = joined([ring.pulse for ring in self.rings], 1)
        if any(ring.pulse for ring in self.rings):
            self.rang_at = self.rang_at or self.cycles.number
        for ring in self.rings:
            ring.pulse = False
        self.host.drive()
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        if int(dut.hif_rd_req_valid.value):
            self.asked_at = self.asked_at or self.cycles.number
        for counts, ring in zip(self.counts, self.rings):
            for index, (name, width) in enumerate((("packets", 1), ("bytes", 14), ("bad", 1), ("read_failed", 1))):
                counts[index] += part(getattr(dut, f"inc_{name}"), ring.number, width)
        if int(dut.m_event_valid.value):
            record = int(dut.m_event_record.value).to_bytes(64, "little")
            index, length, packets, status = struct.unpack_from("<4I", record, 8)
            rang, fetched, read = struct.unpack_from("<3I", record, 40)
            ring = self.rings[struct.unpack_from("<H", record, 60)[0]]
            assert status == STOPPED or rang < fetched < read <= self.cycles.number
            ring.told += packets
            ring.events.append((index, status, ring.told))

    def ring(self):
        for ring in self.rings:
            ring.pulse = True

    async def quiet(self, ports=None, most=12000):
        """All of these ports is on the wire."""
        ports = range(self.ports) if ports is None else ports
        done = lambda port: (part(self.dut.sts_ring_status_idle, port, 1)  # noqa: E731
                             and not int(self.dut.busy.value) >> port & 1)
        for _ in range(40):
            await self.step()
        for _ in range(most):
            await self.step()
            if all(done(port) for port in ports):
                break
        for _ in range(20):
            await self.step()
        assert all(done(port) for port in ports), "it hangs"

    def check(self, ring):
        frames = received(self.words[ring.number])
        assert len(frames) == len(ring.expected), (len(frames), len(ring.expected))
        for frame, expected in zip(frames, ring.expected):
            ring.judge(frame.payload(), *expected)
        counts = [ring.statuses.count(status) for status in (SENT, BAD, FAILED)]
        assert counts == [self.counts[ring.number][index] for index in (0, 2, 3)]
        assert self.counts[ring.number][1] == sum(len(data) for data, _, _ in ring.expected)
        return frames


async def started(dut):
    tb = TB(dut)
    await tb.start()
    return tb


@cocotb.test()
async def doorbell_to_read_request(dut):
    tb = await started(dut)
    tb.rings[0].send(some(64))
    tb.ring()
    await tb.quiet()
    table.check("doorbell", tb.asked_at - tb.rang_at)
    tb.check(tb.rings[0])


@cocotb.test()
async def doorbell_to_wire(dut):
    """64 B of payload, in memory and in the ring, with a host that answers at once, which it does not."""
    tb = await started(dut)
    tb.host.delay = 1
    for name, pieces in (("doorbell_wire", 1), ("doorbell_wire_inline", 0)):
        measured = []
        # The host cuts its answers anywhere: the quickest counts.
        for _ in range(8):
            frames = len(received(tb.words[0]))
            tb.rings[0].send(some(64), pieces)
            # Always at the same phase of the clocks: 8 cycles of clk_core are 5 of clk_net.
            while tb.cycles.number % 8:
                await tb.step()
            began = len(tb.words[0])
            tb.rings[0].pulse = True
            await tb.quiet()
            measured.append(received(tb.words[0])[frames].start // 8 - began)
        table.check(name, min(measured))
    tb.check(tb.rings[0])


@cocotb.test()
async def line_rate_of_1_kb(dut):
    """Both ports, in one segment and in three, checksums by the card, a round trip of 1 us: 136.25 cycles a frame."""
    tb = await started(dut)
    tb.host.delay = ROUND_TRIP
    for ring in tb.rings:
        for _ in range(7):
            ring.send(some(1024), 1 + 2 * ring.number, CHECKSUM_CARD, event=False)
    tb.ring()
    await tb.quiet()
    for ring in tb.rings:
        frames = tb.check(ring)
        starts = [frame.start / 8 for frame in frames]
        # 42 B of headers, FCS, preamble and gap (IEEE 802.3, 4.4.2).
        assert (starts[-1] - starts[3]) / (len(starts) - 4) <= (1024 + 42 + 4 + 8 + 12) / 8 + 0.1, starts


@cocotb.test()
async def packets_of_all_kinds_errors_among_them(dut):
    tb = await started(dut)
    tb.host.delay, tb.host.source.idle = 80, 0.2
    for _ in range(2):
        for ring in tb.rings:
            for number in range(8):
                size = random.choice((14, 15, 18, 60, 64, 300, random.randrange(14, 800)))
                flags = random.choice((0, RAW, CHECKSUM_CARD, CHECKSUM_CARD, CHECKSUM_GIVEN))
                # Each at least once.
                status = {2: BAD, 5: FAILED}.get(number) or random.choices((SENT, BAD, FAILED), (6, 1, 1))[0]
                pieces = random.choice((1, 1, 2, 4)) if size > 64 or status == FAILED else random.choice((0, 0, 1, 2))
                ring.send(some(size), pieces, flags, random.getrandbits(16), random.random() < 0.5, status)
            ring.send(b"", 1, CHECKSUM_CARD)
        tb.ring()
        await tb.quiet()
    for ring in tb.rings:
        tb.check(ring)
        # Each that was not passed on has an event of its own, and there is one for the last packet.
        assert {FAILED, BAD} <= set(ring.statuses)
        assert [status for _, status, _ in ring.events if status] == [status for status in ring.statuses if status]
        for _, status, packets in ring.events:
            assert ring.statuses[packets - 1] == status
        assert ring.events[-1][0] == ring.posted == part(dut.sts_ring_consumer, ring.number, 32)
        assert ring.told == len(ring.statuses)


@cocotb.test()
async def a_port_that_may_not_send_delays_no_other(dut):
    tb = await started(dut)
    tb.dut.cfg_tx_enable.value = 2
    held, other = tb.rings
    for _ in range(24):
        held.send(some(1000))
    tb.ring()
    # Until its fifo is full: 32 words for each packet.
    for _ in range(3000):
        await tb.step()
        if tb.counts[0][0] == 16:
            break
    for _ in range(6):
        other.send(some(200))
    tb.ring()
    await tb.quiet([1])
    tb.check(other)
    assert tb.counts[0][0] == 16 and not part(dut.sts_ring_status_idle, 0, 1) and not received(tb.words[0])


@cocotb.test()
async def descriptors_that_cannot_be_read_stop_one_ring(dut):
    tb = await started(dut)
    tb.rings[0].base = HOLE
    tb.dut.cfg_ring_base.value = joined([ring.base for ring in tb.rings], 64)
    tb.rings[0].descriptors(packet([(0, 20)]))
    for _ in range(10):
        tb.rings[1].send(some(100))
    tb.ring()
    await tb.quiet()
    assert part(dut.sts_ring_status_error, 0, 1) and not part(dut.sts_ring_status_error, 1, 1)
    assert tb.rings[0].events == [(0, STOPPED, 0)]
    tb.check(tb.rings[1])
