"""plx_dma_wr: every byte arrives, in order, in writes that the bus allows."""

import random

import cocotb

import cycles as table
from core import Cycles
from host_bus import Writes


class TB:
    """The source of descriptors, and the host."""

    def __init__(self, dut, max_payload=256):
        self.dut, self.cycles = dut, Cycles(dut)
        dut.cfg_max_payload.value = (max_payload // 128).bit_length() - 1
        dut.cfg_bus_master.value, dut.cfg_quiesce.value, dut.clear.value = 255, 0, 0
        for name in ("valid", "address", "length", "func", "immediate", "immediate_data"):
            getattr(dut, f"s_desc_{name}").value = 0
        dut.s_data_tvalid.value, dut.s_data_tdata.value = 0, 0
        self.host = Writes(dut, max_payload)
        self.descriptors, self.words, self.expected = [], [], []
        self.taken_at, self.first_at, self.beats = [], [], []
        self.written = self.discarded = 0
        self.cycles.watchers += [self.look, self.host.look]

    def add(self, address, length, func=0, immediate=False):
        data = random.randbytes(length)
        self.descriptors.append((address, length, func, immediate, int.from_bytes(data[:4], "little")))
        if not immediate:
            # From the DW of the first byte on; what is not written is anything.
            lanes = random.randbytes(address % 4) + data
            self.words += [(len(self.descriptors) + len(self.taken_at), int.from_bytes(lanes[at:at + 32], "little"))
                           for at in range(0, len(lanes), 32)]
        self.expected.append((address, data, func))

    async def step(self):
        dut = self.dut
        dut.s_desc_valid.value = bool(self.descriptors)
        if self.descriptors:
            for name, value in zip(("address", "length", "func", "immediate", "immediate_data"), self.descriptors[0]):
                getattr(dut, f"s_desc_{name}").value = value
        # Data are valid with their descriptor; bytes after the last are undefined.
        dut.s_data_tvalid.value = bool(self.words)
        if self.words:
            dut.s_data_tdata.value = self.words[0][1]
        self.host.drive()
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        if int(dut.s_data_tvalid.value) and int(dut.s_data_tready.value):
            self.words.pop(0)
        if int(dut.s_desc_valid.value) and int(dut.s_desc_ready.value):
            self.descriptors.pop(0)
            self.taken_at.append(self.cycles.number)
        if int(dut.hif_wr_req_valid.value) and int(dut.hif_wr_req_ready.value):
            self.beats.append(self.cycles.number)
        self.written += int(dut.inc_writes.value)
        self.discarded += int(dut.inc_wr_discarded.value)

    async def finish(self):
        for _ in range(8000):
            await self.step()
            if not self.descriptors and int(self.dut.idle.value):
                break
        for _ in range(3):
            await self.step()
        assert not self.words and not self.descriptors and int(self.dut.idle.value)

    def check(self):
        """The written bytes are exactly the requested ones."""
        log = list(self.host.log)
        assert self.written == len(log)
        for address, data, func in self.expected:
            while data:
                at, part, by = log.pop(0)
                assert (at, part, by) == (address, data[:len(part)], func)
                address, data = address + len(part), data[len(part):]
        assert not log


async def started(dut, max_payload=256):
    tb = TB(dut, max_payload)
    await tb.cycles.start()
    return tb


@cocotb.test()
async def random_writes_arrive_at_every_payload_limit(dut):
    for max_payload in (128, 256, 512, 4096):
        tb = await started(dut, max_payload)
        tb.host.stall = random.choice((0.0, 0.4))
        for _ in range(40):
            tb.add(random.getrandbits(40) * 4, 4 * random.choice((1, 2, random.randrange(1, 65), random.randrange(1, 300))),
                   random.getrandbits(8))
            if random.random() < 0.2:
                tb.add(random.getrandbits(40) * 4, 4, 1, immediate=True)
        await tb.finish()
        tb.check()


@cocotb.test()
async def cut_at_4_kib_wherever_it_is(dut):
    """A boundary after each DW of a word, and the longest descriptor from an odd address."""
    tb = await started(dut, 4096)
    for dws in range(1, 18):
        tb.add(0x1_0000_1000 - 4 * dws, 4 * 18)
    tb.add(0xFFC, 4096)
    tb.add(0x2000, 4096)
    await tb.finish()
    tb.check()
    assert len(tb.host.log) == 17 * 2 + 2 + 1


@cocotb.test()
async def a_chunk_is_one_write_wherever_it_begins(dut):
    tb = await started(dut, 256)
    for offset in range(0, 256, 16):
        tb.add(0x8000 + offset, 256)
    await tb.finish()
    tb.check()
    assert len(tb.host.log) == 16


@cocotb.test()
async def latency_and_full_rate(dut):
    tb = await started(dut)
    tb.host.stall = 0.0
    for _ in range(8):
        tb.add(0x4000, 48)
    await tb.finish()
    tb.check()
    # Sixteen beats of eight writes, back to back.
    assert tb.beats == list(range(tb.beats[0], tb.beats[0] + 16))
    table.check("dma_wr", tb.beats[0] - tb.taken_at[0])


@cocotb.test()
async def bus_mastering_off_throws_writes_away_and_nothing_waits(dut):
    tb = await started(dut)
    dut.cfg_bus_master.value = 0
    tb.add(0xF80, 256)
    tb.add(0x40, 4, immediate=True)
    await tb.finish()
    assert not tb.host.log and tb.discarded == 3 and tb.written == 0
    dut.cfg_bus_master.value = 255
    tb.expected.clear()
    tb.add(0x1000, 92)
    await tb.finish()
    tb.check()


@cocotb.test()
async def quiesce_begins_no_descriptor_and_finishes_what_was_begun(dut):
    tb = await started(dut)
    tb.add(0x1000, 1024)
    await tb.step()
    await tb.step()
    dut.cfg_quiesce.value = 1
    tb.add(0x9000, 64)
    for _ in range(60):
        await tb.step()
    assert int(dut.idle.value) and len(tb.host.log) == 4 and len(tb.descriptors) == 1
    dut.cfg_quiesce.value = 0
    await tb.finish()
    tb.check()


@cocotb.test()
async def a_write_begins_and_ends_at_any_byte(dut):
    """All offsets and short lengths, across 4 KiB and the maximum payload; nothing before or behind is written."""
    for max_payload in (128, 4096):
        tb = await started(dut, max_payload)
        tb.host.stall = 0.3
        for offset in range(4):
            for length in (1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 127, 128, 129, 200):
                tb.add(0x10000 * random.randrange(1, 1 << 20) + offset, length, random.getrandbits(8))
                tb.add(0x1000 * random.randrange(1, 1 << 20) - random.randrange(1, 40) + offset, length)
        tb.add(0x3003, 4096)
        tb.add(0x5001, 4094)
        await tb.finish()
        tb.check()
