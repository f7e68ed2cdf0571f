"""pcie_host: completions that fail, are late, forged or lost; bus mastering that comes and goes."""

import cocotb
from cocotb.triggers import with_timeout
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId
from pcie import HOST
from traffic import answers, both, counted, good, patient

QUICK = ("failed_reads_are_told_apart", "forged_completions_are_counted")
ROOT = PcieId(0, 0, 0)


@cocotb.test()
async def failed_reads_are_told_apart(dut):
    """Unsupported request, completer abort, poison, retry; at once and after good pieces of the data."""
    tb = await patient(dut)

    def status(code):
        def change(tlp):
            bad = Tlp(tlp)
            bad.fmt_type, bad.status, bad.length, bad.data = TlpType.CPL, code, 0, bytearray()
            return [bad]
        return change

    def poison(tlp):
        tlp.ep = True
        return [tlp]
    for change, name in ((status(CplStatus.UR), "rd_unsupported"), (status(CplStatus.CA), "rd_abort"),
                         (status(CplStatus.CRS), "rd_unsupported"), (poison, "rd_poisoned")):
        for length in (4, 200):
            restore = answers(tb, change)
            assert await with_timeout(tb.reader.read(tb.base + 3, length), 50, "us") is None
            restore()
            await counted(tb, **{name: 1})
            await good(tb)
        # The last piece fails.
        tb.rc.split_on_all_rcb = True
        restore = answers(tb, lambda tlp, change=change: change(tlp) if tlp.byte_count <= 64 else [tlp])
        assert await with_timeout(tb.reader.read(tb.base + 7, 400), 50, "us") is None
        restore()
        tb.rc.split_on_all_rcb = False
        await counted(tb, **{name: 1})
        await good(tb)
    await counted(tb)


@cocotb.test()
async def memory_that_the_host_does_not_have(dut):
    """The root complex itself says so: nothing there, and what it cannot read."""
    tb = await patient(dut)
    for address, name in ((0xA000_0000, "rd_unsupported"), (0x7000_0000, "rd_abort")):
        assert await with_timeout(tb.reader.read(address, 100), 50, "us") is None
        await tb.writer.write(address, bytes(128))
        await counted(tb, **{name: 1})
    await both(tb, 10)


@cocotb.test()
async def forged_completions_are_counted(dut):
    """Unknown tag, another requester, fields that differ, a wrong place, no data, twice: none does harm."""
    tb = await patient(dut)

    forgeries = []

    def unknown(tlp):
        forged = Tlp(tlp)
        forged.tag = (tlp.tag + 16) % 32
        forgeries.append(forged)
        return [forged, tlp]

    def foreign(tlp):
        forged = Tlp(tlp)
        forged.requester_id = PcieId(tlp.requester_id.bus, 5, 2)
        return [forged, tlp]

    def differing(tlp):
        forged = Tlp(tlp)
        forged.attr = 1
        forgeries.append(forged)
        return [forged, tlp]

    def twice(tlp):
        forgeries.append(tlp)
        return [tlp, Tlp(tlp)]
    # The block drops what is for another function.
    for change in (unknown, foreign, differing, twice):
        for length in (4, 20, 21, 300):
            restore = answers(tb, change)
            assert await with_timeout(tb.reader.read(tb.base + 512, length), 50, "us") == tb.memory[512:512 + length]
            restore()
            await tb.settle(100)
            await counted(tb, rd_unexpected=len(forgeries))
            forgeries.clear()
            await good(tb, 1)


@cocotb.test()
async def wrong_completions_end_the_read(dut):
    """Data for another place, and success without data."""
    tb = await patient(dut)

    def displaced(tlp):
        tlp.lower_address ^= 0x40
        return [tlp]

    def empty(tlp):
        tlp.fmt_type, tlp.length, tlp.data = TlpType.CPL, 0, bytearray()
        return [tlp]

    def short(tlp):
        tlp.byte_count += 4
        return [tlp]
    for change, counts in ((displaced, {"rd_unexpected": 1, "rd_timeout": 1}), (empty, {"rd_abort": 1}),
                           (short, {"rd_unexpected": 1, "rd_timeout": 1})):
        restore = answers(tb, change)
        assert await with_timeout(tb.reader.read(tb.base, 200), 50, "us") is None
        restore()
        # Its timeout, at the block too.
        tb.block.time_out()
        await counted(tb, **counts)
        await good(tb)


@cocotb.test()
async def late_completions_reach_no_other_read(dut):
    """The card gives a read up, and uses its tag again; then the old completion comes, before the new one."""
    tb = await patient(dut, 300, 20)
    tb.requests.held = []
    for number in range(3):
        assert await with_timeout(tb.reader.read(tb.base + 0x1000 * number, 64), 50, "us") is None
    old, tb.requests.held = tb.requests.held, None
    await counted(tb, rd_timeout=3)
    # The tags of the card in turn, but for those of the reads that follow.
    for number in range(29):
        await tb.reader.read(tb.base + 64 * number, 64)
    await tb.bar.write_dword(HOST + 0x10, 100000)
    tb.requests.held = []

    async def ask():
        for number in range(3):
            await tb.reader.request(tb.base + 0x8000 + 0x1000 * number, 64)
    cocotb.start_soon(ask())
    await tb.settle(200)
    new, tb.requests.held = tb.requests.held, None
    assert len(new) == 3
    assert not {tlp.tag for tlp in old} & {tlp.tag for tlp in new}, "a tag that the block holds"
    for tlp in old:
        await tb.rc.handle_mem_read_tlp(tlp)
    await tb.settle(400)
    assert not tb.reader.results
    for tlp in new:
        await tb.rc.handle_mem_read_tlp(tlp)
    found = await with_timeout(tb.reader.ended(3), 50, "us")
    assert found == [tb.memory[0x8000 + 0x1000 * number:][:64] for number in range(3)]
    await counted(tb, rd_unexpected=3)
    await good(tb)


@cocotb.test()
async def discontinued_completions_end_the_read(dut):
    """The block could not read its buffer: of one beat, of two, of many; in the last piece, or before it."""
    tb = await patient(dut)
    broken, pack = [], tb.block.rc_source.send

    async def send(frame):
        if broken:
            frame.discontinue = broken.pop(0)
        await pack(frame)
    tb.block.rc_source.send = send
    total = 0
    for length in (4, 20, 24, 32, 64, 200):
        broken[:] = [True]
        assert await with_timeout(tb.reader.read(tb.base + 512, length), 50, "us") is None, length
        await counted(tb, rd_abort=1, rd_timeout=0)
        await good(tb, 1)
        total += 1
    tb.rc.split_on_all_rcb = True
    for piece in range(4):
        broken[:] = [number == piece for number in range(4)]
        assert await with_timeout(tb.reader.read(tb.base + 512, 256), 50, "us") is None
        broken.clear()
        # The pieces behind it are not expected any more.
        await tb.settle(100)
        await counted(tb, rd_abort=1, rd_unexpected=3 - piece)
        await good(tb, 1)
        total += 1
    assert int(dut.discontinued.value) == total
