"""pcie_host: what the host reads and writes, through the model's root complex and block."""

import random

import cocotb
from cocotb.triggers import with_timeout
from pcie import HOST, SCRATCH, TB, VECTORS, CplStatus, Tlp, TlpType, Tlp_us

QUICK = ("enumeration_finds_bars_and_vectors", "accesses_of_all_sizes_and_alignments")


@cocotb.test()
async def enumeration_finds_bars_and_vectors(dut):
    tb = TB(dut)
    await tb.start()
    assert tb.device.bar_size[0] == 1 << 17 and tb.device.bar_size[2] == 4096
    assert await tb.device.msix_vec_count() == VECTORS
    # The card's own registers, and what the host has configured.
    assert await tb.bar.read(8, 4) == b"PLUX"
    status = await tb.bar.read_dword(HOST + 0x0C)
    assert status & 0x773 == 0x213, f"idle, bus mastering, 256 B, 512 B: {status:#x}"


@cocotb.test()
async def accesses_of_all_sizes_and_alignments(dut):
    """Writes of 1 to 64 bytes at any byte, with any first and last byte enables, as a model of bytes says."""
    tb = TB(dut)
    await tb.start()
    model = bytearray(256)
    await tb.bar.write(SCRATCH, bytes(64))
    for at in range(64, 256, 64):
        await tb.bar.write(SCRATCH + at, bytes(64))
    for _ in range(60):
        length = random.choice((1, 2, 3, 4, 5, 8, 31, 32, 33, 60, 63, 64))
        at = random.randrange(0, 256 - length)
        # One request has at most 16 DWs.
        data = random.randbytes(min(length, 64 - at % 4))
        length = len(data)
        model[at:at + length] = data
        await tb.bar.write(SCRATCH + at, data)
        length = random.randint(1, 48)
        at = random.randrange(0, 256 - length)
        found = await tb.bar.read(SCRATCH + at, length)
        assert found == model[at:at + length], (at, length, found.hex(), model[at:at + length].hex())
    assert int(dut.refused.value) == int(dut.dropped.value) == 0
