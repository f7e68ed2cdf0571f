"""pcie_host: completions that never come, and bus mastering that comes and goes, with a short period of the tags."""

import random

import cocotb
from cocotb.triggers import with_timeout
from traffic import answers, both, counted, good, patient

PARAMETERS = [{"PERIOD_LOG2": 11, "EXTENDED": 0}, {"PERIOD_LOG2": 11}]
QUICK = ("a_lost_completion_times_out",)


@cocotb.test()
async def a_lost_completion_times_out(dut):
    """It costs its own read alone, and its tag is free once the block gives it up."""
    tb = await patient(dut, 200, 20)
    restore = answers(tb, lambda tlp: [])
    lost = cocotb.start_soon(tb.reader.read(tb.base, 64))
    await tb.settle(100)
    restore()
    for number in range(1, 4):
        await tb.reader.request(tb.base + 64 * number, 64)
    found = await with_timeout(lost, 50, "us")
    assert [found, *await with_timeout(tb.reader.ended(3), 50, "us")] == [
        None, *(tb.memory[64 * number:64 * number + 64] for number in range(1, 4))]
    tb.block.time_out()
    await counted(tb, rd_timeout=1)
    # More than the 32 tags of a host without extended ones.
    await good(tb, 40)
    await counted(tb)


@cocotb.test()
async def lost_completions_time_out(dut):
    """Each ends by the card's timeout, and its tag by that of the block; also more than there are tags."""
    tb = await patient(dut, 200, 20)

    async def lose(count):
        restore = answers(tb, lambda tlp: [])
        for number in range(count):
            assert await with_timeout(tb.reader.read(tb.base + 64 * number, 64), 50, "us") is None
            if number % 3 == 2:
                tb.block.time_out()
        restore()
        tb.block.time_out()
        await counted(tb, rd_timeout=count)
    await lose(24)
    await good(tb, 10)
    assert int(dut.lost.value) == 0
    # The tags rest now: reads wait for one, and the card gives up some that have not been sent.
    await lose(30)
    await tb.settle(3 << 11)
    tb.block.time_out()
    tb.counts["rd_unexpected"] = await tb.counter("rd_unexpected")
    await good(tb, 40)
    await counted(tb)


@cocotb.test()
async def bus_mastering_comes_and_goes(dut):
    """At any time under traffic: reads end, writes are sent or counted, and all works when it is on."""
    tb = await patient(dut, 600, 50)
    stop, reads = [], [0, 0]

    async def ask():
        while not stop:
            at, length = random.randrange(28000), random.choice((4, 64, 500, 1500))
            found = await tb.reader.read(tb.base + at, length)
            assert found is None or found == tb.memory[at:at + length]
            reads[found is None] += 1

    async def store():
        while not stop:
            at, length = 32768 + random.randrange(0, 28000, 4), random.choice((4, 64, 256, 1000))
            await tb.writer.write(tb.base + at, random.randbytes(length))
    tasks = [cocotb.start_soon(ask()), cocotb.start_soon(store())]
    for _ in range(20):
        await tb.settle(random.randrange(5, 150))
        await tb.device.clear_master()
        await tb.settle(random.randrange(5, 400))
        await tb.device.set_master()
    stop.append(True)
    for task in tasks:
        await with_timeout(task.join(), 50, "us")
    assert min(reads) > 5, reads
    assert await tb.counter("wr_discarded") > 0
    # Tags of reads that the block has dropped return by themselves.
    await tb.settle(4 << 11)
    await both(tb, 40)
    assert int(dut.lost.value) < 33
