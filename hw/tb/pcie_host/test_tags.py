"""pcie_host: reads in flight and reads a second, with the 32 tags of any host and with extended tags."""

import cocotb
from cocotb.triggers import RisingEdge, Timer, with_timeout
from cocotb.utils import get_sim_time
from traffic import ready

PARAMETERS = [{"TAGS": 32}, {"TAGS": 256, "EXTENDED": 0}, {"TAGS": 256}]
QUICK = ("as_many_reads_are_open_as_there_are_tags",)
# Of the card.
CARD_TAGS = 128
# Reads a microsecond that frames of 64 bytes take on four ports (hw/docs/operations.md).
LEAST = 67


def usable(dut):
    """Tags that the host allows and the shim has."""
    return int(dut.TAGS.value) if int(dut.EXTENDED.value) else 32


@cocotb.test()
async def as_many_reads_are_open_as_there_are_tags(dut):
    """Of the block or of the card; all of the latter only where the host has enabled extended tags."""
    tb = await ready(dut)
    assert tb.block.function.pcie_cap.extended_tag_field_enable == bool(int(dut.EXTENDED.value))
    tb.requests.held = []

    async def ask():
        for number in range(300):
            await tb.reader.request(tb.base + 64 * number, 64)
    cocotb.start_soon(ask())
    await tb.settle(1000)
    most = min(usable(dut), CARD_TAGS)
    assert len(tb.requests.held) == most == len({tlp.tag for tlp in tb.requests.held})
    some, tb.requests.held = tb.requests.held, None
    for tlp in reversed(some):
        await tb.rc.handle_mem_read_tlp(tlp)
    for number, found in enumerate(await with_timeout(tb.reader.ended(300), 500, "us")):
        assert found == tb.memory[64 * number:64 * number + 64]


@cocotb.test()
async def rate_of_short_reads(dut):
    """Of the data of a frame of 64 bytes, and longer ones, each answered 600 ns after it has arrived: enough for all ports
    only with extended tags. Then no more tags bound the rate, but requests, of which one leaves in two cycles, or
    completions, of three beats each."""
    tb = await ready(dut)
    count, warm = 600, 200

    async def later(tlp):
        await Timer(600, "ns")
        await tb.rc.handle_mem_read_tlp(tlp)

    async def answer(tlp):
        cocotb.start_soon(later(tlp))
    tb.requests.answer = answer

    async def ask(length):
        for number in range(count):
            await tb.reader.request(tb.base + 64 * number, length)
    for length, most in ((18, 125), (64, 83.3)):
        times = []
        cocotb.start_soon(ask(length))
        while len(tb.reader.results) < count:
            await RisingEdge(dut.clk)
            times += [get_sim_time("ns")] * (len(tb.reader.results) - len(times))
        rate = 1000 * (count - 1 - warm) / (times[-1] - times[warm])
        assert 0.97 * most <= rate if usable(dut) > 32 else 45 <= rate < LEAST, (length, rate)
        tb.reader.results.clear()
