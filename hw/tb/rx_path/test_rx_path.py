"""The receive path: payloads are in memory before their announcement; every payload is accounted for."""

import random
import struct

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge, Timer

from clocks import Clock
from core import Window, clear, joined, part
from hits import container, expand
from hostbus import Memory, Writes

NET_PS, CORE_PS = 6400, 4000
# A minimum frame, preamble, FCS and gap: 84 B of 8 in a cycle.
SLOT = 10.5
# Inputs of a port, and their widths.
PINS = (("valid", 1), ("data", 64), ("keep", 8), ("last", 1), ("bad", 1), ("first", 1), ("meta", 169))
EVENTS = (0x9_0000_0000, 0xA_0000_0000)


class TB:
    """The wire of each port, a host bus that accepts 32 B a cycle, software that reads and returns buffers."""

    def __init__(self, dut):
        self.dut, self.ports = dut, int(dut.PORTS.value)
        self.memory = Memory()
        self.writes = [Writes(self.memory, source) for source in range(self.ports + 1)]
        self.lists, self.sent, self.good = {}, {}, [0] * self.ports
        self.delivered, self.overflow, self.stall, self.lazy = 0, [0] * self.ports, 0.0, 0.0
        self.tasks, self.events, self.consumed, self.reasons, self.faults = [], [0, 0], [0, 0], set(), 0
        self.cycle, self.pins = 0, {name: [0] * self.ports for name, _ in PINS}

    async def start(self, log2=6):
        dut = self.dut
        for name in ("now_cycle_ts", "s_valid", "s_data", "s_keep", "s_last", "s_bad", "s_first", "s_meta", "win_write",
                     "win_addr", "win_wdata", "m_desc_ready", "m_data_tready", "m_accepted"):
            getattr(dut, name).value = 0
        self.size = 1 << log2
        for base in EVENTS:
            self.memory.register(base, 64 << log2)
        self.window = {name: Window(dut, name, self.settled) for name in ("entry", "list", "outcome", "queue")}
        dut.rst_net.value = dut.rst_core.value = 1
        cocotb.start_soon(Clock(dut.clk_net, NET_PS, "ps").start())
        await Timer(700, "ps")
        cocotb.start_soon(Clock(dut.clk_core, CORE_PS, "ps").start())
        for _ in range(5):
            await FallingEdge(dut.clk_net)
        dut.rst_net.value = dut.rst_core.value = 0
        cocotb.start_soon(self.bus())
        cocotb.start_soon(self.wire_counters())
        await FallingEdge(dut.clk_core)
        clear(dut.lists.status_counts)
        for queue, base in enumerate(EVENTS):
            await self.window["queue"].write64(queue * 64, base)
            await self.window["queue"].write(queue * 64 + 8, log2 << 8 | 1)

    async def settled(self, look):
        await ReadOnly()
        look()
        await FallingEdge(self.dut.clk_core)

    async def wire_counters(self):
        while True:
            await RisingEdge(self.dut.clk_net)
            for port in range(self.ports):
                self.overflow[port] += int(self.dut.inc_overflow.value) >> port & 1

    async def page(self, entry, virtual, bus, log2):
        """A page; None: removed."""
        await self.window["entry"].write64(entry * 32, virtual)
        await self.window["entry"].write64(entry * 32 + 8, bus)
        await self.window["entry"].write(entry * 32 + 20, 0)
        await self.window["entry"].write(entry * 32 + 16, 1 | log2 << 8)
        self.memory.register(bus, 1 << log2)

    async def list(self, number, virtual, bus, size, count, timeout=(1 << 31) - 1):
        at, window = 0x2000 + number * 64, self.window["list"]
        await window.write64(at, virtual)
        for offset, value in ((8, size), (12, count), (16, 0), (20, timeout), (24, 1)):
            await window.write(at + offset, value)
        self.lists[number] = dict(bus=bus, size=size, count=count, serial=0, at=0)
        self.sent[number] = []

    # The host bus: one writer at a time, round robin, one word in each cycle.
    async def bus(self):
        dut, owner, last, taken = self.dut, None, 0, 0
        while True:
            await FallingEdge(dut.clk_core)
            self.cycle += 1
            dut.now_cycle_ts.value = self.cycle
            dut.m_accepted.value, taken = taken, 0
            offers = int(dut.m_desc_valid.value)
            begins = owner is None and offers and random.random() >= self.stall
            if begins:
                owner = next(source % (self.ports + 1) for source in range(last + 1, last + 2 + self.ports)
                             if offers >> source % (self.ports + 1) & 1)
                self.writes[owner].descriptor_taken(part(dut.m_desc_address, owner, 64),
                                                    part(dut.m_desc_length, owner, 13))
            dut.m_desc_ready.value = 1 << owner if begins else 0
            takes = owner is not None and random.random() >= self.stall
            dut.m_data_tready.value = 1 << owner if takes else 0
            if takes:
                assert part(dut.m_data_tvalid, owner, 1), "a gap in a write"
                done = self.writes[owner].word_taken(part(dut.m_data_tdata, owner, 256),
                                                     part(dut.m_data_tlast, owner, 1))
                if done:
                    taken, last, owner = 1 << owner, owner, None
                    if last == self.ports:
                        self.event()

    def event(self):
        """An event is in memory: so must be the data that it announces."""
        _, address, data = self.memory.writes[-1]
        queue = next(queue for queue, base in enumerate(EVENTS) if base <= address < base + 64 * self.size)
        number = self.events[queue]
        assert address == EVENTS[queue] + number % self.size * 64
        assert data[63] >> 7 == 1 - number // self.size % 2, "phase"
        self.events[queue] += 1
        if data[62] == 3:
            self.faults += 1
            self.tasks.append((None, queue, 0))
            return
        assert data[62] == 1
        index, length, payloads, first, last, reason = struct.unpack_from("<6I", data, 8)
        serial, stream = struct.unpack_from("<IH", data, 56)
        mine = self.lists[stream]
        assert serial == mine["serial"] and index == serial % mine["count"]
        mine["serial"] += 1
        self.reasons.add(reason)
        base = mine["bus"] + index * mine["size"]
        content = self.memory.read(base, length)
        at = 0
        for number in range(payloads):
            size, port, flags, sequence, stamp = struct.unpack_from("<IHHII", content, at)
            payload = content[at + 16:at + 16 + size]
            assert first <= sequence <= last
            self.expect(stream, mine, payload, port, stamp if flags else None)
            at += (size + 31) // 16 * 16
        assert at == length
        # Its bytes may not be taken for later ones.
        for place in range(base, base + length):
            del self.memory.bytes[place]
        self.tasks.append((stream, queue, mine["serial"]))

    def expect(self, stream, mine, payload, port, stamp):
        """It is one of those sent, after the last delivered one."""
        sent = self.sent[stream]
        while mine["at"] < len(sent):
            wanted = sent[mine["at"]]
            mine["at"] += 1
            if wanted == (payload, port, stamp):
                self.delivered += 1
                return
        raise AssertionError(f"list {stream}: a payload of {len(payload)} B that was not sent, or out of order")

    async def software(self):
        """Returns buffers and records, each after some time."""
        while True:
            await FallingEdge(self.dut.clk_core)
            if self.tasks and random.random() >= self.lazy:
                stream, queue, serial = self.tasks.pop(0)
                if stream is not None:
                    await self.window["list"].write(0x2000 + stream * 64 + 28, serial)
                self.consumed[queue] += 1
                await self.window["queue"].write(queue * 64 + 12, self.consumed[queue])

    async def send(self, port, frames, slot=None):
        """Payloads (list, data, form, bad) of a port, one in each slot of cycles, or back to back with random gaps."""
        dut, due = self.dut, 0.0
        await FallingEdge(dut.clk_net)
        begun = self.cycle
        for stream, data, form, bad in frames:
            stamp, udp = random.getrandbits(31), random.getrandbits(16)
            known = form != 1
            length = len(data) if known else 1518
            meta = (stamp | (self.cycle & 0xFFFFFFFF) << 64 | length << 128 | udp << 144 | stream << 160 | form << 165
                    | known << 167 | 1 << 168)
            if not bad:
                self.good[port] += 1
                outcome, result = expand(data) if form == 2 else (0, data)
                if outcome == 0 and port * 32 + stream in self.sent:
                    self.sent[port * 32 + stream].append((result, udp, stamp))
            pieces = [data[at:at + 8] for at in range(0, len(data), 8)] or [b""]
            for index, piece in enumerate(pieces):
                self.put(port, 1, int.from_bytes(piece, "little"), (1 << len(piece)) - 1, index == len(pieces) - 1,
                         bad and index == len(pieces) - 1, index == 0, meta)
                await FallingEdge(dut.clk_net)
            self.put(port, 0, 0, 0, 0, 0, 0, 0)
            due += slot if slot else len(pieces) + random.choice([1, 2, 9, 40])
            while (self.cycle - begun) * CORE_PS / NET_PS < due:
                await FallingEdge(dut.clk_net)

    def put(self, port, *values):
        for value, (name, width) in zip(values, PINS):
            if self.pins[name][port] != value:
                self.pins[name][port] = value
                getattr(self.dut, f"s_{name}").value = joined(self.pins[name], width)

    async def finish(self):
        """All is written; the rest is announced; and the counts balance."""
        for _ in range(4000):
            await FallingEdge(self.dut.clk_core)
            if int(self.dut.idle.value) == (1 << self.ports) - 1:
                break
        self.lazy = self.stall = 0.0
        for _ in range(50):
            await FallingEdge(self.dut.clk_core)
        while self.tasks:
            await FallingEdge(self.dut.clk_core)
        self.running.kill()
        self.running = None
        for number in self.lists:
            await self.window["list"].write(0x2000 + number * 64 + 24, 3)
        self.running = cocotb.start_soon(self.software())
        quiet = 0
        while quiet < 100:
            await FallingEdge(self.dut.clk_core)
            quiet = 0 if self.tasks or int(self.dut.m_desc_valid.value) else quiet + 1
        self.running.kill()
        outcomes = [0] * 8
        for port in range(self.ports):
            ends = self.overflow[port]
            for number in [port * 32 + stream for stream in range(17)]:
                if number not in self.lists and number % 32 != 3:
                    continue
                for outcome in range(8):
                    count = await self.window["outcome"].read(0x4000 + number * 64 + outcome * 8)
                    outcomes[outcome] += count
                    ends += count
            assert ends == self.good[port], f"port {port}: {ends} ends of {self.good[port]}"
        assert outcomes[0] == self.delivered
        return outcomes

    async def run(self, frames, slot=None):
        self.running = cocotb.start_soon(self.software())
        senders = [cocotb.start_soon(self.send(port, frames(port), slot)) for port in range(self.ports)]
        for sender in senders:
            await sender


@cocotb.test()
async def minimum_frames_of_four_ports_at_line_rate(dut):
    """59.5 million frames a second, whole, into small buffers: nothing is lost."""
    tb = TB(dut)
    await tb.start()
    await tb.page(0, 0x7F00_0000_0000, 0x1_0000_0000, 30)
    for port in range(tb.ports):
        await tb.list(port * 32 + 16, 0x7F00_0000_0000 + port * 0x100000, 0x1_0000_0000 + port * 0x100000, 2048, 16)
    begun = tb.cycle
    await tb.run(lambda port: [(16, random.randbytes(60), 1, False) for _ in range(60)], SLOT)
    assert tb.cycle - begun <= 60 * 16.8 + 30
    outcomes = await tb.finish()
    assert sum(tb.overflow) == 0 and outcomes == [60 * tb.ports] + [0] * 7, (tb.overflow, outcomes)
    assert tb.delivered == 60 * tb.ports


@cocotb.test()
async def everything_at_once(dut):
    """All forms and lengths, bad frames, faults, lists that are disabled or full, a slow bus and a slow reader."""
    tb = TB(dut)
    await tb.start(log2=3)
    await tb.page(0, 0x7F00_0000_0000, 0x1_0000_0000, 21)
    for port in range(tb.ports):
        base = port * 0x80000
        await tb.list(port * 32, 0x7F00_0000_0000 + base, 0x1_0000_0000 + base, 2048, 3, 300)
        await tb.list(port * 32 + 1, 0x7F00_0000_0000 + base + 0x10000, 0x1_0000_0000 + base + 0x10000, 4096, 2)
    # Nothing of it is in a page.
    await tb.list(2, 0x7F00_0020_0000, 0, 1024, 2)

    def frames(port):
        kinds = []
        for _ in range(40):
            form = random.choice([0, 0, 1, 2])
            events = [(slot * 3, [(index * 40, 9) for index in range(random.randrange(12))]) for slot in range(6)]
            data = container(events) if form == 2 else random.randbytes(
                random.choice([60, 60, 300, 900]) if form == 1 else random.choice([0, 1, 18, 64, 300, 1024]))
            if form == 2 and random.random() < 0.3:
                data = data[:-3] if random.random() < 0.5 else data[:4] + b"\7" + data[5:]
            stream = 1 if form else random.choice([0, 0, 1, 2 if port == 0 else 0, 3])
            kinds.append((stream, data, form, random.random() < 0.1))
        return kinds

    tb.stall, tb.lazy = 0.5, 0.998
    await tb.run(frames)
    outcomes = await tb.finish()
    assert outcomes[0] > 50 and outcomes[1] + outcomes[2] and all(outcomes[4:]), outcomes
    assert tb.faults and {0, 1, 2} <= tb.reasons, tb.reasons


@cocotb.test()
async def a_slow_bus_overflows_in_the_fifo_and_nowhere_else(dut):
    """At a sixth of the wire's rate: whole frames are dropped or ended bad, counted once, and the rest is correct."""
    tb = TB(dut)
    await tb.start()
    await tb.page(0, 0x7F00_0000_0000, 0x1_0000_0000, 30)
    for port in range(tb.ports):
        await tb.list(port * 32 + 16, 0x7F00_0000_0000 + port * 0x100000, 0x1_0000_0000 + port * 0x100000, 8192, 8)
    tb.stall = 0.85
    await tb.run(lambda port: [(16, random.randbytes(random.choice([60, 60, 400])), 1, random.random() < 0.1)
                               for _ in range(40)], 30)
    tb.stall = 0.0
    outcomes = await tb.finish()
    assert sum(tb.overflow) > 10 and outcomes[0] > 20 and sum(outcomes[1:]) == 0, (tb.overflow, outcomes)
