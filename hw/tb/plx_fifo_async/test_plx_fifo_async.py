"""plx_fifo_async: order and completeness with clocks of any ratio, and random stalls at both ends."""

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout

from clocks import Clock

PARAMETERS = [{"WIDTH": 16, "DEPTH": 4, "STAGES": 2}, {"WIDTH": 16, "DEPTH": 16, "STAGES": 3}]

# Periods in ps: 156.25 MHz to 250 MHz and back, nearly the same, far apart.
CLOCKS = [(6400, 4000), (4000, 6400), (6400, 6402), (10000, 1306)]
WORDS = 150


async def write(dut, words, idle):
    """Puts the words in; inputs change at falling edges, so that no edge races with them."""
    for word in words:
        while random.random() < idle:
            await FallingEdge(dut.w_clk)
        dut.s_valid.value, dut.s_data.value = 1, word
        while True:
            ready = dut.s_ready.value == 1
            await FallingEdge(dut.w_clk)
            if ready:
                break
        dut.s_valid.value = 0


async def read(dut, count, idle):
    """Accepts as many words, and checks that an offer is stable until accepted."""
    words, offered = [], None
    while len(words) < count:
        dut.m_ready.value = ready = random.random() >= idle
        await RisingEdge(dut.r_clk)
        valid = dut.m_valid.value == 1
        word = dut.m_data.value.integer if valid else None
        assert offered is None or word == offered, "the offer did not stand"
        offered = word if valid and not ready else None
        if valid and ready:
            words.append(word)
        await FallingEdge(dut.r_clk)
    dut.m_ready.value = 0
    return words


async def start(dut, clocks):
    dut.s_valid.value = dut.s_data.value = dut.m_ready.value = 0
    dut.w_rst.value = dut.r_rst.value = 1
    running = [cocotb.start_soon(Clock(clock, period, "ps").start())
               for clock, period in zip((dut.w_clk, dut.r_clk), clocks)]
    for clock in (dut.w_clk, dut.r_clk) * 4:
        await FallingEdge(clock)
    dut.w_rst.value = 0
    await FallingEdge(dut.r_clk)
    dut.r_rst.value = 0
    await FallingEdge(dut.w_clk)
    return running


@cocotb.test()
async def order(dut):
    for clocks in CLOCKS:
        for write_idle, read_idle in ((0, 0), (0, 0.6), (0.6, 0)):
            running = await start(dut, clocks)
            words = [random.getrandbits(16) for _ in range(WORDS)]
            writer = cocotb.start_soon(write(dut, words, write_idle))
            assert await with_timeout(read(dut, WORDS, read_idle), 50, "us") == words
            await writer
            assert dut.m_valid.value == 0, "a word that was not written"
            for clock in running:
                clock.kill()


@cocotb.test()
async def holds_depth_words(dut):
    """Full after DEPTH unread words; all of them are output."""
    await start(dut, CLOCKS[0])
    depth = dut.DEPTH.value
    await write(dut, range(depth), 0)
    for _ in range(4):
        await FallingEdge(dut.w_clk)
        assert dut.s_ready.value == 0
    assert await read(dut, depth, 0) == list(range(depth))


@cocotb.test()
async def latency(dut):
    """One edge of w_clk, then STAGES of r_clk (one more if the edges fall together) before the offer."""
    await start(dut, CLOCKS[1])
    await write(dut, [7], 0)
    edges = 0
    while dut.m_valid.value == 0:
        await RisingEdge(dut.r_clk)
        await FallingEdge(dut.r_clk)
        edges += 1
    assert edges in (dut.STAGES.value, dut.STAGES.value - 1), edges
