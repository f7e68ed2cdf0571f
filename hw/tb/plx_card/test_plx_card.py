"""plx_card: the modules are wired correctly. The benches of the modules and hw/cosim test its behaviour."""

import random
import struct

import cocotb
from cocotb.handle import Force, Release
from cocotb.triggers import FallingEdge

from clocks import Clock
from core import Cycles, clear, part
from frames import IP_ADDRESS, MAC, integer, some, udp
from host_bus import Reads, Sink, Source, Writes, field, header
from sending import judge
from xgmii import Wire, received, with_fcs

PARAMETERS = [{"PORTS": 2, "TLB_ENTRIES": 4, "EVENT_QUEUES": 2, "RD_TAGS": 8, "RX_FIFO_WORDS": 256,
               "RX_FIFO_FRAMES": 32, "ARP_ENTRIES": 16}]

NET_PS = 6400
IDLE_WORD = 0x0707070707070707

# Registers, of hw/docs/registers.md.
CARD, HOST, FUNCTIONS, TIMING, EVENT, TLB, TX, CLOP = 0x0, 0x1000, 0x1800, 0x2000, 0x10000, 0x4000, 0x6000, 0x8000
MAGIC, CTRL, STATUS, FLAGS = 0x8, 0x34, 0x38, 0x3C
QUEUE_BASE, QUEUE_CTRL, QUEUE_RELEASED = EVENT + 0x4000, EVENT + 0x4008, EVENT + 0x400C


def port(number, register):
    return 0x18000 + 0x2000 * number + register


RX_FRAMES, TX_FRAMES, TX_ABORTED, RX_FCS, RX_SYMBOL = 0x400, 0x488, 0x498, 0x410, 0x418

# Addresses in the host's memory: on the bus, and the lists' virtual ones.
EVENTS, BUFFERS, VIRTUAL = 0x1_0000_0000, 0x2_0000_0000, 0x7F00_0000_0000


class TB:
    """A host that writes and reads registers and has memory, and the wires of the ports."""

    def __init__(self, dut):
        self.dut, self.cycles, self.answers, self.tag = dut, Cycles(dut, dut.clk_core), {}, 0
        self.requests, self.completions = Source(dut, "hif_rx_req"), Sink(dut, "hif_tx_cpl", self.answered)
        self.writes, self.reads = Writes(dut, 256), Reads(dut, 512)
        self.sides = (self.requests, self.completions, self.writes, self.reads)
        self.cycles.watchers += [side.look for side in self.sides]
        self.ports = int(dut.PORTS.value)
        # Input and output of the ports, without idle words before and after.
        self.heard, self.said = [[] for _ in range(self.ports)], [[] for _ in range(self.ports)]
        self.seen = 0

    async def start(self, locked=True):
        """Not locked: without a clock of the ports, with their reset, and with lists that are not cleared yet."""
        dut = self.dut
        for name in ("clock", "start", "end", "trigger"):
            getattr(dut, f"ttc_{name}").value = 0
        dut.cfg_max_payload.value, dut.cfg_max_read.value = 1, 2
        dut.cfg_bus_master.value, dut.cfg_msix_enable.value, dut.cfg_msix_mask.value = 1, 1, 0
        dut.cfg_flr.value = dut.sts_pcs.value = dut.inc_pcs.value = 0
        dut.rst_net.value = 1
        dut.clk_net.value = 0
        if locked:
            self.run_net()
        cocotb.start_soon(self.wires())
        await self.cycles.start([dut.rst_core])
        dut.rst_net.value = not locked
        await self.step(20)
        assert await self.read(CARD + MAGIC) == 0x58554C50
        if locked:
            clear(dut.memory.clop.status_counts)
        return self

    def run_net(self):
        self.net = cocotb.start_soon(Clock(self.dut.clk_net, NET_PS, "ps").start())

    async def wires(self):
        """A word of each port in each cycle; idle without a frame."""
        dut = self.dut
        while True:
            for number, said in enumerate(self.said if dut.xgmii_txd.value.is_resolvable else ()):
                word = part(dut.xgmii_txd, number, 64), part(dut.xgmii_txc, number, 8)
                if said[-1:] != [word] or word != (IDLE_WORD, 0xFF):
                    said.append(word)
            words = [heard.pop(0) if heard else (IDLE_WORD, 0xFF) for heard in self.heard]
            dut.xgmii_rxd.value = sum(data << 64 * port for port, (data, _) in enumerate(words))
            dut.xgmii_rxc.value = sum(control << 8 * port for port, (_, control) in enumerate(words))
            await FallingEdge(dut.clk_net)

    def frames(self, number, frames, spoilt=False):
        wire = Wire()
        for frame in frames:
            whole = with_fcs(frame)
            wire.frame(whole[:-1] + bytes([whole[-1] ^ 1]) if spoilt else whole)
        self.heard[number] += wire.words()

    async def step(self, count=1):
        for _ in range(count):
            for side in self.sides:
                side.drive()
            await self.cycles.cycle()

    async def until(self, condition, patience=6000):
        for _ in range(patience):
            if condition():
                return
            await self.step()
        raise AssertionError("it does not happen")

    def answered(self, head, data):
        self.answers[field(head, "tag")] = (field(head, "status"), data[:4 * field(head, "length")])

    async def write(self, offset, value, bar=0, size=4):
        self.requests.send(header(offset=offset, length=size // 4, first_be=15, last_be=15 * (size > 4), bar=bar,
                                  write=1), value.to_bytes(size, "little"))
        await self.until(lambda: not self.requests.queue)

    async def read(self, offset, bar=0, size=4):
        self.tag = (self.tag + 1) % 1024
        self.requests.send(header(offset=offset, length=size // 4, first_be=15, last_be=15 * (size > 4), bar=bar,
                                  tag=self.tag))
        await self.until(lambda: self.tag in self.answers)
        status, data = self.answers.pop(self.tag)
        assert status == 0
        return int.from_bytes(data, "little")

    async def settle(self):
        """An access takes some cycles; a read completes after all writes."""
        return await self.read(CARD + STATUS)

    async def set_up(self):
        """A page, an event queue, and on each port a list for UDP port 5000."""
        await self.write(TLB + 0x1000, VIRTUAL, size=8)
        await self.write(TLB + 0x1008, BUFFERS, size=8)
        await self.write(TLB + 0x1014, 0)
        await self.write(TLB + 0x1010, 1 | 21 << 8)
        await self.write(QUEUE_BASE, EVENTS, size=8)
        await self.write(QUEUE_CTRL, 1 | 6 << 8)
        for number in range(self.ports):
            at = CLOP + 0x2000 + 32 * number * 0x40
            await self.write(at, VIRTUAL + 0x10000 * number, size=8)
            for register, value in ((0x8, 4096), (0xC, 4), (0x10, 0), (0x14, 60), (0x18, 1)):
                await self.write(at + register, value)
        await self.set_up_ports()

    async def set_up_ports(self):
        """UDP port 5000 is a stream of each."""
        for number in range(self.ports):
            await self.write(port(number, 0x18), integer(MAC), size=8)
            await self.write(port(number, 0x20), integer(IP_ADDRESS))
            await self.write(port(number, 0x200), 5000 | 1 << 31)
            await self.write(port(number, 0x8), 3)
        await self.settle()

    def memory(self, address, size):
        return bytes(self.writes.memory[address + place] for place in range(size))

    def event(self):
        """The next record, once it is valid."""
        at = EVENTS + 64 * (self.seen % 64)
        if at not in self.writes.memory or self.writes.memory[at + 63] >> 7 == self.seen // 64 % 2:
            return None
        self.seen += 1
        return self.memory(at, 64)

    async def next_event(self):
        found = []
        await self.until(lambda: found.append(self.event()) or found[-1])
        return found[-1]

    def payloads(self, record):
        """Of an announced buffer: (source port, sequence, payload) of each."""
        index, length = struct.unpack_from("<II", record, 8)
        start = BUFFERS + 0x10000 * (record[60] >> 5) + 4096 * index
        at, found = 0, []
        while at < length:
            size, source, _, sequence, _ = struct.unpack("<IHHII", self.memory(start + at, 16))
            found.append((source, sequence, self.memory(start + at + 16, size)))
            at += 16 + (size + 15) // 16 * 16
        return found


@cocotb.test()
async def the_card_says_what_it_is_and_blocks_are_linked(dut):
    tb = await TB(dut).start()
    at, kinds = 0, []
    while at or not kinds:
        kinds.append(await tb.read(at) & 0xFFFF)
        at = await tb.read(at + 4)
    assert kinds == [1, 2, 10, 3, 5, 6, 7, 4] + [8] * tb.ports
    assert await tb.read(CARD + 0x24) == tb.ports | 16 << 8 | tb.ports << 24
    assert await tb.read(CARD + 0x54) == 2
    assert await tb.read(port(1, 0)) >> 24 == 1


@cocotb.test()
async def payloads_are_in_memory_before_their_event_and_that_before_its_interrupt(dut):
    tb = await TB(dut).start()
    await tb.set_up()
    for word, value in enumerate((0xFEE00000, 0, 0x4321, 0)):
        await tb.write(4 * word, value, bar=2)
    await tb.write(EVENT + 0x401C, 0)
    await tb.write(TIMING + 0x28, 10**15, size=8)
    await tb.settle()
    sent = [[some(random.randrange(1, 300)) for _ in range(3)] for _ in range(tb.ports)]
    for number, payloads in enumerate(sent):
        tb.frames(number, [udp(payload, sport=number) for payload in payloads])
        tb.frames(number, [udp(some(20))], spoilt=True)
    got = [[] for _ in range(tb.ports)]
    while any(len(one) < 3 for one in got):
        record = await tb.next_event()
        assert record[62] == 1 and record[63] & 1 and 0 < int.from_bytes(record[:8], "little") - 10**15 < 10**5
        for source, _, payload in tb.payloads(record):
            got[source].append(payload)
    assert got == sent
    places = [address for address, _, _ in tb.writes.log]
    assert places.index(EVENTS) < places.index(0xFEE00000) and places.count(0xFEE00000) == 1
    assert tb.memory(0xFEE00000, 4) == (0x4321).to_bytes(4, "little")
    for number in range(tb.ports):
        assert await tb.read(port(number, RX_FRAMES), size=8) == 4
        assert await tb.read(port(number, RX_FCS), size=8) == 1
        assert await tb.read(CLOP + 0x4000 + 32 * number * 0x40, size=8) == 3
        assert await tb.read(port(number, 0xC)) & 0x3F == 0x19, "link up, all idle"
    assert await tb.read(HOST + 0x140, size=8) == 1


@cocotb.test()
async def a_generator_s_burst_goes_at_line_rate_and_comes_in_at_the_looped_port(dut):
    tb = await TB(dut).start()
    await tb.set_up()
    # Broadcast, which needs no ARP.
    for register, value in ((0x28, 0xFFFFFFFF), (0x48, 18), (0x4C, 8), (0x50, 0), (0x54, 5000 | 77 << 16)):
        await tb.write(port(0, register), value)
    await tb.write(port(0, 0x40), 1)
    await tb.until(lambda: tb.said[0][-1] == (IDLE_WORD, 0xFF) and len(received(tb.said[0])) == 8)
    # A ninth one would have begun.
    await tb.step(20)
    frames = received(tb.said[0])
    assert [len(frame.data) for frame in frames] == [64] * 8
    # 84 B on the wire each (IEEE 802.3, 4.4.2): 12 on average from an end to the start behind it.
    assert sum(frame.gap for frame in frames[1:]) == 7 * 12
    for number in range(tb.ports):
        await tb.write(port(number, 0x8), 7)
    await tb.write(port(0, 0x40), 1)
    got = []
    while len(got) < 8:
        got += tb.payloads(await tb.next_event())
    assert got == [(77, number, number.to_bytes(4, "little") + bytes(range(number + 4, number + 18)))
                   for number in range(8)]
    assert await tb.read(port(0, 0x44)) == 0 and await tb.read(port(0, 0x4B0), size=8) == 16
    assert await tb.read(port(0, TX_FRAMES), size=8) == 16 and await tb.read(port(1, RX_FRAMES), size=8) == 8
    # A gap in a frame, which no module of the card makes: the MAC aborts it, and both ends count that.
    await tb.write(port(0, 0x4C), 2)
    await tb.write(port(0, 0x40), 1)
    mac = dut.g_port[0].port.mac_tx
    await tb.until(lambda: int(mac.s_axis_tx_tvalid.value) and int(mac.words.value) == 3)
    mac.s_axis_tx_tvalid.value = Force(0)
    await tb.step(4)
    mac.s_axis_tx_tvalid.value = Release()
    [(source, _, payload)] = tb.payloads(await tb.next_event())
    assert (source, payload) == (77, (1).to_bytes(4, "little") + bytes(range(5, 19)))
    assert [await tb.read(port(*counter), size=8) for counter in
            ((0, TX_ABORTED), (0, TX_FRAMES), (1, RX_SYMBOL), (1, RX_FRAMES))] == [1, 17, 1, 10]


@cocotb.test()
async def a_packet_of_the_host_goes_out_and_a_trigger_is_an_event(dut):
    tb = await TB(dut).start()
    await tb.set_up()
    payload, ring, data = some(100), 0x3_0000_0000, 0x4_0000_0003
    descriptor = struct.pack("<QIHHIHHHHI", data, 100, 1 | 2 | 4 | 0x20, 100, 0xFFFFFFFF, 7000, 7001, 0, 0, 0xC00C1E)
    tb.reads.memory = lambda address, length: bytes(
        dict(enumerate(descriptor, ring) if address < data & ~3 else enumerate(payload, data)).get(address + at, 0)
        for at in range(length))
    await tb.write(TX + 0x140, ring, size=8)
    await tb.write(TX + 0x148, 1 | 3 << 8)
    await tb.write(TX + 0x14C, 1)
    record = await tb.next_event()
    assert (record[62], record[60]) == (2, 1) and record[8:12] == bytes([1, 0, 0, 0])
    await tb.until(lambda: len(tb.said[1]) > 1 and tb.said[1][-1] == (IDLE_WORD, 0xFF))
    frame = received(tb.said[1])[0].payload()
    judge(frame, payload, "255.255.255.255", 7000, 7001, "ff:ff:ff:ff:ff:ff")
    assert await tb.read(TX + 0x150) == 1 and await tb.read(TX + 0x154) == 1
    await tb.write(TIMING + 0x8, 8)
    await tb.write(TIMING + 0x28, 10**15, size=8)
    await tb.settle()
    dut.ttc_trigger.value = 1
    record = await tb.next_event()
    assert (record[62], record[63] & 1, record[16]) == (4, 1, 2)
    latched = await tb.read(TIMING + 0x48, size=8)
    assert latched == int.from_bytes(record[:8], "little") and 0 <= latched - 10**15 < 10**4
    assert await tb.read(TIMING + 0x108, size=8) == 1
    assert await tb.read(TX + 0x420, size=8) == 1 and await tb.read(TX + 0x428, size=8) == 100


@cocotb.test()
async def a_reset_by_register_forgets_all_but_the_host_bus(dut):
    tb = await TB(dut).start()
    await tb.set_up()
    await tb.write(CARD + 0x30, 0x1234)
    # Payloads in flight, and a read whose completion is late.
    tb.frames(0, [udp(some(1400)) for _ in range(3)])
    tb.reads.fault = lambda: "lost"
    await tb.write(TX + 0x108, 1 | 3 << 8)
    await tb.write(TX + 0x10C, 8)
    await tb.until(lambda: tb.reads.lost)
    await tb.write(CARD + CTRL, 1)
    assert await tb.read(CARD + STATUS) & 1 and await tb.read(port(0, 0x20)) == 0, "a block in reset responds"
    tb.reads.fault = lambda: None
    for head in tb.reads.lost:
        tb.reads.answer(head)
    for _ in range(20):
        if not await tb.read(CARD + STATUS) & 1:
            break
    assert await tb.read(CARD + 0x30) == 0x1234 and not tb.reads.coming
    assert await tb.read(TX + 0x114) == 1, "the ring is idle, without an error"
    assert await tb.read(port(0, 0x20)) == 0 and await tb.read(port(0, RX_FRAMES)) == 0
    assert await tb.read(CLOP + 0x2018) == 0
    tb.heard[0].clear()
    tb.writes.memory.clear()
    await tb.set_up()
    tb.frames(1, [udp(b"again")])
    assert tb.payloads(await tb.next_event()) == [(4000, 0, b"again")]


@cocotb.test()
async def a_reset_of_one_function_leaves_the_others(dut):
    """Function 1 has port 1; a function level reset takes back what it did there, and port 0 goes on."""
    tb = await TB(dut).start()
    await tb.set_up()
    tb.frames(0, [udp(some(1000)) for _ in range(2)])
    tb.frames(1, [udp(some(1000)) for _ in range(2)])
    await tb.write(FUNCTIONS + 8, 1 << 4)
    assert await tb.read(CLOP + 0x2018) == 1 and await tb.read(CLOP + 0x2018 + 32 * 64) == 0, "another's reads 0"
    dut.cfg_flr.value = 2
    await tb.until(lambda: int(dut.flr_done.value) == 2)
    dut.cfg_flr.value = 0
    assert await tb.read(FUNCTIONS + 0x4C) == 0
    # Function 0 takes it back, and finds all of it off.
    await tb.write(FUNCTIONS + 8, 0)
    assert await tb.read(CLOP + 0x2018) == 1 and await tb.read(CLOP + 0x2018 + 32 * 64) == 0
    assert await tb.read(TX + 0x148) == 0x300 and await tb.read(port(1, 8)) == 0x22
    assert await tb.read(port(1, 0x200)) == 0 and await tb.read(port(0, 0x200)) != 0
    tb.frames(0, [udp(b"again")])
    got = []
    while len(got) < 3:
        got += [payload for _, _, payload in tb.payloads(await tb.next_event())]
    assert got[2] == b"again"


@cocotb.test()
async def quiesced_or_without_bus_mastering_it_leaves_memory_alone(dut):
    tb = await TB(dut).start()
    await tb.set_up()
    sent = [some(500) for _ in range(3)]
    tb.frames(0, [udp(payload) for payload in sent])
    await tb.until(lambda: tb.writes.log)
    await tb.write(HOST + 0x8, 1)
    for _ in range(20):
        if await tb.read(HOST + 0xC) & 1:
            break
    written = len(tb.writes.log)
    await tb.step(150)
    assert len(tb.writes.log) == written
    await tb.write(HOST + 0x8, 0)
    got = []
    while len(got) < 3:
        got += [payload for _, _, payload in tb.payloads(await tb.next_event())]
    assert got == sent
    # Nothing blocks: writes are discarded, and reads fail.
    dut.cfg_bus_master.value, written = 0, len(tb.writes.log)
    tb.frames(1, [udp(some(600)) for _ in range(2)])
    await tb.write(TX + 0x108, 1 | 3 << 8)
    await tb.write(TX + 0x10C, 1)
    await tb.step(500)
    assert len(tb.writes.log) == written and not tb.reads.asked
    assert await tb.read(CLOP + 0x4000 + 32 * 0x40, size=8) == 2 and await tb.read(HOST + 0x110, size=8) >= 6
    assert await tb.read(TX + 0x114) & 2, "the ring has stopped"
    assert await tb.read(HOST + 0xC) & 3 == 1
    assert await tb.read(port(1, 0xC)) & 8


async def net_is(tb, up):
    for _ in range(20):
        if await tb.read(CARD + STATUS) >> 1 & 1 == up:
            return
    raise AssertionError(f"STATUS.net does not become {up}")


async def passes(tb, number, serial):
    """A payload is received, in its turn."""
    payload = some(100)
    tb.frames(number, [udp(payload)])
    assert tb.payloads(await tb.next_event()) == [(4000, serial, payload)]


@cocotb.test()
async def the_clock_of_the_ports_stops_in_the_middle_of_an_access(dut):
    """The access ends, all others are answered, the status tells; and all goes on when the clock does."""
    tb = await TB(dut).start()
    await tb.set_up()
    assert await tb.read(CARD + FLAGS) == 0
    for number, (at, value) in enumerate([(port(0, 0x20), integer(IP_ADDRESS)), (TIMING + 0x10, 1638400),
                                          (port(0, 0x20), integer(IP_ADDRESS))]):
        tb.tag = (tb.tag + 1) % 1024
        writes = number == 2
        data = (0xFFFFFFFF).to_bytes(4, "little") if writes else b""
        place = port(0, 0x28) if writes else at
        tb.requests.send(header(offset=place, length=1, first_be=15, tag=tb.tag, write=writes), data)
        await tb.step(random.randrange(25))
        tb.net.kill()
        # Behind it, a register of the core.
        tag, tb.tag = tb.tag, (tb.tag + 1) % 1024
        tb.requests.send(header(offset=TLB, length=1, first_be=15, tag=tb.tag), b"")
        await tb.until(lambda: tb.tag in tb.answers, 150)
        assert int.from_bytes(tb.answers.pop(tb.tag)[1], "little") & 0xFFFF == 5
        if not writes:
            assert int.from_bytes(tb.answers.pop(tag)[1], "little") in (value, 0)
        await net_is(tb, 0)
        assert await tb.read(at) == 0 and await tb.read(CARD + MAGIC) == 0x58554C50
        assert await tb.read(CARD + FLAGS) == 1
        await tb.write(CARD + FLAGS, 1)
        await tb.step(random.randrange(30))
        assert await tb.read(CARD + FLAGS) == 0
        tb.run_net()
        await net_is(tb, 1)
        assert await tb.read(at) == value and await tb.read(CARD + FLAGS) == 0
        if writes:
            assert await tb.read(port(0, 0x28)) in (0, 0xFFFFFFFF)
            await tb.write(port(0, 0x28), 0)
    await passes(tb, 1, 0)


@cocotb.test()
async def a_card_starts_before_its_pll_is_locked(dut):
    """Registers of the core hold what is written; the ports are set up when their clock is there."""
    tb = await TB(dut).start(locked=False)
    await net_is(tb, 0)
    await tb.set_up()
    assert await tb.read(port(0, 0x20)) == 0 and await tb.read(TLB + 0x1000, size=8) == VIRTUAL
    await tb.write(CARD + CTRL, 1)
    for _ in range(30):
        if not await tb.read(CARD + STATUS) & 1:
            break
    assert await tb.read(CARD + STATUS) == 0 and await tb.read(TLB + 0x1010) & 1 == 0
    await tb.set_up()
    tb.run_net()
    await tb.step(40)
    assert await tb.read(CARD + STATUS) == 0, "still in reset"
    dut.rst_net.value = 0
    await net_is(tb, 1)
    assert await tb.read(CARD + FLAGS) == 0 and await tb.read(port(0, 0x20)) == 0
    await tb.set_up_ports()
    clear(dut.memory.clop.status_counts)
    await passes(tb, 0, 0)
    await passes(tb, 1, 0)


@cocotb.test()
async def a_reset_of_the_ports_in_traffic_leaves_the_core_alone(dut):
    """Lists and rings go on where they were; no payload that was cut is announced."""
    tb = await TB(dut).start()
    await tb.set_up()
    ring, data, payload = 0x3_0000_0000, 0x4_0000_0000, some(600)
    one = struct.pack("<QIHHIHHHHI", data, 600, 1 | 2 | 4 | 0x20, 600, 0xFFFFFFFF, 7000, 7001, 0, 0, 0)
    tb.reads.memory = lambda address, length: bytes(
        dict(enumerate(one * 8, ring) if address < data else enumerate(payload, data)).get(address + at, 0)
        for at in range(length))
    await tb.write(TX + 0x140, ring, size=8)
    await tb.write(TX + 0x148, 1 | 3 << 8)
    for round, serial in enumerate((0, 1)):
        await tb.write(TX + 0x14C, 2 * round + 2)
        tb.frames(0, [udp(some(1400))])
        # It is not whole by then.
        await tb.step(random.randrange(120, 250))
        if round:
            tb.net.kill()
        dut.rst_net.value = 1
        tb.heard[0].clear()
        await tb.step(random.randrange(20, 60))
        if round:
            tb.run_net()
            await tb.step(3)
        dut.rst_net.value = 0
        await net_is(tb, 1)
        assert await tb.read(CARD + FLAGS) == 1 and await tb.read(port(0, 0x20)) == 0
        await tb.write(CARD + FLAGS, 1)
        await tb.set_up_ports()
        await tb.settle()
        # Packets of the ring have been told as sent, or wait.
        for number in range(2):
            record = await tb.next_event()
            assert record[62] == 2, record[62]
        await passes(tb, 0, serial)
    tb.said[1].clear()
    await tb.write(TX + 0x14C, 6)
    await tb.next_event()
    await tb.next_event()
    await tb.until(lambda: len(tb.said[1]) > 1 and tb.said[1][-1] == (IDLE_WORD, 0xFF))
    judge(received(tb.said[1])[0].payload(), payload, "255.255.255.255", 7000, 7001, "ff:ff:ff:ff:ff:ff")
    assert await tb.read(TX + 0x150) == 6
