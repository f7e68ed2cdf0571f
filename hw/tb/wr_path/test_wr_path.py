"""wr_path: writes of several writers follow each other on the bus without a gap."""

import random

import cocotb

from core import Cycles, joined, part
from host_bus import Writes

WRITERS = 4


class TB:
    """Writers that always have a write of one length, and the host."""

    def __init__(self, dut, length):
        self.dut, self.cycles, self.length = dut, Cycles(dut), length
        self.host, self.beats = Writes(dut, 256), []
        # Of each: descriptors taken, all bytes up to the write whose words come next, and these.
        self.described, self.expected = [0] * WRITERS, [b""] * WRITERS
        self.data = [self.fresh(writer) for writer in range(WRITERS)]
        dut.cfg_quiesce.value = dut.clear.value = 0
        self.cycles.watchers += [self.look, self.host.look]
        self.drive()

    def fresh(self, writer):
        """The data of a writer's next write."""
        data = random.randbytes(self.length)
        self.expected[writer] += data
        return [data[at:at + 32] for at in range(0, self.length, 32)]

    def drive(self):
        dut, all_of = self.dut, (1 << WRITERS) - 1
        dut.s_desc_valid.value = dut.s_data_tvalid.value = all_of
        dut.s_desc_address.value = joined([writer << 32 | number * self.length
                                           for writer, number in enumerate(self.described)], 64)
        dut.s_desc_length.value = joined([self.length] * WRITERS, 13)
        dut.s_data_tdata.value = joined([int.from_bytes(words[0], "little") for words in self.data], 256)
        dut.s_data_tlast.value = joined([len(words) == 1 for words in self.data], 1)
        self.host.drive()

    def look(self):
        for writer in range(WRITERS):
            self.described[writer] += part(self.dut.s_desc_ready, writer, 1)
            if part(self.dut.s_data_tready, writer, 1):
                self.data[writer].pop(0)
                if not self.data[writer]:
                    self.data[writer] = self.fresh(writer)
        if int(self.dut.hif_wr_req_valid.value) and int(self.dut.hif_wr_req_ready.value):
            self.beats.append(self.cycles.number)

    async def run(self, cycles):
        await self.cycles.start()
        await self.go_on(cycles)

    async def go_on(self, cycles):
        for _ in range(cycles):
            self.drive()
            await self.cycles.cycle()

    def check(self):
        """All that was written is what its writer had, in order."""
        for address, data, _ in self.host.log:
            writer, at = address >> 32, address & 0xFFFFFFFF
            assert data == self.expected[writer][at:at + len(data)]


@cocotb.test()
async def no_gap_between_the_writes_of_payloads_of_minimum_frames(dut):
    """48 B for 18 B of payload and 80 B for whole frames, each with its record, across pages; and whole chunks."""
    for length in (48, 80, 256):
        tb = TB(dut, length)
        await tb.run(400)
        tb.check()
        assert tb.beats == list(range(tb.beats[0], tb.beats[0] + len(tb.beats))), length
        assert len(tb.beats) > 380


@cocotb.test()
async def bytes_arrive_at_any_rate_of_the_bus(dut):
    for length in (48, 80, 256):
        tb = TB(dut, length)
        tb.host.stall = 0.4
        await tb.run(600)
        tb.check()
        assert len(tb.host.log) > 30


@cocotb.test()
async def words_that_wait_at_a_reset_by_register_are_in_no_later_write(dut):
    """As plx_resets does it: quiesced, idle, then all but the host bus logic is reset."""
    for length in (48, 80, 256):
        tb = TB(dut, length)
        await tb.run(60)
        dut.cfg_quiesce.value = 1
        await tb.go_on(40)
        assert int(dut.idle.value)
        tb.check()
        dut.clear.value = 1
        await tb.go_on(3)
        # What the writers had is forgotten: they begin anew.
        again = TB(dut, length)
        tb.cycles.watchers.clear()
        tb.cycles.watchers += [again.look, again.host.look]
        again.cycles = tb.cycles
        await again.go_on(60)
        again.check()
        assert len(again.host.log) > 5
