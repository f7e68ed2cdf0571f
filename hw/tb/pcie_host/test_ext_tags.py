"""pcie_host: 32 tags until the host has enabled extended tags, as the block's Device Control says, and 256 then."""

import random
from itertools import count

import cocotb
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.pcie.core.caps import PciCapId
from sriov import reset
from traffic import CONTROL, EXTENDED, KNOWN, both, counted, extended_tags, good, patient, ready

QUICK = ("tags_follow_the_host",)
TAGS, LOW, CARD_TAGS = 256, 32, 128


class Used:
    """Tags that the block is given on RQ, and whether one from 32 on may be among them."""

    def __init__(self, tb):
        self.dut, self.tags, self.may = tb.dut, set(), True
        cocotb.start_soon(self.watch())

    async def watch(self):
        dut, inside = self.dut, False
        while True:
            await RisingEdge(dut.clk)
            if dut.m_axis_rq_tvalid.value == 1 and dut.m_axis_rq_tready.value == 1:
                head = int(dut.m_axis_rq_tdata.value)
                if not inside and head >> 75 & 15 == 0:
                    tag = head >> 96 & 0xFF
                    assert self.may or tag < LOW, f"tag {tag}"
                    self.tags.add(tag)
                inside = not int(dut.m_axis_rq_tlast.value)

    def forget(self, may):
        self.tags, self.may = set(), may


async def begin(dut, start=ready, hold=0):
    """The bench, whose block answers reads of its configuration space, or not."""
    dut.mgmt_hold.value = hold
    tb = await start(dut)
    tb.used, tb.control = Used(tb), tb.block.function.pcie_cap
    return tb


async def disable_under_traffic(tb):
    """The register reads as clear, and later the model asserts that no tag from 32 on comes: it does so at once, where
    the host may not change the bit while a read is open."""
    read = tb.block.function.read_config_register

    async def cleared(number):
        return await read(number) & ~(EXTENDED if number == 0x1E else 0)
    tb.block.function.read_config_register = cleared
    await tb.settle(KNOWN)
    tb.control.extended_tag_field_enable = False
    tb.block.function.read_config_register = read
    tb.used.forget(False)


async def fill(tb, count=300):
    """Asks for many reads that are not answered; those that have reached the host."""
    tb.requests.held = []

    async def ask():
        for number in range(count):
            await tb.reader.request(tb.base + 64 * number, 64)
    task = cocotb.start_soon(ask())
    await tb.settle(4 * count)
    return task


async def finish(tb, count=300):
    """They are answered, in any order, and each has its data."""
    held, tb.requests.held = tb.requests.held, None
    random.shuffle(held)
    for tlp in held:
        await tb.rc.handle_mem_read_tlp(tlp)
    for number, found in enumerate(await with_timeout(tb.reader.ended(count), 500, "us")):
        assert found == tb.memory[64 * number:64 * number + 64], number


@cocotb.test()
async def the_register_is_that_of_the_block(dut):
    """Device Control of function 0, bit 8 and no other; not that of a virtual function."""
    tb = await begin(dut)
    capability = tb.device.get_capability_offset(PciCapId.EXP)
    assert int(dut.cfg_mgmt_addr.value) * 4 == capability + CONTROL == 0x78
    assert int(dut.cfg_mgmt_function_number.value) == 0
    for on in (True, False, True, False):
        await extended_tags(tb, on)
        value = await tb.device.capability_read_word(PciCapId.EXP, CONTROL)
        # Sizes and error reports; the value that was is restored.
        await tb.device.capability_write_word(PciCapId.EXP, CONTROL, value ^ 0x720F)
        await tb.settle(KNOWN)
        assert int(dut.shim.ext_tag.value) == on
        await tb.device.capability_write_word(PciCapId.EXP, CONTROL, value)
        await tb.settle(KNOWN)
        assert int(dut.shim.ext_tag.value) == on
    vf = tb.block.sriov.all[2]
    vf.pcie_cap.extended_tag_field_enable = True
    await tb.settle(KNOWN)
    assert int(dut.shim.ext_tag.value) == 0


@cocotb.test()
async def tags_follow_the_host(dut):
    """Many reads at once: 32 without the bit, as many as the card has with it; and again."""
    tb = await begin(dut)
    for on in (False, True, False, True):
        await extended_tags(tb, on)
        await tb.settle(KNOWN)
        tb.used.forget(on)
        await fill(tb)
        open_now = CARD_TAGS if on else LOW
        assert len(tb.requests.held) == len(tb.used.tags) == open_now, (on, len(tb.requests.held))
        await finish(tb)
        # Each tag in turn: none is lost by the change.
        assert len(tb.used.tags) == (TAGS if on else LOW), (on, len(tb.used.tags))


@cocotb.test()
async def it_changes_under_traffic(dut):
    """At any time, of reads and writes: the data are right, and no read that begins later has a tag from 32 on."""
    tb = await begin(dut)
    traffic = cocotb.start_soon(both(tb, 250))
    for _ in count():
        await tb.settle(random.randrange(20, 400))
        await disable_under_traffic(tb)
        await tb.settle(random.randrange(20, 600))
        if traffic.done():
            break
        tb.used.forget(True)
        tb.control.extended_tag_field_enable = True
    await traffic.join()
    tb.used.forget(True)
    tb.control.extended_tag_field_enable = True
    await tb.settle(KNOWN + 2 * TAGS)
    await both(tb, 250, (64, 200))
    assert len(tb.used.tags) > CARD_TAGS


@cocotb.test()
async def open_reads_outlast_it(dut):
    """With 128 open when the bit is cleared: those wait behind them for tags below 32, and all have their data."""
    tb = await begin(dut)
    await fill(tb)
    assert len(tb.requests.held) == CARD_TAGS and max(tlp.tag for tlp in tb.requests.held) >= LOW
    await disable_under_traffic(tb)
    await finish(tb)
    assert 0 < len(tb.used.tags) <= LOW
    await both(tb, 40)


@cocotb.test()
async def open_reads_time_out_after_it(dut):
    """By the card's timeout, and their tags by the block's; when the bit is set again, all tags are usable."""
    tb = await begin(dut, lambda dut: patient(dut, 3000, 50))
    await fill(tb, CARD_TAGS)
    assert len(tb.requests.held) == CARD_TAGS
    await disable_under_traffic(tb)
    assert await with_timeout(tb.reader.ended(CARD_TAGS), 100, "us") == [None] * CARD_TAGS
    await counted(tb, rd_timeout=CARD_TAGS)
    late, tb.requests.held = tb.requests.held[:40], None
    tb.block.time_out(lambda request: request.tag not in {tlp.tag for tlp in late})
    for tlp in late:
        await tb.rc.handle_mem_read_tlp(tlp)
    await tb.settle(500)
    await counted(tb, rd_unexpected=len(late))
    await good(tb, 40)
    assert tb.used.tags and max(tb.used.tags) < LOW
    # Tags that have timed out rest for two periods.
    await tb.settle(3 << 14)
    assert int(dut.lost.value) == 0
    await extended_tags(tb)
    await tb.settle(KNOWN + 2 * TAGS)
    tb.used.forget(True)
    await fill(tb)
    await finish(tb)
    assert len(tb.used.tags) == TAGS


@cocotb.test()
async def a_block_that_never_answers(dut):
    """32 tags for ever, although the host has enabled more; nothing waits for it."""
    tb = await begin(dut, hold=1)
    assert tb.control.extended_tag_field_enable
    tb.used.may = False
    await both(tb, 60)
    await fill(tb)
    assert len(tb.requests.held) == LOW
    await finish(tb)
    await reset(tb.device)
    await tb.settle(400)
    await tb.device.enable_device()
    await tb.device.set_master()
    await extended_tags(tb)
    await both(tb, 20)
    assert int(dut.shim.cfg_mgmt_read.value) == 1 and len(tb.used.tags) == LOW
    # An answer after all, as late as can be, counts.
    dut.mgmt_hold.value = 0
    await tb.settle(KNOWN)
    tb.used.may = True
    await fill(tb)
    assert len(tb.requests.held) == CARD_TAGS
    await finish(tb)


@cocotb.test()
async def a_block_that_answers_late(dut):
    """After random times, under traffic: 32 tags until the first answer, all of them afterwards."""
    tb = await begin(dut, hold=1)
    tb.used.may = False
    traffic = cocotb.start_soon(both(tb, 120))
    await tb.settle(2000)
    dut.mgmt_hold.value = 0
    tb.used.may = True

    async def slow():
        while True:
            dut.mgmt_hold.value = 1
            await tb.settle(random.randrange(1, 700))
            dut.mgmt_hold.value = 0
            await tb.settle(random.randrange(1, 30))
    await tb.settle(KNOWN)
    task = cocotb.start_soon(slow())
    await traffic.join()
    await fill(tb)
    assert len(tb.requests.held) == CARD_TAGS
    await finish(tb)
    task.kill()
    dut.mgmt_hold.value = 0


@cocotb.test()
async def a_reset_of_function_0_clears_it(dut):
    """From its beginning on, as the block clears Device Control; the host enables it again, or does not."""
    tb = await begin(dut)
    for again in (False, True):
        await fill(tb, 100)
        assert len(tb.requests.held) == (LOW if again else 100)
        tb.requests.held.clear()
        await reset(tb.device)
        await tb.settle(20)
        tb.used.forget(False)
        assert int(dut.shim.ext_tag.value) == 0
        await tb.settle(400)
        tb.reader.results.clear()
        tb.requests.held = None
        await tb.device.enable_device()
        await tb.device.set_master()
        if again:
            await extended_tags(tb)
            tb.used.may = True
        await tb.settle(KNOWN)
        await both(tb, 40)
        await fill(tb)
        assert len(tb.requests.held) == (CARD_TAGS if again else LOW)
        await finish(tb)
