"""What the benches of pcie_card share: the whole card behind the shim, and a function that uses a port of it."""

import random
import struct

import cocotb
import sriov
from cocotb.triggers import FallingEdge, Timer
from core import part
from descriptors import CHECKSUM_CARD, EVENT as TELL, packet
from frames import IP_ADDRESS, MAC, integer, some, udp
from pcie import NET_PS, TB
from sending import judge
from xgmii import Wire, received, with_fcs

IDLE_WORD = 0x0707070707070707

# Registers, of hw/docs/registers.md.
FUNCTION, PORTS, PAGES, FAULT, STATUS, QUEUES = 0x50, 0x1808, 0x1810, 0x1820, 0x1844, 0x1880
TLB, TX, CLOP, EVENT, PORT = 0x4000, 0x6000, 0x8000, 0x10000, 0x18000
# Memory of each user: events, ring, packet, buffers; the list's addresses; of a page of 64 KiB.
AREA, RING, DATA, BUFFERS, VIRTUAL = 0x10000, 0x2000, 0x3000, 0x8000, 0x7F00_0000_0000
BROADCAST = "255.255.255.255"
# Kinds of events.
BUFFER, SENT, MISSING = 1, 2, 3


class Card(TB):
    """The bench, with wires and 1 MiB of memory. `requests` has (number of the function, address, is a read)."""

    def __init__(self, dut):
        super().__init__(dut)
        self.base, self.memory = self.rc.alloc_region(1 << 20)
        self.heard, self.said, self.requests = [[], []], [[], []], []
        for kind in list(self.rc.rx_tlp_handler):
            self.rc.register_rx_tlp_handler(kind, self.take)

    async def start(self):
        cocotb.start_soon(self.wires())
        await super().start()
        self.all = [self.device, *await sriov.enable(self.device)]

    async def take(self, tlp):
        reads = not tlp.has_data()
        number = int(tlp.requester_id) & 0xFF
        self.requests.append((number, tlp.address, reads))
        at = tlp.address - self.base
        # Function 0 has the first area, the virtual one n the area n.
        assert not 0 <= at < len(self.memory) or number == (0, *range(4, 11))[at // AREA], tlp
        await (self.rc.handle_mem_read_tlp if reads else self.rc.handle_mem_write_tlp)(tlp)

    async def wires(self):
        """A word of each port in each cycle; idle without a frame."""
        dut = self.dut
        while True:
            dut.xgmii_rxd.value = dut.xgmii_rxc.value = 0
            words = [heard.pop(0) if heard else (IDLE_WORD, 0xFF) for heard in self.heard]
            dut.xgmii_rxd.value = sum(data << 64 * port for port, (data, _) in enumerate(words))
            dut.xgmii_rxc.value = sum(control << 8 * port for port, (_, control) in enumerate(words))
            await FallingEdge(dut.clk_net)
            if dut.xgmii_txd.value.is_resolvable:
                for number, said in enumerate(self.said):
                    word = part(dut.xgmii_txd, number, 64), part(dut.xgmii_txc, number, 8)
                    if said[-1:] != [word] or word != (IDLE_WORD, 0xFF):
                        said.append(word)

    def frames(self, number, frames):
        wire = Wire()
        for frame in frames:
            wire.frame(with_fcs(frame))
        self.heard[number] += wire.words()

    async def until(self, condition, patience=4000):
        for _ in range(patience):
            if condition():
                return
            await Timer(10 * NET_PS, "ps")
        raise AssertionError("it does not happen")


class User:
    """A function with a port, a queue, a ring and a page: those of number `own`."""

    def __init__(self, tb, func, own):
        self.tb, self.func, self.own, self.device = tb, func, own, tb.all[func]
        self.bar, self.base, self.seen, self.interrupts = self.device.bar_window[0], tb.base + AREA * func, 0, 0
        # Events that it had seen when it armed its interrupt; buffers that it has returned.
        self.armed = self.released = 0
        self.entry, self.queue = TLB + 0x1000 + 16 * own * 0x20, EVENT + 0x4000 + 0x40 * own
        self.tx, self.clop = TX + 0x100 + 0x40 * own, CLOP + 0x2000 + 32 * own * 0x40
        self.port, self.vector = PORT + 0x2000 * own, 16 * own
        self.at = AREA * func
        tb.memory[self.at:self.at + AREA] = bytes(AREA)

    async def set_up(self):
        bar, own = self.bar, self.own
        await self.device.set_master()
        await bar.write_qword(self.entry, VIRTUAL)
        await bar.write_qword(self.entry + 8, self.base)
        await bar.write_dword(self.entry + 0x14, 0)
        await self.enter()
        await bar.write_qword(self.queue, self.base)
        await bar.write_dword(self.queue + 8, 1 | 6 << 8)
        await bar.write_qword(self.clop, VIRTUAL + BUFFERS)
        for register, value in ((0x8, 4096), (0xC, 8), (0x10, own << 8), (0x14, 60), (0x18, 1)):
            await bar.write_dword(self.clop + register, value)
        await bar.write_qword(self.port + 0x18, integer(MAC))
        await bar.write_dword(self.port + 0x20, integer(IP_ADDRESS))
        await bar.write_dword(self.port + 0x200, 5000 | 1 << 31)
        await bar.write_dword(self.port + 0x8, 3)
        await self.begin_ring(self.base + RING)
        assert await bar.read_dword(FUNCTION) == self.func

    async def enter(self):
        """Its page."""
        await self.bar.write_dword(self.entry + 0x10, 1 | 16 << 8 | self.func << 16)

    async def leave(self):
        await self.bar.write_dword(self.entry + 0x10, 0)

    async def begin_ring(self, base):
        await self.bar.write_dword(self.tx + 8, 0)
        await self.bar.write_qword(self.tx, base)
        await self.bar.write_dword(self.tx + 8, 1 | 3 << 8 | self.own << 16)

    async def listen(self):
        """Counts interrupts of its queue, each behind an event that is in memory."""
        assert await self.device.alloc_irq_vectors(8, 8) == 8

        async def handler():
            # It may have been seen already.
            assert self.record(self.armed) is not None, "behind its event"
            self.interrupts += 1
        self.device.request_irq(self.own, handler)

    async def arm(self):
        self.armed = self.seen
        await self.bar.write_dword(self.queue + 0x1C, self.seen)

    def record(self, index):
        record = bytes(self.tb.memory[self.at + 64 * (index % 64):][:64])
        return record if record[63] >> 7 == (index // 64 + 1) % 2 else None

    async def event(self):
        await self.tb.until(lambda: self.record(self.seen))
        self.seen += 1
        return self.record(self.seen - 1)

    def payloads(self, record):
        """Of an announced buffer."""
        index, length = struct.unpack_from("<II", record, 8)
        at, end, found = self.at + BUFFERS + 4096 * index, self.at + BUFFERS + 4096 * index + length, []
        while at < end:
            size, = struct.unpack_from("<I", self.tb.memory, at)
            found.append(bytes(self.tb.memory[at + 16:at + 16 + size]))
            at += 16 + (size + 15) // 16 * 16
        return found

    async def buffer(self):
        """Payloads of the next event, which announces a buffer; it is returned."""
        record = await self.event()
        assert record[62] == BUFFER
        found = self.payloads(record)
        self.released += 1
        await self.bar.write_dword(self.clop + 0x1C, self.released)
        return found

    async def receive(self, count):
        """Frames of the wire are in its memory, in order."""
        sent, got = [some(random.randrange(1, 600)) for _ in range(count)], []
        self.tb.frames(self.own, [udp(payload) for payload in sent])
        while len(got) < count:
            got += await self.buffer()
        assert got == sent

    def post(self, length, produced, at=DATA):
        """A packet in memory, and its descriptor as number `produced` of the ring; `at`: where it says that it is."""
        payload = some(length)
        self.tb.memory[self.at + DATA:self.at + DATA + length] = payload
        one, = packet([(self.base + at, length)], CHECKSUM_CARD | TELL, ip=integer(BROADCAST), dport=7000, sport=7001)
        self.tb.memory[self.at + RING + 32 * produced:self.at + RING + 32 * produced + 32] = one.bytes()
        return payload

    async def ring(self, produced):
        await self.bar.write_dword(self.tx + 0xC, produced)

    async def sent(self):
        """The next event, of its ring: descriptors that are done, and the status."""
        record = await self.event()
        assert record[62] == SENT
        return struct.unpack_from("<I8xI", record, 8)

    async def send(self, length, produced):
        """A packet of its memory is on the wire, and its event in memory."""
        self.tb.said[self.own].clear()
        payload = self.post(length, produced)
        await self.ring(produced + 1)
        assert await self.sent() == (produced + 1, 0)
        said = self.tb.said[self.own]
        await self.tb.until(lambda: len(said) > 1 and said[-1] == (IDLE_WORD, 0xFF))
        judge(received(said)[0].payload(), payload, BROADCAST, 7000, 7001, "ff:ff:ff:ff:ff:ff")


async def virtual(tb, func):
    """A virtual function to which function 0 has given port, queue and pages of number 1."""
    await tb.bar.write_dword(PORTS, func << 4)
    await tb.bar.write_dword(QUEUES, func << 4)
    await tb.bar.write_dword(PAGES, func << 4)
    user = User(tb, func, 1)
    await user.set_up()
    return user
