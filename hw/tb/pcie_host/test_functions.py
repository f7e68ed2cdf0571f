"""pcie_host: virtual functions: what each is, what its requests say, who reaches what."""

import cocotb
import sriov
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.pcie.core.caps import PciCapId
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId
from functions import AREA, NUMBERS, QUEUES, calm, functions, until
from pcie import SCRATCH, VECTORS
from sriov import RoutedTlp, RoutingId
from test_resets import raise_irq
from traffic import KNOWN, answer, answers, counted, extended_tags, patient, request

PARAMETERS = [{"PERIOD_LOG2": 11}]
QUICK = ("functions_are_found_and_have_their_windows", "completions_of_another_function_are_refused",
         "a_read_without_bus_mastering_holds_up_no_other")
# The register that has the number of the function that reads it; base addresses of event queues.
FUNCTION, QUEUE_BASE = 0x50, 0x14000
REFUSED = 0x1150


@cocotb.test()
async def functions_are_found_and_have_their_windows(dut):
    """As many as the host enables; each answers with its id in its windows, and nothing does outside of them."""
    tb = await patient(dut)
    assert not tb.block.functions.capability.enabled()
    for count in (3, 7):
        vfs = await sriov.enable(tb.device, count)
        for number, vf in enumerate(vfs, 1):
            assert await vf.config_read_dword(0) == 0xFFFFFFFF and await vf.config_read_dword(0x10) == 0
            assert vf.bar_size[0] == tb.device.bar_size[0] and vf.bar_size[2] == tb.device.bar_size[2]
            assert await vf.msix_vec_count() == VECTORS
            assert await vf.bar_window[0].read_dword(FUNCTION) == number
            found = await answer(tb, request(tb, TlpType.MEM_READ, vf.bar_addr[0] + FUNCTION))
            assert int(found.completer_id) == int(vf.pcie_id) == int(tb.device.pcie_id) + sriov.FIRST + number - 1
        assert await tb.bar.read_dword(FUNCTION) == 0
        # One byte behind the last window of both BARs, and the last of them.
        for bar in (0, 2):
            end = vfs[-1].bar_addr[bar] + vfs[-1].bar_size[bar]
            assert (await answer(tb, request(tb, TlpType.MEM_READ, end - 4))).status == CplStatus.SC
            if bar == 2:
                assert (await answer(tb, request(tb, TlpType.MEM_READ, end))).status == CplStatus.UR
            await tb.rc.send(request(tb, TlpType.MEM_WRITE, end + (bar == 0) * (1 << 20), data=bytes(4)))
        await sriov.switch(tb.device, False)
        for vf in vfs:
            assert (await answer(tb, request(tb, TlpType.MEM_READ, vf.bar_addr[0]))).status == CplStatus.UR
        assert await tb.bar.read(8, 4) == b"PLUX"


@cocotb.test()
async def functions_that_do_not_exist_are_unsupported(dut):
    """Should the block deliver requests for them: answered in their name; writes leave no trace."""
    tb = await functions(dut)
    await tb.bar.write_dword(SCRATCH, 0x12345678)
    for number in (1, 2, 3, 11, 12, 0x7F):
        for kind, data in ((TlpType.MEM_WRITE, bytes(4)), (TlpType.MEM_READ, b"")):
            tlp = RoutedTlp(request(tb, kind, tb.device.bar_addr[0] + SCRATCH, data=data))
            tlp.bar_id, tlp.bar_aperture, tlp.completer_id = 0, 17, RoutingId.of(tb.block.bus_num, number)
            tlp.tag = await tb.rc.alloc_tag()
            tb.block.cq_queue.put_nowait(tlp)
            if kind == TlpType.MEM_READ:
                found = await with_timeout(tb.rc.recv_cpl(tlp.tag), 20, "us")
                assert found.status == CplStatus.UR and int(found.completer_id) & 0xFF == number
            tb.rc.release_tag(tlp.tag)
    assert await tb.bar.read_dword(SCRATCH) == 0x12345678


@cocotb.test()
async def registers_answer_to_their_owner(dut):
    """A queue of function 0 is not for the others; given to one of them, it is its alone."""
    tb = await functions(dut)
    refused = await tb.bar.read_qword(REFUSED)
    for number in range(1, 8):
        at, own, other = QUEUE_BASE + 0x40 * number, tb.all[number], tb.all[number % 7 + 1]
        await tb.bar.write_dword(at, 0x1000 * number)
        await own.bar_window[0].write_dword(at, 0xBAD)
        assert await own.bar_window[0].read_dword(at) == 0
        await tb.bar.write_dword(QUEUES, number << 4 * number)
        for stranger in (tb.device, other):
            await stranger.bar_window[0].write_dword(at, 0xBAD)
            assert await stranger.bar_window[0].read_dword(at) == 0
        assert await own.bar_window[0].read_dword(at) == 0x1000 * number
        # Owners are function 0's to say.
        await own.bar_window[0].write_dword(QUEUES, 0)
        assert await own.bar_window[0].read_dword(QUEUES) == number << 4 * number
    assert await tb.bar.read_qword(REFUSED) - refused == 7 * 7


@cocotb.test()
async def each_function_reads_and_writes_as_itself(dut):
    tb = await functions(dut)
    await calm(tb, 4000)
    await counted(tb)


async def control(function, value):
    """Of MSI-X: bit 15 enables it, bit 14 masks all vectors."""
    found = await function.capability_read_word(PciCapId.MSIX, 2)
    await function.capability_write_word(PciCapId.MSIX, 2, found & 0x3FFF | value)


@cocotb.test()
async def interrupts_come_from_the_owner_of_the_vector(dut):
    """Where that has MSI-X enabled and not masked; without its bus mastering the message is discarded."""
    tb = await functions(dut)
    await tb.bar.write_dword(QUEUES, 0x76543210)
    vectors = []
    for number, function in enumerate(tb.all):
        assert await function.alloc_irq_vectors(VECTORS, VECTORS) == VECTORS
        vectors.append((NUMBERS[number], function.msi_vectors[number].data))

    async def come(expected):
        await until(tb, lambda: len(tb.told) >= len(expected))
        await tb.settle(100)
        assert sorted(tb.told) == sorted(vectors[number] for number in expected), tb.told
        tb.told.clear()
    await raise_irq(tb, 0xFF)
    await come(range(8))
    await control(tb.all[3], 0xC000)
    await control(tb.all[5], 0x0000)
    await control(tb.all[0], 0xC000)
    await tb.all[7].clear_master()
    await tb.settle(20)
    discarded = await tb.counter("wr_discarded")
    await raise_irq(tb, 0xFF)
    await come((1, 2, 4, 6))
    assert await tb.counter("wr_discarded") == discarded + 1
    for number in (3, 5, 0):
        assert await tb.all[number].bar_window[2].read_dword(sriov.PENDING) == 1 << number, "its own alone"
        await control(tb.all[number], 0x8000)
        await come((number,))
    await tb.all[7].set_master()
    await tb.settle(20)
    await raise_irq(tb, 0xFF)
    await come(range(8))


async def held(tb, func, length):
    """A read of a function, which the host has not answered yet; and its end."""
    tb.requests.held = []
    end = cocotb.start_soon(tb.reader.read(tb.base + AREA * func + 512, length, func))
    await until(tb, lambda: tb.requests.held)
    (tlp,), tb.requests.held = tb.requests.held, None
    return tlp, end


def forge(tlp, number, length, byte_count=None):
    """A completion of it that the block has not found fault with, and which is its last one."""
    forged = RoutedTlp(Tlp.create_completion_data_for_tlp(tlp, PcieId(0, 0, 0)))
    forged.set_data(bytes(length))
    forged.byte_count, forged.lower_address = length if byte_count is None else byte_count, tlp.address & 0x7F
    forged.requester_id, forged.request_completed = RoutingId.of(tlp.requester_id.bus, number), True
    return forged


@cocotb.test()
async def completions_of_another_function_are_refused(dut):
    """On the link, which the block finds; from the block itself; with another tag. The read gets its own data."""
    tb = await functions(dut)
    for func in (0, 1, 4, 7):
        strangers = [number for number in NUMBERS if number != NUMBERS[func]]
        tlp, end = await held(tb, func, 64)
        forged = [forge(tlp, number, 64) for number in (*strangers, 1, 3, 11, 0xFF, 8 + NUMBERS[func])]
        forged.append(forge(tlp, NUMBERS[func], 64))
        forged[-1].tag = (tlp.tag + 16) % 32
        for one in forged:
            tb.block.rc_queue.put_nowait(one)
        for number in strangers:
            one = Tlp(forge(tlp, number, 64))
            one.requester_id = PcieId.from_int(tlp.requester_id.bus << 8 | number)
            await tb.rc.send(one)
        await tb.settle(200)
        assert not end.done()
        await tb.rc.handle_mem_read_tlp(tlp)
        place = AREA * func + 512
        assert await with_timeout(end.join(), 50, "us") == tb.memory[place:place + 64]
        await counted(tb, rd_unexpected=len(forged) + len(strangers))
        await calm(tb, 200)


@cocotb.test()
async def completions_of_another_length_end_the_read(dut):
    """More, less, and less than they say, as the last one: no other read is hurt, and the function reads on."""
    tb = await functions(dut)
    for func, length, byte_count in ((2, 128, 128), (2, 32, 32), (5, 32, 64), (0, 4096, 4096), (7, 4, 4)):
        tlp, end = await held(tb, func, 64)
        tb.block.rc_queue.put_nowait(forge(tlp, NUMBERS[func], length, byte_count))
        # The block has no request of this tag any more.
        tb.block.active_request[tlp.tag] = None
        await tb.settle(200)
        await tb.rc.handle_mem_read_tlp(tlp)
        found = await with_timeout(end.join(), 50, "us")
        place = AREA * func + 512
        assert found is None, (func, length, found)
        counts = {name: await tb.counter(name) for name in ("rd_timeout", "rd_abort", "rd_unexpected")}
        assert sum(counts.values()) > sum(tb.counts.get(name, 0) for name in counts), "it is counted"
        tb.counts.update(counts)
        assert await with_timeout(tb.reader.read(tb.base + place, 64, func), 50, "us") == tb.memory[place:place + 64]
        await calm(tb, 200)


@cocotb.test()
async def a_read_without_bus_mastering_holds_up_no_other(dut):
    """Off while a read waits for a tag in the shim: it fails at once, between completions that arrive."""
    tb = await functions(dut, 100000)
    # The card has fewer reads open than there are tags, otherwise.
    await extended_tags(tb, False)
    await tb.settle(KNOWN)
    waited, tags = 0, 32

    async def watch():
        nonlocal waited
        while True:
            await RisingEdge(dut.clk)
            waited += int(dut.shim.refused_valid.value) and not int(dut.shim.refused_ready.value)
    cocotb.start_soon(watch())
    for delay in range(0, 60, 15):
        places = [(1, AREA + 512 * (n % 16), 512) for n in range(tags)] + [(2, 2 * AREA, 64)]
        places += [(3, 3 * AREA + 64 * n, 64) for n in range(4)]
        tb.requests.held = []

        async def ask(places=places):
            for func, at, length in places:
                await tb.reader.request(tb.base + at, length, func)
        asks = cocotb.start_soon(ask())
        await until(tb, lambda: len(tb.requests.held) == tags)
        await tb.settle(20)
        held, tb.requests.held = tb.requests.held, None
        dropped, rest = int(dut.unmastered.value), []

        def begin(tlp, rest=rest):
            # Their second halves later: no tag is free before.
            if tlp.fmt_type != TlpType.CPL_DATA or tlp.byte_count > 256:
                return [tlp]
            rest.append(tlp)
            return []
        restore = answers(tb, begin)

        async def answer_all(held=held):
            for tlp in held:
                await tb.rc.handle_mem_read_tlp(tlp)
        # Or completions of one beat each, which belong to no read.
        forged = 400 * (delay % 2)
        for _ in range(forged):
            tb.block.rc_queue.put_nowait(forge(held[0], NUMBERS[3], 4))
        task = None if forged else cocotb.start_soon(answer_all())
        await tb.settle(delay)
        await tb.all[2].clear_master()
        await until(tb, lambda dropped=dropped: int(dut.unmastered.value) == dropped + 1)
        assert not forged or not tb.block.rc_queue.empty()
        await (task or tb.settle(600))
        restore()
        if forged:
            await answer_all()
        for tlp in rest:
            await tb.rc.send(tlp)
        await asks
        found = await with_timeout(tb.reader.ended(len(places)), 4, "us")
        assert found == [None if func == 2 else tb.memory[at:at + length] for func, at, length in places]
        await counted(tb, rd_unsupported=1, rd_unexpected=forged)
        await tb.all[2].set_master()
        await tb.settle(20)
    assert waited, "never while a completion was under way"
    await calm(tb, 200)
