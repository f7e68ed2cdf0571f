"""plx_rx_fifo: outputs whole payloads in order, and bad ends of payloads that it had to cut; every loss counted once."""

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer

from clocks import Clock
import cycles as table

PARAMETERS = [{"WORDS": 16, "METAS": 8}, {"WORDS": 64, "METAS": 4}]

NET_PS, CORE_PS = 6400, 4000


class TB:
    """Payloads are (words, bytes of the last, bad); metadata are their numbers."""

    def __init__(self, dut):
        self.dut, self.sent, self.got, self.overflow, self.stall = dut, [], [], 0, 0.0
        self.payload, self.meta, self.meta_now = [], None, None

    async def start(self):
        dut = self.dut
        for name in ("s_axis_payload_tvalid", "s_axis_payload_tlast", "s_axis_payload_tuser", "s_axis_meta_tvalid",
                     "s_axis_payload_tdata", "s_axis_payload_tkeep", "s_axis_meta_tdata", "m_axis_payload_tready",
                     "m_axis_meta_tready", "clear"):
            getattr(dut, name).value = 0
        dut.rst_net.value = dut.rst_core.value = 1
        cocotb.start_soon(Clock(dut.clk_net, NET_PS, "ps").start())
        # Edges never coincide.
        await Timer(700, "ps")
        cocotb.start_soon(Clock(dut.clk_core, CORE_PS, "ps").start())
        for _ in range(5):
            await FallingEdge(dut.clk_net)
        dut.rst_net.value = dut.rst_core.value = 0
        await FallingEdge(dut.clk_net)
        cocotb.start_soon(self.reader())
        cocotb.start_soon(self.counter())

    async def counter(self):
        while True:
            await RisingEdge(self.dut.clk_net)
            self.overflow += int(self.dut.inc_overflow.value)

    async def send(self, words, keep=8, bad=False, idle=0.0):
        """Offers a payload, without back-pressure."""
        dut, number = self.dut, len(self.sent)
        data = [random.getrandbits(64) for _ in range(words)]
        self.sent.append((data, keep, bad))
        for index, word in enumerate(data):
            while random.random() < idle:
                await FallingEdge(dut.clk_net)
            dut.s_axis_payload_tvalid.value, dut.s_axis_payload_tdata.value = 1, word
            last = index == words - 1
            dut.s_axis_payload_tlast.value, dut.s_axis_payload_tuser.value = last, last and bad
            dut.s_axis_payload_tkeep.value = (1 << keep) - 1 if last else 0xFF
            dut.s_axis_meta_tvalid.value, dut.s_axis_meta_tdata.value = index == 0, number
            await FallingEdge(dut.clk_net)
            dut.s_axis_payload_tvalid.value = dut.s_axis_meta_tvalid.value = 0

    async def burst(self):
        while True:
            await self.send(random.choice([1, 2, 7]), random.randint(1, 8))

    async def reader(self):
        """Accepts words and, now or later, metadata, which are valid with the first word."""
        dut, offered = self.dut, None
        while True:
            ready = random.random() >= self.stall
            first = not self.payload and self.meta is None
            # Metadata are taken with or before the first word.
            dut.m_axis_payload_tready.value = ready
            dut.m_axis_meta_tready.value = ready if first else 0
            await RisingEdge(dut.clk_core)
            valid, meta_valid = int(dut.m_axis_payload_tvalid.value), int(dut.m_axis_meta_tvalid.value)
            if meta_valid and first and ready:
                self.meta = int(dut.m_axis_meta_tdata.value)
            if valid:
                word = tuple(int(getattr(dut, f"m_axis_payload_{name}").value)
                             for name in ("tdata", "tkeep", "tlast", "tuser"))
                assert offered in (None, word) or self.clearing(), "the offer did not stand"
                offered = None if ready else word
                assert not first or meta_valid, "a word before its metadata"
            else:
                assert offered is None or self.clearing()
                offered = None
            if valid and ready:
                self.payload.append(word)
                if word[2]:
                    self.got.append((self.meta, self.payload))
                    self.payload, self.meta = [], None
            await FallingEdge(dut.clk_core)

    def clearing(self):
        return int(self.dut.clear.value) or int(self.dut.ending.value)

    async def lose_the_wire(self, ahead):
        """The other side is told, then its clock's side is in reset for some cycles, and it is told again."""
        dut = self.dut
        await FallingEdge(dut.clk_core)
        dut.clear.value = 1
        for _ in range(ahead):
            await FallingEdge(dut.clk_net)
        dut.rst_net.value = 1
        for _ in range(random.randrange(1, 5)):
            await FallingEdge(dut.clk_net)
        dut.rst_net.value = dut.s_axis_payload_tvalid.value = dut.s_axis_meta_tvalid.value = 0
        for _ in range(3):
            await FallingEdge(dut.clk_core)
        dut.clear.value = 0

    async def settle(self):
        for _ in range(600):
            await FallingEdge(self.dut.clk_net)
        assert not self.payload and self.meta is None

    def check(self):
        """Each payload is whole, or cut with a bad end, or absent; the last two are counted."""
        numbers = [number for number, _ in self.got]
        assert numbers == sorted(set(numbers)), "doubled or out of order"
        lost = 0
        received = dict(self.got)
        for number, (data, keep, bad) in enumerate(self.sent):
            if number not in received:
                lost += not bad
                continue
            words = received[number]
            assert [word[0] for word in words] == data[:len(words)]
            assert all(word[1:] == (0xFF, 0, 0) for word in words[:-1])
            if len(words) < len(data):
                lost += not bad
                assert words[-1][2:] == (1, 1), "cut off, and not bad"
            elif words[-1][3] and not bad:
                raise AssertionError("a good payload became bad")
            else:
                assert words[-1][1:] == ((1 << keep) - 1, 1, bad)
        assert self.overflow == lost, f"{self.overflow} counted of {lost} lost"
        return lost


@cocotb.test()
async def nothing_is_lost_while_there_is_room(dut):
    """The wire at full rate, a reader that is ready as often as it must be."""
    tb = TB(dut)
    await tb.start()
    tb.stall = 0.2
    for _ in range(60):
        await tb.send(random.choice([1, 2, 3, 8, 30]), random.randint(1, 8), random.random() < 0.2, 0.1)
    await tb.send(1, 0)
    await tb.settle()
    assert tb.check() == 0 and len(tb.got) == 61


@cocotb.test()
async def overflow_drops_whole_payloads_or_ends_them_bad(dut):
    tb = TB(dut)
    await tb.start()
    for stall in (0.9, 0.97, 0.6):
        tb.stall = stall
        for _ in range(80):
            await tb.send(random.choice([1, 1, 2, 5, 12, 40]), random.randint(1, 8), random.random() < 0.2)
        tb.stall = 0.1
        await tb.settle()
    lost = tb.check()
    cut = sum(len(words) < len(tb.sent[number][0]) for number, words in tb.got)
    assert lost > 20 and cut > 0, (lost, cut)


@cocotb.test()
async def it_recovers_after_an_overflow(dut):
    tb = TB(dut)
    await tb.start()
    tb.stall = 1.0
    for _ in range(40):
        await tb.send(7)
    tb.stall = 0.0
    await tb.settle()
    held, lost = len(tb.got), tb.check()
    assert lost and held
    for _ in range(20):
        await tb.send(7)
    await tb.settle()
    assert tb.check() == lost and len(tb.got) == held + 20


@cocotb.test()
async def latency(dut):
    """One edge of clk_net, then three of clk_core."""
    tb = TB(dut)
    await tb.start()
    seen = set()
    for _ in range(12):
        cocotb.start_soon(tb.send(1))
        await RisingEdge(dut.clk_net)
        edges = 0
        while not int(dut.m_axis_payload_tvalid.value):
            await RisingEdge(dut.clk_core)
            edges += 1
            await FallingEdge(dut.clk_core)
        seen.add(edges)
        for _ in range(7):
            await FallingEdge(dut.clk_net)
    table.check("rx_fifo", max(seen))


@cocotb.test()
async def a_reset_of_the_wire_ends_what_was_begun(dut):
    """Payloads before it are whole, end bad after fewer words, or are absent; those after it all arrive."""
    tb = TB(dut)
    await tb.start()
    cut = 0
    for tb.stall in [0.1, 0.5, 0.8] * 6:
        tb.sent, tb.got = [], []
        await FallingEdge(dut.clk_net)
        sending = cocotb.start_soon(tb.burst())
        await Timer(random.randrange(60) * CORE_PS, "ps")
        sending.kill()
        await tb.lose_the_wire(2)
        for _ in range(100):
            await FallingEdge(dut.clk_core)
        assert tb.meta is None and not tb.payload, "a payload did not end"
        for number, words in tb.got:
            data, keep, bad = tb.sent[number]
            if words[-1][3] and not bad:
                cut += 1
                assert len(words) <= len(data) and words[-1][1:] == (1, 1, 1)
                words = words[:-1]
            assert [word[0] for word in words] == data[:len(words)]
        tb.sent, tb.got, tb.overflow = [], [], 0
        tb.stall = 0.1
        await FallingEdge(dut.clk_net)
        for _ in range(3):
            await tb.send(5)
        for _ in range(60):
            await FallingEdge(dut.clk_net)
        assert tb.check() == 0 and len(tb.got) == 3
    assert cut > 3, cut
