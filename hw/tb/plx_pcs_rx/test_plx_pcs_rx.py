"""plx_pcs_rx: scrambled blocks to words of XGMII, beside the figures of IEEE 802.3, clause 49."""

import random

import baser
import cocotb
import cycles
from cocotb.triggers import ClockCycles, RisingEdge
from xgmii import Wire, payload, with_fcs

from clocks import Clock

PARAMETERS = [{"SLIP_CYCLES": 3, "BER_WINDOW": 400}]
IDLE_BLOCK = baser.encode(baser.IDLES)[1]


class TB:
    def __init__(self, dut):
        self.dut, self.sender, self.slips = dut, baser.Sender(), 0
        cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())

    async def start(self, lock=True):
        dut = self.dut
        dut.cfg_prbs31.value, dut.rx_signal_ok.value, dut.rst.value = 0, 1, 1
        dut.rx_header.value = dut.rx_data.value = 0
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        if lock:
            await self.play([IDLE_BLOCK] * 80)
            assert dut.locked.value == 1 and not dut.hi_ber.value
        return self

    async def play(self, blocks):
        """Words while these blocks are received."""
        dut, words = self.dut, []
        for block in blocks:
            dut.rx_header.value, dut.rx_data.value = self.sender.scramble(block)
            await RisingEdge(dut.clk)
            words.append((dut.xgmii_rxd.value.integer, dut.xgmii_rxc.value.integer))
            self.slips += dut.rx_slip.value.integer
        return words


@cocotb.test()
async def words_are_those_of_the_standard(dut):
    """Any blocks, in any order: legal ones, blocks with wrong codes, kinds or headers, and random ones."""
    tb = await TB(dut).start()
    blocks = []
    for number in range(1500):
        header, data = baser.encode(baser.any_word(random))[1]
        if random.random() < 0.3:
            data ^= random.getrandbits(64) & random.getrandbits(64) & random.getrandbits(64)
        if random.random() < 0.1:
            data = random.getrandbits(64)
        if number % 50 == 0:
            header = random.choice((0, 3))
        blocks.append((header, data))
    receiver = baser.Receiver()
    receiver.state = "C"
    wanted = [receiver.word(block) for block in [*blocks, IDLE_BLOCK]][1:]
    words = (await tb.play([*blocks, *[IDLE_BLOCK] * 8]))[3:]
    for number, (one, other) in enumerate(zip(words, wanted)):
        assert one == other, f"block {number}, {blocks[number]}: {one}, not {other}"
    assert wanted.count(baser.ERRORS) > 300 and dut.locked.value == 1


@cocotb.test()
async def sample_of_the_task_force(dut):
    """Behind a block of ones, whatever that is."""
    await TB(dut).start()
    words = []
    for dut.rx_header.value, dut.rx_data.value in [(0b01, baser.WORD), *baser.SAMPLE_BLOCKS, *[(0b10, 0)] * 3]:
        await RisingEdge(dut.clk)
        words.append((dut.xgmii_rxd.value.integer, dut.xgmii_rxc.value.integer))
    assert words[-2:] == baser.SAMPLE_WORDS, words


def figure_49_14(headers):
    """States of block lock behind each header, and the slips, of which the transceiver takes some cycles."""
    locked = seen = bad = wait = 0
    for header in headers:
        slips = 0
        if wait:
            wait -= 1
        else:
            seen, bad = seen + 1, bad + (header in (0, 3))
            if header in (0, 3) and (bad == 16 or not locked):
                locked, slips, seen, bad, wait = 0, 1, 0, 0, 3
            elif seen == 64:
                locked, seen, bad = int(locked or bad == 0), 0, 0
        yield locked, slips


@cocotb.test()
async def lock_is_that_of_figure_49_14(dut):
    """Headers that are wrong more or less often: each change of lock, and each slip, in its cycle."""
    await TB(dut).start(lock=False)
    headers = []
    for share in (0.5, 0, 0.02, 0.2, 0.3, 0, 0.27, 0.24, 0.01, 0, 1, 0):
        headers += [random.choice((0, 3)) if random.random() < share else random.choice((1, 2)) for _ in range(300)]
    # Of the reset's last cycle.
    found = []
    for header in headers:
        dut.rx_header.value = header
        await RisingEdge(dut.clk)
        found.append((dut.locked.value.integer, dut.rx_slip.value.integer))
    wanted = list(figure_49_14(headers))
    assert found[1:] == wanted[:-1]
    changes = sum(one[0] != other[0] for one, other in zip(wanted, wanted[1:]))
    assert changes >= 4 and sum(slips for _, slips in wanted) > 20, changes


@cocotb.test()
async def a_high_error_rate_is_a_fault(dut):
    """16 wrong headers in a window, for ever: faults for ever, though locked; and frames again after the end."""
    tb = await TB(dut).start()
    bad = [(3, 0), *[IDLE_BLOCK] * 15]
    # 15 in a window are not too many; the window's beginning is not known.
    await tb.play((bad * 7 + [IDLE_BLOCK] * 400) * 2)
    assert not dut.hi_ber.value and dut.locked.value == 1
    words = await tb.play(bad * 60)
    assert dut.hi_ber.value == 1 and dut.locked.value == 1 and set(words[600:]) == {baser.FAULTS}
    words = await tb.play([IDLE_BLOCK] * 850)
    assert not dut.hi_ber.value and words[-1] == baser.IDLES


@cocotb.test()
async def no_signal_is_a_fault(dut):
    """Whatever comes."""
    tb = await TB(dut).start()
    dut.rx_signal_ok.value = 0
    words = await tb.play([IDLE_BLOCK] * 100)
    assert set(words[3:]) == {baser.FAULTS} and not dut.locked.value
    dut.rx_signal_ok.value = 1
    words = await tb.play([IDLE_BLOCK] * 100)
    assert words[-1] == baser.IDLES and dut.locked.value == 1


@cocotb.test()
async def latency(dut):
    """From the block of a start to its word."""
    tb = await TB(dut).start()
    wire = Wire()
    wire.idle(64)
    wire.frame(with_fcs(payload(60)), lane=0)
    wire.idle(64)
    words = list(wire.words())
    sender = baser.Sender()
    found = await tb.play([sender.block(word) for word in words])
    cycles.check("pcs_rx", found.index(words[10]) - words.index(words[10]))
    assert found[8:] == words[5:-3]
