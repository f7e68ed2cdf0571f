"""plx_dma_rd: every descriptor ends, with its bytes or with an error, for any behaviour of the host."""

import random

import cocotb

import cycles as table
from core import Cycles
from host_bus import ABORT, RETRY, UNSUPPORTED, Reads, field

PARAMETERS = [{"TAGS": 128}, {"TAGS": 4}]

COUNTED = ("reads", "rd_discarded", "rd_timeout", "rd_unsupported", "rd_abort", "rd_poisoned", "rd_unexpected")


class TB:
    def __init__(self, dut, max_read=512, timeout=1500, quarantine=600):
        self.dut, self.cycles = dut, Cycles(dut)
        dut.cfg_max_read.value = (max_read // 128).bit_length() - 1
        dut.cfg_bus_master.value, dut.cfg_quiesce.value = 255, 0
        dut.cfg_timeout_cycles.value, dut.cfg_quarantine_cycles.value = timeout, quarantine
        for name in ("valid", "address", "length", "tag", "func"):
            getattr(dut, f"s_desc_{name}").value = 0
        dut.m_data_tready.value = 0
        self.host, self.tags = Reads(dut, max_read), int(dut.TAGS.value)
        self.waiting, self.expected, self.got, self.ended = [], [], b"", []
        self.count, self.stall, self.taken_at, self.asked_at = dict.fromkeys(COUNTED, 0), 0.0, None, None
        self.cycles.watchers += [self.host.look, self.look]

    def add(self, address, length, tag=0, func=3):
        self.waiting.append((address, length, tag, func))
        self.expected.append((address, length, tag))

    async def step(self):
        dut = self.dut
        dut.s_desc_valid.value = bool(self.waiting)
        if self.waiting:
            for name, value in zip(("address", "length", "tag", "func"), self.waiting[0]):
                getattr(dut, f"s_desc_{name}").value = value
        dut.m_data_tready.value = random.random() >= self.stall
        self.host.drive()
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        if self.waiting and int(dut.s_desc_ready.value):
            self.waiting.pop(0)
            self.taken_at = self.taken_at or self.cycles.number
        if int(dut.hif_rd_req_valid.value):
            self.asked_at = self.asked_at or self.cycles.number
        for name in COUNTED:
            self.count[name] += int(getattr(dut, f"inc_{name}").value)
        if int(dut.m_data_tvalid.value) and int(dut.m_data_tready.value):
            keep, last = int(dut.m_data_tkeep.value), int(dut.m_data_tlast.value)
            assert keep & (keep + 1) == 0 and keep and (last or keep == 0xFFFFFFFF)
            assert int(dut.m_status_tag.value) == self.expected[0][2], "the tag is there from the first word on"
            # Bytes behind the end may be anything, even unknown.
            count = keep.bit_length()
            bad = last and int(dut.m_data_tuser.value)
            if not bad:
                bits = dut.m_data_tdata.value.binstr[256 - 8 * count:]
                self.got += int(bits, 2).to_bytes(count, "little")
            if last:
                address, length, _ = self.expected.pop(0)
                error = int(dut.m_status_error.value)
                assert bool(error) == bool(bad)
                whole = self.host.memory(address, length)
                assert whole == self.got if not error else whole.startswith(self.got)
                self.ended.append(error)
                self.got = b""

    async def finish(self, most=12000):
        for _ in range(most):
            await self.step()
            if not self.expected and not self.host.coming and int(self.dut.idle.value):
                break
        for _ in range(5):
            await self.step()
        assert not self.expected and int(self.dut.idle.value), "a read waits for ever"


async def started(dut, **settings):
    tb = TB(dut, **settings)
    await tb.cycles.start()
    return tb


@cocotb.test()
async def random_reads_split_and_reordered(dut):
    for max_read in (128, 256, 4096):
        tb = await started(dut, max_read=max_read)
        tb.host.delay, tb.stall = 60, random.choice((0, 0.3))
        for number in range(30):
            tb.add(random.getrandbits(40), random.choice((1, 3, 32, random.randrange(1, 200), random.randrange(1, 1600))),
                   number)
        await tb.finish()
        assert tb.ended == [0] * 30 and tb.count["reads"] == tb.host.asked
        assert sum(tb.count.values()) == tb.count["reads"]


@cocotb.test()
async def every_first_and_last_byte_of_a_word(dut):
    tb = await started(dut)
    for first in range(0, 32, 3):
        for length in (1, 2, 5, 31, 32, 33, 64, 70):
            tb.add(0x1000 - 64 + first, length)
    await tb.finish()
    assert set(tb.ended) == {0}


@cocotb.test()
async def tags_do_not_leak_on_unsupported_request_abort_or_poison(dut):
    tb = await started(dut, max_read=128)
    for kind, error, name in ((UNSUPPORTED, 1, "rd_unsupported"), (ABORT, 2, "rd_abort"), ("poisoned", 3, "rd_poisoned")):
        tb.host.fault, tb.ended = lambda kind=kind: kind, []
        for _ in range(2 * tb.tags):
            tb.add(0x2000, 64)
        await tb.finish()
        assert tb.ended == [error] * (2 * tb.tags)
        assert tb.count[name] == 2 * tb.tags
    tb.host.fault, tb.ended = lambda: None, []
    tb.add(0x2040, 3000)
    await tb.finish()
    assert tb.ended == [0]


@cocotb.test()
async def errors_among_good_reads_cost_only_their_own(dut):
    """Errors of any kind, at any completion of any request; the others get their bytes, and none hangs."""
    tb = await started(dut, max_read=128, timeout=400, quarantine=100)
    codes = {UNSUPPORTED: 1, RETRY: 1, ABORT: 2, "poisoned": 3, "lost": 4}
    tb.host.fault = lambda: random.choice([None] * 12 + [UNSUPPORTED, RETRY, ABORT, "poisoned"] * 2 + ["lost"])
    tb.stall = 0.2
    reads = [(number << 16 | random.randrange(4096), random.choice((1, 40, 128, 300, 700))) for number in range(50)]
    for address, length in reads:
        tb.add(address, length)
    await tb.finish()
    for (address, length), error in zip(reads, tb.ended):
        found = {codes[fault] for at, fault in tb.host.faults if address - 4 < at < address + length and fault}
        assert error in found if found else error == 0, f"{error}, where its requests have had {found}"
    wrong = [fault for _, fault in tb.host.faults if fault]
    assert tb.count["rd_unsupported"] == sum(fault in (UNSUPPORTED, RETRY) for fault in wrong)
    assert tb.count["rd_abort"] == wrong.count(ABORT) and tb.count["rd_timeout"] == wrong.count("lost")


@cocotb.test()
async def a_lost_completion_ends_with_a_timeout(dut):
    """Its tag is quarantined: the late completion is counted and discarded, and later reads get their own bytes."""
    tb = await started(dut, timeout=300, quarantine=1000)
    tb.host.fault = lambda: "lost"
    tb.add(0x3000, 100)
    for _ in range(40):
        await tb.step()
    tb.host.fault = lambda: None
    tb.add(0x5000, 400)
    await tb.finish(800)
    assert tb.ended == [4, 0] and tb.count["rd_timeout"] == 1
    late, = tb.host.lost
    for number in range(2 * tb.tags):
        tb.add(0x6000 + 32 * number, 32)
    tb.host.answer(late)
    await tb.finish()
    assert tb.ended == [4] + [0] * (1 + 2 * tb.tags)
    assert tb.count["rd_unexpected"] >= 1 and tb.count["rd_timeout"] == 1


@cocotb.test()
async def a_completion_for_another_function_answers_no_read(dut):
    """Data, part of them, or an error: it is counted as unexpected, and the read has its own bytes afterwards; also
    where the tag was that function's before."""
    tb = await started(dut, timeout=4000)
    count = 0
    for func in (3, 0, 7, 3, 5):
        for other in {0, 7, func ^ 1, func ^ 2, func ^ 4, func | 8, func | 128} - {func}:
            for fault in (None, "poisoned", UNSUPPORTED, ABORT):
                tb.host.fault, tb.ended = lambda: "lost", []
                tb.add(0x3004 + 4096 * count, random.choice((60, 200)), func=func)
                while not tb.host.lost:
                    await tb.step()
                tb.host.fault = lambda: None
                head, before = tb.host.lost.pop(), tb.count["rd_unexpected"]
                tb.host.answer(head, fault, func=other)
                sent = len(tb.host.coming[field(head, "tag")])
                while tb.host.coming or tb.host.source.queue:
                    await tb.step()
                for _ in range(6):
                    await tb.step()
                assert not tb.ended and tb.count["rd_unexpected"] - before == sent, f"{other} for {func}: {fault}"
                tb.host.answer(head)
                await tb.finish(800)
                assert tb.ended == [0]
                count += 1
    assert sum(tb.count.values()) - tb.count["reads"] == tb.count["rd_unexpected"] and tb.count["reads"] == count


@cocotb.test()
async def reads_of_all_functions_get_their_own_bytes(dut):
    tb = await started(dut, max_read=128)
    tb.host.delay = 60
    for number in range(40):
        tb.add(random.getrandbits(40), random.choice((1, 40, 300)), number, random.randrange(8))
    await tb.finish()
    assert tb.ended == [0] * 40 and tb.count["rd_unexpected"] == 0


@cocotb.test()
async def bus_mastering_off_fails_reads_at_once(dut):
    tb = await started(dut)
    dut.cfg_bus_master.value = 0
    tb.add(0x100, 2000)
    tb.add(0x100, 20)
    await tb.finish(200)
    assert tb.ended == [5, 5] and tb.host.asked == 0


@cocotb.test()
async def latency(dut):
    tb = await started(dut)
    tb.add(0x100, 64)
    await tb.finish()
    table.check("dma_rd", tb.asked_at - tb.taken_at)
