"""pcie_host: what the host reads and writes, through the model's root complex and block."""

import random

import cocotb
from cocotb.triggers import with_timeout
from cocotbext.pcie.core.tlp import CplStatus, TlpType
from cocotbext.pcie.xilinx.us.tlp import Tlp_us
from pcie import HOST, SCRATCH, TB, VECTORS, stalls
from traffic import answer, request

QUICK = ("enumeration_finds_bars_and_vectors", "accesses_at_every_byte")


@cocotb.test()
async def enumeration_finds_bars_and_vectors(dut):
    tb = TB(dut)
    await tb.start()
    assert tb.device.bar_size[0] == 1 << 17 and tb.device.bar_size[2] == 1 << 13
    assert await tb.device.msix_vec_count() == VECTORS
    # The card's own registers, and what the host has configured.
    assert await tb.bar.read(8, 4) == b"PLUX"
    status = await tb.bar.read_dword(HOST + 0x0C)
    assert status & 0x773 == 0x213, f"idle, bus mastering, 256 B, 512 B: {status:#x}"


async def accesses(dut, shapes):
    """A write and a read of each (byte of a DW, length), with the byte enables of their first and last DW, as a model of
    bytes says."""
    tb = TB(dut)
    await tb.start()
    model = bytearray(256)
    for at in range(0, 256, 64):
        await tb.bar.write(SCRATCH + at, bytes(64))
    random.shuffle(shapes)
    for first, length in shapes:
        at, data = random.randrange(first, 257 - length, 4), random.randbytes(length)
        model[at:at + length] = data
        await tb.bar.write(SCRATCH + at, data)
        at = random.randrange(first, 257 - length, 4)
        assert await tb.bar.read(SCRATCH + at, length) == model[at:at + length], (at, length)
    words = [int.from_bytes(model[at:at + 4], "little") for at in range(0, 256, 4)]
    assert [int(dut.memory[number].value) for number in range(64)] == words
    assert int(dut.refused.value) == int(dut.dropped.value) == 0


@cocotb.test()
async def accesses_at_every_byte(dut):
    """Those of one DW and of two, and the longest one."""
    await accesses(dut, [(first, length) for first in range(4) for length in (1, 2, 3, 4, 5, 8, 64 - first)])


@cocotb.test()
async def accesses_of_all_sizes_and_alignments(dut):
    """Of 1 to 64 bytes at every byte of a DW, as far as one request has them: 16 DWs."""
    await accesses(dut, [(first, length) for first in range(4) for length in range(1, 65 - first)])


@cocotb.test()
async def accesses_under_stalls_of_the_block(dut):
    tb = TB(dut)
    await tb.start()
    tb.block.cq_source.set_pause_generator(stalls(0.4))
    tb.block.cc_sink.set_pause_generator(stalls(0.6))
    model = bytearray(random.randbytes(1024))
    for at in range(0, 1024, 64):
        await tb.bar.write(SCRATCH + at, model[at:at + 64])

    async def read(at, length):
        assert await tb.bar.read(SCRATCH + at, length) == model[at:at + length]
    tasks = [cocotb.start_soon(read(random.randrange(900), random.randint(1, 56))) for _ in range(60)]
    for task in tasks:
        await with_timeout(task.join(), 100, "us")


@cocotb.test()
async def every_register_request_is_answered(dut):
    """Where no register is, where no BAR is, too long, of no byte; and the card answers after each."""
    tb = TB(dut)
    await tb.start()
    base = tb.device.bar_addr[0]
    await tb.bar.write_dword(SCRATCH, 0x12345678)
    nothing = await answer(tb, request(tb, TlpType.MEM_READ, base + 0x1F000))
    assert nothing.status == CplStatus.SC and nothing.get_data() == bytes(4)
    long = await answer(tb, request(tb, TlpType.MEM_READ, base + SCRATCH, 32))
    assert long.status == CplStatus.CA and long.length == 0
    outside = await answer(tb, request(tb, TlpType.MEM_READ, base + (1 << 20)))
    assert outside.status == CplStatus.UR
    empty = await answer(tb, request(tb, TlpType.MEM_READ, base + SCRATCH, first_be=0))
    assert empty.status == CplStatus.SC and empty.byte_count == 1
    # Writes have no answer.
    for address, dws in ((base + (1 << 20), 1), (base + 0x1F000, 1), (base + SCRATCH, 32), (base + SCRATCH, 17)):
        await tb.rc.send(request(tb, TlpType.MEM_WRITE, address, dws, data=bytes(4 * dws)))
    assert await tb.bar.read_dword(SCRATCH) == 0x12345678


@cocotb.test()
async def what_the_card_does_not_support_is_refused(dut):
    """Delivered by the block: I/O, atomic operations, locked reads; a discontinued write leaves no trace."""
    tb = TB(dut)
    await tb.start()
    await tb.bar.write_dword(SCRATCH, 0x12345678)

    def deliver(kind, data=b"", dws=1, bar=0):
        tlp = Tlp_us(request(tb, kind, tb.device.bar_addr[0] + SCRATCH, dws, data=data))
        tlp.bar_id, tlp.bar_aperture, tlp.completer_id = bar, 17, tb.block.function.pcie_id
        return tlp
    kinds = [(TlpType.IO_READ, b"", 0), (TlpType.IO_WRITE, bytes(4), 0), (TlpType.FETCH_ADD, bytes(4), 0),
             (TlpType.SWAP, bytes(4), 0), (TlpType.MEM_READ_LOCKED, b"", 0), (TlpType.MEM_READ, b"", 4),
             (TlpType.MEM_READ, b"", 6)]
    for kind, data, bar in kinds:
        tlp = deliver(kind, data, bar=bar)
        tlp.tag = await tb.rc.alloc_tag()
        tb.block.cq_queue.put_nowait(tlp)
        found = await with_timeout(tb.rc.recv_cpl(tlp.tag), 20, "us")
        tb.rc.release_tag(tlp.tag)
        assert found.status == CplStatus.UR and found.length == 0 and found.byte_count == 4, kind
        assert (found.fmt_type == TlpType.CPL_LOCKED) == (kind == TlpType.MEM_READ_LOCKED)
        assert await tb.bar.read_dword(SCRATCH) == 0x12345678
    assert int(dut.refused.value) == 5, "BARs that are absent are the card's to refuse"
    for dws in (1, 4, 5, 12, 13, 16, 40):
        tlp = deliver(TlpType.MEM_WRITE, bytes(4 * dws), dws)
        tlp.discontinue = True
        tb.block.cq_queue.put_nowait(tlp)
    assert await tb.bar.read_dword(SCRATCH) == 0x12345678
    assert int(dut.dropped.value) == 7


@cocotb.test()
async def writes_pass_reads_whose_completions_cannot_leave(dut):
    """The block accepts no completion: a read waits in it, and posted writes go on (PCIe 4.0, 2.4.1)."""
    tb = TB(dut)
    await tb.start()
    await tb.bar.write(SCRATCH, bytes(64))
    assert await tb.bar.read(SCRATCH, 64) == bytes(64)
    tb.block.cc_sink.pause = True
    reads = [cocotb.start_soon(tb.bar.read_dword(HOST + 0x10)) for _ in range(5)]
    await tb.settle(300)
    for number in range(16):
        await tb.bar.write_dword(SCRATCH + 4 * number, number + 1)
    await tb.settle(1500)
    assert [int(dut.memory[number].value) for number in range(16)] == list(range(1, 17))
    assert not any(read.done() for read in reads)
    tb.block.cc_sink.pause = False
    for read in reads:
        assert await with_timeout(read.join(), 20, "us") == 12500000
