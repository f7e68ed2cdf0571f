"""plx_pcs_tx: words of XGMII to scrambled blocks, beside the figures of IEEE 802.3, clause 49."""

import random

import baser
import cocotb
import cycles
from cocotb.triggers import ClockCycles, RisingEdge
from xgmii import Wire, payload, with_fcs

from clocks import Clock

LATENCY = 2


async def start(dut):
    cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
    dut.xgmii_txd.value, dut.xgmii_txc.value = baser.IDLES
    dut.cfg_prbs31.value, dut.rst.value = 0, 1
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0


async def play(dut, words):
    """Blocks of these words, descrambled, with the count of errors beside each; those before first."""
    receiver, blocks = baser.Receiver(), []
    for word in [*words, *[baser.IDLES] * LATENCY]:
        dut.xgmii_txd.value, dut.xgmii_txc.value = word
        await RisingEdge(dut.clk)
        blocks.append((receiver.descramble((dut.tx_header.value.integer, dut.tx_data.value.integer)),
                       dut.inc_error.value.integer))
    return blocks


@cocotb.test()
async def blocks_are_those_of_the_standard(dut):
    """Any words, in any order: kinds, states, codes, order of bits; and each word of errors is counted once."""
    await start(dut)
    words = [*[baser.any_word(random) for _ in range(1500)], *[baser.IDLES] * LATENCY]
    sender, wanted = baser.Sender(), [baser.FAULT_BLOCK]
    for word in words:
        wanted.append(sender.block(word))
    blocks = await play(dut, words)
    # The descrambler knows the line after a block. The first of a word is that of the reset.
    found = [block for block, _ in blocks[LATENCY - 1:]]
    for number, (one, other) in enumerate(zip(found[1:], wanted[1:])):
        assert one == other, f"word {number}, {words[number]}: {one}, not {other}"
    errors = sum(error for _, error in blocks)
    assert errors == sum(block == baser.ERROR_BLOCK for block in wanted) > 100, errors


@cocotb.test()
async def sample_of_the_task_force(dut):
    """Behind a frame that ends with a line of ones: a word of data that makes it so, and seven bytes of ones."""
    await start(dut)
    line, sent = baser.Receiver(), baser.Sender()
    words = [baser.IDLES, (0xD5555555555555FB, 0x01)]
    for block in [baser.FAULT_BLOCK, *(sent.block(word) for word in words)]:
        line.descramble(sent.scramble(block))
    words += [(line.descramble((0b10, baser.WORD))[1], 0x00), (0xFDFFFFFFFFFFFFFF, 0x80)]
    blocks = []
    for dut.xgmii_txd.value, dut.xgmii_txc.value in [*words, *baser.SAMPLE_WORDS, *[baser.IDLES] * LATENCY]:
        await RisingEdge(dut.clk)
        blocks.append((dut.tx_header.value.integer, dut.tx_data.value.integer))
    assert blocks[-4:] == [(0b10, baser.WORD), (0b01, baser.WORD), *baser.SAMPLE_BLOCKS], blocks


@cocotb.test()
async def frames_have_no_errors(dut):
    """All lengths of the last word, in both lanes, with ordered sets between."""
    await start(dut)
    wire = Wire()
    for size in range(60, 80):
        wire.frame(with_fcs(payload(size)), gap=random.choice((9, 12, 13)))
        if size % 3 == 0:
            wire.idle(4)
            wire.sequence(random.choice((1, 2)))
    blocks = await play(dut, list(wire.words()))
    assert not any(error for _, error in blocks)
    assert {block[1] & 0xFF for block, _ in blocks[3:] if block[0] == 1} >= set(baser.ENDS)


@cocotb.test()
async def a_reset_sends_local_faults(dut):
    await start(dut)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    blocks = await play(dut, [baser.ERRORS] * 8)
    # Its line is the same one again and again: not scrambled with what was before.
    plain = baser.Sender()
    assert plain.scramble(baser.FAULT_BLOCK) == (dut.tx_header.value.integer, dut.tx_data.value.integer), blocks[-1]


@cocotb.test()
async def latency(dut):
    """From a start to its block."""
    await start(dut)
    wire = Wire()
    wire.idle(64)
    wire.frame(with_fcs(payload(60)), lane=0)
    words = list(wire.words())
    first = next(at for at, word in enumerate(words) if word[0] & 0xFF == baser.START)
    blocks = [block for block, _ in await play(dut, words)]
    cycles.check("pcs_tx", next(at for at, block in enumerate(blocks) if at > 2 and block[1] & 0xFF == 0x78) - first)
