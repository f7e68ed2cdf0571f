"""pcie_host: the card's reads and writes of host memory, which the model's root complex has."""

import random

import cocotb
import cycles
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from pcie import stalls
from traffic import both, quiet, ready, write

QUICK = ("writes_of_all_lengths_arrive", "writes_at_any_byte", "reads_of_all_lengths_and_alignments")


@cocotb.test()
async def writes_of_all_lengths_arrive(dut):
    """Every length of DWs up to 40, longer ones, at every DW of a line; across pages."""
    tb = await ready(dut)
    model = bytearray(tb.memory)
    for length in [*range(4, 164, 4), 252, 256, 260, 508, 1024, 4096]:
        await write(tb, model, random.randrange(0, 60000, 4), length)
    tb.block.rq_sink.set_pause_generator(stalls(0.5))
    for start in range(0, 32, 4):
        await write(tb, model, 4096 * random.randrange(1, 14) - random.choice((4, 36, 100)) + start, 132 + start)
    for _ in range(4000):
        if tb.memory[:] == model:
            break
        await tb.settle(10)
    assert tb.memory[:] == model
    assert await tb.counter("writes") == len(tb.requests.writes)


@cocotb.test()
async def writes_at_any_byte(dut):
    """Every length up to 40 bytes, longer ones and some across pages, at every byte of a DW: the enabled bytes are
    those of the write, and no other."""
    tb = await ready(dut)
    model = bytearray(tb.memory)
    shapes = [(4 * random.randrange(15000) + first, length)
              for length in [*range(1, 41), 63, 64, 65, 127, 129, 255, 257, 500] for first in range(4)]
    shapes += [(4096 * page - 5 + first, length) for page in (2, 7) for first in range(8) for length in (6, 9, 260)]
    for at, length in shapes:
        await write(tb, model, at, length)
    for _ in range(2000):
        if tb.memory[:] == model:
            break
        await tb.settle(10)
    assert tb.memory[:] == model
    enabled = iter(tb.requests.bytes)
    for at, length in shapes:
        end = at + length
        while at < end:
            start, count = next(enabled)
            assert start == tb.base + at and at + count <= end, (at, end, start - tb.base, count)
            at += count
    assert next(enabled, None) is None


@cocotb.test()
async def reads_of_all_lengths_and_alignments(dut):
    """Every length up to 69 bytes, and longer ones, at every byte of a DW; some across pages."""
    tb = await ready(dut)
    shapes = [(4 * random.randrange(15000) + first, length)
              for length in [*range(1, 70), 255, 256, 257, 511, 512, 513] for first in range(4)]
    shapes += [(random.randrange(60000), length) for length in (1500, 5000)]
    shapes += [(4096 * page - 7 + at, 64) for page in (1, 3) for at in range(0, 16, 3)]

    async def ask():
        for at, length in shapes:
            await tb.reader.request(tb.base + at, length)
    cocotb.start_soon(ask())
    for number, found in enumerate(await with_timeout(tb.reader.ended(len(shapes)), 500, "us")):
        at, length = shapes[number]
        assert found == tb.memory[at:at + length], (at, length)
    assert await tb.counter("reads") == len(tb.requests.reads)


@cocotb.test()
async def both_directions_under_stalls_of_every_stream(dut):
    tb = await ready(dut)
    tb.block.rq_sink.set_pause_generator(stalls(0.3))
    tb.block.rc_source.set_pause_generator(stalls(0.3))
    tb.reader.stall = 0.3
    await both(tb, 60)
    assert await tb.counter("rd_unexpected") == 0


async def sizes(dut, payload, read):
    """The requests are as long as the host allows, and not longer; reads use up to 512 B."""
    tb = await ready(dut, payload=payload, read=read)
    await tb.device.set_readrq(read)
    await tb.settle(10)
    assert await tb.device.get_mps() == payload and await tb.device.get_readrq() == read
    await both(tb, 15, (64, 512, 1500, 4096))
    assert max(length for _, length in tb.requests.writes) == 128 << payload
    assert max(tlp.length for tlp in tb.requests.reads) * 4 == min(128 << read, 512)


@cocotb.test()
async def payloads_and_reads_of_128_bytes(dut):
    await sizes(dut, 0, 0)


@cocotb.test()
async def payloads_of_512_and_reads_of_256_bytes(dut):
    await sizes(dut, 2, 1)


@cocotb.test()
async def payloads_of_1_and_reads_of_4_kilobytes(dut):
    await sizes(dut, 3, 5)


async def shuffled(dut, boundary):
    """Completions are cut at every read completion boundary, and requests are answered in any order."""
    tb = await ready(dut)
    tb.rc.split_on_all_rcb, tb.rc.read_completion_boundary = True, boundary
    tb.requests.held = []

    async def answer():
        while True:
            await tb.settle(40)
            some, tb.requests.held = tb.requests.held, []
            random.shuffle(some)
            for tlp in some:
                await tb.rc.handle_mem_read_tlp(tlp)
    cocotb.start_soon(answer())
    await both(tb, 40)
    assert await tb.counter("rd_unexpected") == 0


@cocotb.test()
async def completions_of_64_bytes_out_of_order(dut):
    await shuffled(dut, False)


@cocotb.test()
async def completions_of_128_bytes_out_of_order(dut):
    await shuffled(dut, True)


@cocotb.test()
async def tags_are_used_again(dut):
    """600 small reads, with as many open as the card has tags: the block asserts that none of its 256 is used twice."""
    tb = await ready(dut)
    tb.requests.held = []

    async def ask():
        for number in range(600):
            await tb.reader.request(tb.base + 64 * number, 64)
    cocotb.start_soon(ask())
    await tb.settle(3000)
    assert len(tb.requests.held) == 128 == len({tlp.tag for tlp in tb.requests.held})
    some, tb.requests.held = tb.requests.held, None
    for tlp in reversed(some):
        await tb.rc.handle_mem_read_tlp(tlp)
    for number, found in enumerate(await with_timeout(tb.reader.ended(600), 500, "us")):
        assert found == tb.memory[64 * number:64 * number + 64]


@cocotb.test()
async def writes_pass_reads_without_credits(dut):
    """The root port takes no more non-posted requests: reads wait, writes do not."""
    tb = await ready(dut)
    model = bytearray(tb.memory)
    state = tb.block.upstream_port.fc_state[0].nph
    limit = state.tx_credit_limit
    state.tx_credit_limit = state.tx_credits_consumed

    async def ask():
        for number in range(8):
            await tb.reader.request(tb.base + 512 * number, 512)
    cocotb.start_soon(ask())
    await tb.settle(20)
    for number in range(10):
        await write(tb, model, 32768 + 256 * number, 256)
    await quiet(tb, 10)
    await tb.settle(10)
    assert tb.memory[:] == model
    assert not tb.requests.reads and not tb.reader.results
    state.tx_credit_limit = limit
    tb.block.upstream_port.fc_state[0].fc_np_update.set()
    for number, found in enumerate(await with_timeout(tb.reader.ended(8), 100, "us")):
        assert found == model[512 * number:512 * number + 512]
    await RisingEdge(dut.clk)


@cocotb.test()
async def cycles_through_the_shim(dut):
    """From the edge that takes to the edge at which the other side could take."""
    tb = await ready(dut)
    shim, ways = dut.shim, {
        "pcie_cq": ("s_axis_cq_tvalid", "s_axis_cq_tready", "hif_rx_req_valid"),
        "pcie_cc": ("hif_tx_cpl_valid", "hif_tx_cpl_ready", "m_axis_cc_tvalid"),
        "pcie_rq_write": ("hif_wr_req_valid", "hif_wr_req_ready", "m_axis_rq_tvalid"),
        "pcie_rq_read": ("hif_rd_req_valid", "hif_rd_req_ready", "m_axis_rq_tvalid"),
        "pcie_rc": ("s_axis_rc_tvalid", "s_axis_rc_tready", "hif_rx_cpl_valid")}
    taken, measured = {}, {}

    async def watch():
        number = 0
        while True:
            await FallingEdge(dut.clk)
            number += 1
            for way, (valid, accept, offer) in ways.items():
                if way in taken and way not in measured and int(getattr(shim, offer).value):
                    measured[way] = number - taken[way]
                if int(getattr(shim, valid).value) and int(getattr(shim, accept).value):
                    taken.setdefault(way, number)
    cocotb.start_soon(watch())
    await tb.bar.read(8, 4)
    await tb.writer.write(tb.base, bytes(16))
    await tb.settle(50)
    await tb.reader.read(tb.base, 16)
    await tb.settle(50)
    for way in ways:
        cycles.check(way, measured[way])
