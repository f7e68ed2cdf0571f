"""plx_tx_fifo: good packets leave whole, in order and without a gap, with the sum of their payload; bad ones leave no trace."""

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from clocks import Clock
import cycles as table
from frames import kept, ones_sum, some
from sending import GIVEN, NONE, SUM, meta

PARAMETERS = [{"WORDS": 16}, {"WORDS": 512}]

NET_PS, CORE_PS = 6400, 4000


class TB:
    """A writer that checks for space for its packet, a reader that may be slow."""

    def __init__(self, dut):
        self.dut, self.words = dut, int(dut.WORDS.value)
        self.expected, self.got, self.stall, self.first, self.last = [], [], 0.0, [], []
        self.net_cycle = 0

    async def start(self):
        dut = self.dut
        for name in ("s_axis_tx_tvalid", "s_axis_tx_tdata", "s_axis_tx_tkeep", "s_axis_tx_tlast", "s_axis_tx_tuser",
                     "s_axis_meta_tdata", "m_axis_tx_tready", "m_axis_meta_tready", "clear", "discard"):
            getattr(dut, name).value = 0
        dut.rst_net.value = dut.rst_core.value = 1
        cocotb.start_soon(Clock(dut.clk_net, NET_PS, "ps").start())
        # Edges never coincide.
        await Timer(700, "ps")
        cocotb.start_soon(Clock(dut.clk_core, CORE_PS, "ps").start())
        for _ in range(5):
            await FallingEdge(dut.clk_net)
        dut.rst_net.value = dut.rst_core.value = 0
        await FallingEdge(dut.clk_core)
        self.reading = cocotb.start_soon(self.reader())

    async def send(self, data, word, bad=False, idle=0.0):
        """Offers a packet, and records the expected output."""
        dut = self.dut
        for _ in range(3000):
            if int(dut.s_free.value) >= max(1, -(-len(data) // 32)):
                break
            await FallingEdge(dut.clk_core)
        else:
            raise AssertionError("no word becomes free")
        await self.words_of(data, word, True, bad, idle)

    async def words_of(self, data, word, leaves, bad=False, idle=0.0):
        """Offers a packet for which there is room."""
        dut, pieces = self.dut, [data[at:at + 32] for at in range(0, len(data), 32)] or [b""]
        # Without its last words, as one is that could not be read.
        pieces = pieces[:random.randint(1, len(pieces))] if bad else pieces
        if leaves and not bad:
            whole = word if word >> 96 & 3 != SUM else word & ~(0xFFFF << 80) | ones_sum(data) << 80
            self.expected.append((data, whole))
        for index, piece in enumerate(pieces):
            while random.random() < idle:
                await FallingEdge(dut.clk_core)
            last = index == len(pieces) - 1
            dut.s_axis_tx_tvalid.value, dut.s_axis_tx_tlast.value, dut.s_axis_tx_tuser.value = 1, last, last and bad
            dut.s_axis_tx_tdata.value = int.from_bytes(piece.ljust(32, b"\xdd"), "little")
            dut.s_axis_tx_tkeep.value = (1 << len(piece)) - 1
            dut.s_axis_meta_tdata.value = word if last else random.getrandbits(99)
            await FallingEdge(dut.clk_core)
            dut.s_axis_tx_tvalid.value = 0

    async def reader(self):
        """As plx_udp_tx: metadata and words are accepted independently."""
        dut, data, metas, offered = self.dut, None, [], None
        while True:
            dut.m_axis_tx_tready.value = ready = random.random() >= self.stall
            dut.m_axis_meta_tready.value = meta_ready = random.random() >= self.stall
            await RisingEdge(dut.clk_net)
            self.net_cycle += 1
            valid, meta_valid = int(dut.m_axis_tx_tvalid.value), int(dut.m_axis_meta_tvalid.value)
            assert valid or data is None, "a gap in a packet"
            assert not valid or metas or meta_valid, "a word before its metadata"
            if meta_valid and meta_ready:
                metas.append(int(dut.m_axis_meta_tdata.value))
            if valid:
                keep, last = int(dut.m_axis_tx_tkeep.value), int(dut.m_axis_tx_tlast.value)
                count = keep.bit_length()
                assert keep == (1 << count) - 1 and (last or count == 8), f"tkeep {keep:08b}"
                word = kept(dut.m_axis_tx_tdata, count), last
                assert offered in (None, word), "an offer changed"
                offered = None if ready else word
                if ready:
                    if data is None:
                        data = b""
                        self.first.append(self.net_cycle)
                    data += word[0]
                    if last:
                        self.last.append(self.net_cycle)
                        while not metas:
                            await self.more(metas)
                        self.got.append((data, metas.pop(0)))
                        data = None
            else:
                assert offered is None, "an offer was taken back"
            await FallingEdge(dut.clk_net)

    async def more(self, metas):
        """The metadata of a packet whose words have all been taken."""
        dut = self.dut
        await FallingEdge(dut.clk_net)
        dut.m_axis_tx_tready.value, dut.m_axis_meta_tready.value = 0, 1
        await RisingEdge(dut.clk_net)
        self.net_cycle += 1
        if int(dut.m_axis_meta_tvalid.value):
            metas.append(int(dut.m_axis_meta_tdata.value))

    async def settle(self):
        dut = self.dut
        for _ in range(3000):
            await FallingEdge(dut.clk_net)
            if len(self.got) == len(self.expected) and not int(dut.busy.value):
                break
        for _ in range(20):
            await FallingEdge(dut.clk_core)
        assert int(dut.idle.value) and not int(dut.busy.value)
        assert int(dut.s_free.value) == self.words, "a word is never free again"
        assert len(self.got) == len(self.expected)
        for (data, word), (expected, whole) in zip(self.got, self.expected):
            assert data == expected
            assert word == whole, f"{word:#x} is not {whole:#x}"


def packet(longest):
    size = random.choice((0, 1, 7, 8, 9, 31, 32, 33, 60, 63, 64, 65, random.randrange(longest + 1)))
    data = some(size)
    mode = random.choice((NONE, GIVEN, SUM))
    return data, meta(size, checksum=0 if mode == SUM else random.getrandbits(16), mode=mode,
                      raw=random.getrandbits(1) if mode == NONE else 0)


@cocotb.test()
async def good_packets_leave_whole_and_bad_ones_never_were(dut):
    tb = TB(dut)
    await tb.start()
    for tb.stall, idle in ((0.0, 0.3), (0.4, 0.0), (0.8, 0.2)):
        for _ in range(70):
            await tb.send(*packet(400), random.random() < 0.25, idle)
        await tb.settle()
    assert 90 < len(tb.got) < 210


@cocotb.test()
async def the_sum_is_that_of_the_payload_alone(dut):
    """Of zeros, ones, odd lengths, words without gaps; without withdrawn packets."""
    tb = TB(dut)
    await tb.start()
    for size in (0, 1, 2, 31, 32, 33, 97, 300):
        for data in (some(size), bytes(size), b"\xff" * size):
            await tb.send(data, meta(size, mode=SUM))
            await tb.send(some(40), meta(40, mode=SUM), bad=True)
    await tb.settle()


@cocotb.test()
async def long_packets_up_to_the_whole_fifo(dut):
    tb = TB(dut)
    await tb.start()
    longest = min(32 * tb.words, 3000)
    for size in (longest, longest - 31):
        await tb.send(some(size), meta(size, mode=SUM))
        await tb.send(some(longest), meta(longest), bad=True)
    await tb.settle()


@cocotb.test()
async def line_rate_of_the_smallest_frames(dut):
    """Raw frames of 60 bytes, which take 10.5 cycles on the wire (IEEE 802.3, 4.4.2): no cycle is lost between them."""
    tb = TB(dut)
    await tb.start()
    for _ in range(40):
        await tb.send(some(60), meta(60, raw=1))
    await tb.settle()
    assert all(last - first == 7 for first, last in zip(tb.first, tb.last))
    assert tb.first[-1] - tb.first[4] == 8 * (len(tb.first) - 5)


@cocotb.test()
async def latency(dut):
    """Three cycles of clk_core for the sum; then those of clk_net."""
    tb = TB(dut)
    await tb.start()
    seen = set()
    for _ in range(12):
        cocotb.start_soon(tb.send(some(20), meta(20)))
        for _ in range(3):
            await RisingEdge(dut.clk_core)
        edges = 0
        while not int(dut.m_axis_tx_tvalid.value):
            await RisingEdge(dut.clk_net)
            edges += 1
            await FallingEdge(dut.clk_net)
        seen.add(edges)
        await tb.settle()
    table.check("tx_fifo", max(seen))


@cocotb.test()
async def a_reset_of_the_wire_forgets_what_waits(dut):
    """Packets in it, and the one that arrives, are lost; none begins meanwhile; those after it all leave."""
    tb = TB(dut)
    await tb.start()
    for number in range(20):
        tb.stall, tb.expected, tb.got = 1.0 if number % 2 else 0.5, [], []
        for _ in range(3):
            if int(dut.s_free.value) >= 5:
                await tb.send(*packet(100))
        # A packet whose rest arrives meanwhile, or after it.
        dut.s_axis_tx_tvalid.value, dut.s_axis_tx_tlast.value = int(dut.s_free.value) > 2, 0
        await FallingEdge(dut.clk_core)
        dut.s_axis_tx_tvalid.value, open_one = 0, int(dut.s_axis_tx_tvalid.value)
        tb.reading.kill()
        dut.clear.value = 1
        await FallingEdge(dut.clk_net)
        dut.rst_net.value = 1
        for _ in range(random.randrange(1, 4)):
            await FallingEdge(dut.clk_net)
        dut.rst_net.value = 0
        # The rest of the packet is lost, whenever it arrives.
        for late in random.choice(((0, 1), (1, 0))):
            await FallingEdge(dut.clk_core)
            assert int(dut.s_free.value) == 0 or not (open_one or int(dut.clear.value))
            if late and open_one:
                dut.s_axis_tx_tvalid.value, dut.s_axis_tx_tlast.value, dut.s_axis_tx_tuser.value = 1, 1, 0
                await FallingEdge(dut.clk_core)
                dut.s_axis_tx_tvalid.value = open_one = 0
            for _ in range(4):
                await FallingEdge(dut.clk_core)
            dut.clear.value = 0
        await FallingEdge(dut.clk_core)
        tb.expected, tb.got, tb.stall = [], [], 0.2
        await FallingEdge(dut.clk_net)
        tb.reading = cocotb.start_soon(tb.reader())
        await FallingEdge(dut.clk_core)
        for _ in range(4):
            await tb.send(*packet(200))
        await tb.settle()


@cocotb.test()
async def a_packet_that_begins_as_the_wire_is_reset_has_room(dut):
    """The writer sees the clear a cycle late, and may begin a packet as long as was free before it: its words arrive in
    the clear, and it is lost, or behind it, and it leaves. No other begins meanwhile."""
    tb = TB(dut)
    await tb.start()
    left = 0
    for wait in (0, 1, 2, 5, 11, 30) * 2:
        tb.stall = 1.0
        for _ in range(random.randrange(3)):
            await tb.send(*packet(100))
        tb.reading.kill()
        dut.clear.value = 1
        free = int(dut.s_free.value)
        dut.rst_net.value = 1
        tb.expected, tb.got, tb.stall = [], [], 0.2
        sending, cleared = None, random.choice((8, 12))
        for cycle in range(40):
            if cycle == wait:
                size = 32 * free - random.randrange(32)
                sending = cocotb.start_soon(tb.words_of(some(size), meta(size, mode=SUM), wait >= cleared))
            await FallingEdge(dut.clk_core)
            assert int(dut.s_free.value) == 0 or cycle >= cleared, "words are free while there is no other side"
            if cycle == 5:
                await FallingEdge(dut.clk_net)
                dut.rst_net.value = 0
                tb.reading = cocotb.start_soon(tb.reader())
                await FallingEdge(dut.clk_core)
            dut.clear.value = cycle + 1 < cleared
        await sending
        left += len(tb.expected)
        for _ in range(3):
            await tb.send(*packet(200))
        await tb.settle()
    assert 0 < left < 12, "some are lost, some leave"


@cocotb.test()
async def all_is_free_while_packets_are_withdrawn(dut):
    """Also while the other side is in reset: what asks for room then is thrown away. Afterwards what is free is."""
    tb = TB(dut)
    await tb.start()
    for clears in (0, 1, 0, 1):
        tb.stall = 1.0
        await tb.send(*packet(100))
        for _ in range(30):
            await FallingEdge(dut.clk_core)
        taken = int(dut.s_free.value)
        dut.discard.value, dut.clear.value = 1, clears
        for cycle in range(20):
            await FallingEdge(dut.clk_core)
            assert int(dut.s_free.value) == tb.words, cycle
        dut.discard.value = 0
        await FallingEdge(dut.clk_core)
        assert int(dut.s_free.value) == (0 if clears else taken)
        dut.clear.value = 0
        if clears:
            tb.reading.kill()
            dut.rst_net.value = 1
            for _ in range(3):
                await FallingEdge(dut.clk_net)
            dut.rst_net.value, tb.expected, tb.got = 0, [], []
            await FallingEdge(dut.clk_net)
            tb.reading = cocotb.start_soon(tb.reader())
        tb.stall = 0.2
        await tb.settle()
