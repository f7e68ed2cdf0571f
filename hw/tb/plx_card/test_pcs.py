"""plx_card: the registers of a PCS that stands beside the card, in those of its port."""

import random

import cocotb
from cocotb.triggers import FallingEdge

from core import joined
from test_function_resets import reset, started, write
from test_plx_card import FUNCTIONS, TB, port

PARAMETERS = [{"PORTS": 2, "TLB_ENTRIES": 4, "EVENT_QUEUES": 2, "RD_TAGS": 8, "RX_FIFO_WORDS": 256,
               "RX_FIFO_FRAMES": 32, "ARP_ENTRIES": 16}]

PCS_CTRL, PCS_STATUS, PCS_COUNTS = 0x5C, 0x60, 0x4C0
# Bits of each count in inc_pcs, from the lowest on, in the order of their registers.
WIDTHS = {"ber": 2, "errored_blocks": 2, "prbs31_errors": 8, "deleted": 2, "inserted": 1, "overflow": 2, "underflow": 1,
          "tx_errors": 1}
INC_W = sum(WIDTHS.values())


async def counts(tb, number):
    return [await tb.read(port(number, PCS_COUNTS + 8 * i), size=8) for i in range(len(WIDTHS))]


@cocotb.test()
async def a_card_without_a_pcs_says_so(dut):
    tb = await TB(dut).start()
    for number in range(tb.ports):
        await tb.write(port(number, PCS_CTRL), 3)
        assert await tb.read(port(number, PCS_CTRL)) == 3
        assert await tb.read(port(number, PCS_STATUS)) == 0 and await counts(tb, number) == [0] * 8


@cocotb.test()
async def state_and_counts_are_in_the_registers_of_the_port(dut):
    """Each state; counts of one, and as large as they can be, in a row, and several at once."""
    tb = await TB(dut).start()
    for state in random.sample(range(16), 16):
        states = [state, ~state & 15]
        dut.sts_pcs.value = joined(states, 4)
        await tb.step(4)
        assert [await tb.read(port(number, PCS_STATUS)) for number in range(2)] == states
    expected = [[0] * 8 for _ in range(tb.ports)]
    for cycle in range(300):
        words = []
        for number in range(tb.ports):
            word = at = 0
            for i, bits in enumerate(WIDTHS.values()):
                most = (1 << bits) - 1
                # Each once alone, then any of them, then all.
                amount = most if cycle in (2 * i + number, 299) else random.choice((0, most, 1)) if cycle > 40 else 0
                expected[number][i] += amount
                word |= amount << at
                at += bits
            words.append(word)
        await FallingEdge(dut.clk_net)
        dut.inc_pcs.value = joined(words, INC_W)
    await FallingEdge(dut.clk_net)
    dut.inc_pcs.value = 0
    await tb.step(200)
    assert [await counts(tb, number) for number in range(tb.ports)] == expected


@cocotb.test()
async def a_test_pattern_is_a_port_s_and_ends_with_a_reset_of_its_function(dut):
    tb = await started(dut)
    await tb.write(port(0, PCS_CTRL), 3)
    await write(tb, port(1, PCS_CTRL), 1)
    await tb.settle()
    assert (int(dut.cfg_prbs31_tx.value), int(dut.cfg_prbs31_rx.value)) == (3, 1)
    await write(tb, port(1, PCS_CTRL), 2)
    await tb.settle()
    assert (int(dut.cfg_prbs31_tx.value), int(dut.cfg_prbs31_rx.value)) == (1, 3)
    await reset(tb, 1)
    assert (int(dut.cfg_prbs31_tx.value), int(dut.cfg_prbs31_rx.value)) == (1, 1)
    await tb.write(FUNCTIONS + 8, 0)
    assert [await tb.read(port(number, PCS_CTRL)) for number in range(2)] == [3, 0]
