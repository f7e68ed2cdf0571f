"""pcie_host: interrupts, function-level reset, reset of the slot."""

import random

import cocotb
from cocotb.triggers import ClockCycles, FallingEdge, with_timeout
from cocotbext.pcie.core.caps import PciCapId
from pcie import HOST, SCRATCH, VECTORS
from sriov import PENDING
from traffic import both, ready

QUICK = ("interrupts_follow_what_they_announce", "requests_wait_for_the_end_of_a_reset")


async def raise_irq(tb, vectors):
    await FallingEdge(tb.dut.clk)
    for vector in (vector for vector in range(VECTORS) if vectors >> vector & 1):
        tb.dut.s_irq_valid.value, tb.dut.s_irq_queue.value = 1, vector
        await FallingEdge(tb.dut.clk)
    tb.dut.s_irq_valid.value = 0


async def listen(tb):
    """All vectors, and the numbers of those that have come."""
    assert await tb.device.alloc_irq_vectors(VECTORS, VECTORS) == VECTORS
    came = []
    for number in range(VECTORS):
        async def handler(number=number):
            came.append(number)
        tb.device.request_irq(number, handler)
    return came


async def wait_for(tb, condition):
    for _ in range(300):
        if condition():
            return
        await tb.settle(10)
    raise AssertionError("it did not come to that")


@cocotb.test()
async def interrupts_follow_what_they_announce(dut):
    """Each vector; behind a write that was placed before it, under stalls."""
    tb = await ready(dut)
    await listen(tb)
    seen = []
    for number in range(VECTORS):
        async def handler(number=number):
            seen.append((number, tb.memory[64 * number:64 * number + 64]))
        tb.device.request_irq(number, handler)
    for number in range(VECTORS):
        data = random.randbytes(64)
        await tb.writer.write(tb.base + 64 * number, data)
        await raise_irq(tb, 1 << number)
        await wait_for(tb, lambda number=number: len(seen) == number + 1)
        assert seen[-1] == (number, data)
    assert await tb.counter("interrupts") == VECTORS


@cocotb.test()
async def masked_interrupts_wait(dut):
    """By the vector's mask, by the function's, and without MSI-X none comes."""
    tb = await ready(dut)
    came = await listen(tb)
    await tb.vectors.write_dword(3 * 16 + 12, 1)
    await tb.vectors.read_dword(0)
    await raise_irq(tb, 0b11000)
    await wait_for(tb, lambda: came == [4])
    assert await tb.vectors.read_dword(PENDING) == 8, "pending"
    await tb.settle(300)
    assert came == [4]
    await tb.vectors.write_dword(3 * 16 + 12, 0)
    await wait_for(tb, lambda: came == [4, 3])
    control = await tb.device.capability_read_word(PciCapId.MSIX, 2)
    await tb.device.capability_write_word(PciCapId.MSIX, 2, control | 0x4000)
    await tb.settle(50)
    await raise_irq(tb, 0b100)
    await tb.settle(300)
    assert came == [4, 3]
    await tb.device.capability_write_word(PciCapId.MSIX, 2, control)
    await wait_for(tb, lambda: came == [4, 3, 2])
    assert await tb.vectors.read_dword(PENDING) == 0


async def busy(tb):
    """Traffic in both directions that never ends by itself."""
    async def ask():
        while True:
            await tb.reader.request(tb.base + random.randrange(28000), 1500)

    async def store():
        while True:
            await tb.writer.write(tb.base + 32768 + random.randrange(0, 28000, 4), random.randbytes(500))

    async def look():
        while True:
            await tb.bar.read_dword(HOST + 0x10, timeout=2, timeout_unit="us")
    return [cocotb.start_soon(task) for task in (ask(), store(), look())]


def end(tb, tasks):
    for task in tasks:
        task.kill()
    tb.dut.s_rd_desc_valid.value = tb.dut.s_wr_desc_valid.value = tb.dut.s_wr_data_tvalid.value = 0


@cocotb.test()
async def function_level_reset_under_traffic(dut):
    """Reads open, writes under way: no TLP is cut, the block hears that it is done, nothing old comes back."""
    tb = await ready(dut)
    for turn in range(3):
        await tb.bar.write_dword(HOST + 0x10, 777)
        assert await tb.bar.read_dword(HOST + 0x10) == 777
        tb.requests.held = [] if turn % 2 else None
        tasks = await busy(tb)
        await tb.settle(random.randrange(200, 500))
        end(tb, tasks[2:])
        control = await tb.device.capability_read_word(PciCapId.EXP, 8)
        await tb.device.capability_write_word(PciCapId.EXP, 8, control | 0x8000)
        await with_timeout(FallingEdge(dut.card_rst), 50, "us")
        end(tb, tasks)
        late, tb.requests.held = tb.requests.held or [], None
        await tb.settle(400)
        assert int(dut.cfg_flr_in_process.value) == 0
        for tlp in late:
            await tb.rc.handle_mem_read_tlp(tlp)
        await tb.settle(200)
        tb.reader.results.clear()
        await tb.device.enable_device()
        await tb.device.set_master()
        assert await with_timeout(tb.bar.read_dword(HOST + 0x10), 20, "us") == 12500000, "registers are reset"
        await both(tb, 10)
        assert await tb.counter("rd_timeout") == 0


@cocotb.test()
async def requests_wait_for_the_end_of_a_reset(dut):
    """The host reads and writes while the function is being reset: it is answered afterwards."""
    tb = await ready(dut)
    control = await tb.device.capability_read_word(PciCapId.EXP, 8)
    await tb.device.capability_write_word(PciCapId.EXP, 8, control | 0x8000)
    await tb.bar.write_dword(SCRATCH, 4711)
    assert await with_timeout(tb.bar.read_dword(SCRATCH), 20, "us") == 4711
    assert await with_timeout(tb.bar.read_dword(8), 20, "us") == 0x58554C50


@cocotb.test()
async def a_reset_grants_nothing_beside_a_completion(dut):
    """The block does not take a completion before, during and after a reset: it may request no more until it does."""
    tb = await ready(dut)
    tb.block.cc_sink.pause = True
    read = cocotb.start_soon(tb.bar.read_dword(8, timeout=50, timeout_unit="us"))
    await wait_for(tb, lambda: int(dut.m_axis_cc_tvalid.value))
    grants = 0

    async def count():
        nonlocal grants
        while True:
            await FallingEdge(dut.clk)
            grants += int(dut.pcie_cq_np_req.value) & 1

    counting = cocotb.start_soon(count())
    control = await tb.device.capability_read_word(PciCapId.EXP, 8)
    await tb.device.capability_write_word(PciCapId.EXP, 8, control | 0x8000)
    await wait_for(tb, lambda: int(dut.card_rst.value))
    await wait_for(tb, lambda: not int(dut.card_rst.value))
    await tb.settle(300)
    assert int(dut.m_axis_cc_tvalid.value) and grants == 0, "one request at a time"
    tb.block.cc_sink.pause = False
    await with_timeout(read, 20, "us")
    await wait_for(tb, lambda: grants)
    counting.kill()
    assert grants == 1
    await tb.device.enable_device()
    assert await with_timeout(tb.bar.read_dword(8), 20, "us") == 0x58554C50


@cocotb.test()
async def reset_of_the_slot_under_traffic(dut):
    """PERST#, with reads open and a register read under way: the host enumerates anew, and all works."""
    tb = await ready(dut)
    for _ in range(2):
        tb.requests.held = []
        for number in range(6):
            cocotb.start_soon(tb.reader.request(tb.base + 512 * number, 512))
            await tb.settle(10)
        cocotb.start_soon(tb.bar.read(HOST + 0x10, 4, timeout=1, timeout_unit="us"))
        await tb.settle(120)
        assert len(tb.requests.held) == 6
        late, tb.requests.held = tb.requests.held, None
        dut.sys_reset.value = 0
        await ClockCycles(dut.clk, 100)
        assert int(dut.card_rst.value) == 1
        tb.block.active_request = [None] * 256
        dut.sys_reset.value = 1
        await FallingEdge(dut.rst)
        await tb.settle(200)
        tb.reader.results.clear()
        await tb.enumerate()
        for tlp in late:
            # The host may have numbered its buses differently.
            tlp.requester_id = tb.block.function.pcie_id
            await tb.rc.handle_mem_read_tlp(tlp)
        await tb.settle(500)
        await both(tb, 20)
        found = await tb.counter("rd_unexpected")
        assert found == 12, f"two completions of each of 6: {found}"
