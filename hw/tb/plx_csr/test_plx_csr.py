"""plx_csr: each DW one access, in order; one completion for every read, of any kind. Doorbells pass a read that
waits for a block in another clock, and nothing else does."""

import random

import cocotb
from cocotb.triggers import Edge

import cycles as table
from core import Cycles, joined
from host_bus import ABORT, SUCCESS, UNSUPPORTED, Sink, Source, enabled, field, header

PARAMETERS = [{"PORTS": 4}, {"PORTS": 1}]

SIZES = [(0x0000, 7), (0x1000, 9), (0x1800, 8), (0x2000, 9), (0x10000, 15), (0x4000, 13), (0x6000, 11), (0x8000, 15)]


class TB:
    """A host, and blocks that are memories."""

    def __init__(self, dut):
        self.dut, self.cycles = dut, Cycles(dut)
        self.places = [(0, *size) for size in SIZES]
        self.places += [(0, 0x18000 + 0x2000 * port, 13) for port in range(int(dut.PORTS.value))] + [(2, 0, 13)]
        self.request, self.host = Source(dut, "hif_rx_req"), Sink(dut, "hif_tx_cpl", self.answered)
        self.cycles.watchers += [self.request.look, self.host.look, self.look]
        self.model_memory = {}
        self.memory, self.accesses, self.answers, self.expected = {}, [], [], []
        self.taken_at, self.stall, self.refused, self.denied, self.resetting = None, 0.0, 0, 0, 0
        # Owners of ports, queues, groups of pages: function 0, until a test assigns them.
        self.owners = [0] * int(dut.PORTS.value), [0] * 256, [0] * 8
        self.assign()
        dut.s_write_valid.value = dut.resetting.value = 0
        cocotb.start_soon(self.look_up())
        self.address = self.data = self.answer = None
        # Cycles that a block in another clock takes to answer a read; the read that waits for it, until when.
        self.far, self.waits, self.rung = (lambda: 0), None, 0
        # Reads of doorbells, which others may have passed; cycles at which requests were accepted.
        self.loose, self.accepted = set(), []
        for name in ("awready", "wready", "bvalid", "arready", "rvalid", "rdata"):
            getattr(dut, f"m_axil_{name}").value = 0
        dut.block_in_reset.value = 0

    async def look_up(self):
        """Owners of queues, in the same cycle."""
        while True:
            asked = self.dut.m_owner_queue.value
            self.dut.s_owner.value = self.owners[1][int(asked)] if asked.is_resolvable else 0
            await Edge(self.dut.m_owner_queue)

    def block(self, bar, offset):
        for index, (mine, at, bits) in enumerate(self.places):
            if mine == bar and at <= offset < at + (1 << bits):
                return index
        return None

    def assign(self):
        ports, queues, pages = self.owners
        self.dut.cfg_port_owner.value = joined(ports, 3)
        self.dut.cfg_page_owner.value = joined(pages, 3)
        asked = self.dut.m_owner_queue.value
        self.dut.s_owner.value = queues[int(asked)] if asked.is_resolvable else 0

    def owner(self, bar, at):
        """The function that a register belongs to; None: to all."""
        ports, queues, pages = self.owners
        if bar == 2:
            return None if at >= 0x1000 else (queues + [8] * 256)[at // 16]
        if at >= 0x18000:
            return ports[(at - 0x18000) // 0x2000]
        if at >= 0x14000:
            return (queues + [8] * 256)[(at - 0x14000) // 0x40]
        if 0xA000 <= at < 0xE000:
            return (ports + [0] * 4)[(at & 0x1FFF) // 0x800]
        if 0x6100 <= at < 0x6200 or 0x6400 <= at < 0x6480:
            return (ports + [0] * 4)[(at - 0x6100) // 0x40 if at < 0x6400 else (at - 0x6400) // 0x20]
        return pages[(at - 0x5000) // 0x200] if 0x5000 <= at < 0x6000 else None

    def may(self, func, write, bar, at):
        owner = self.owner(bar, at)
        if owner is not None:
            if write and self.resetting >> func & 1:
                return False
            return owner == func or not write and bar == 0 and at >= 0x18000 and at % 0x2000 < 8
        if bar == 2:
            return not write
        if 0x1820 <= at < 0x1840 and write:
            return not self.resetting >> func & 1 and func in (0, (at - 0x1820) // 4)
        if 0x1840 <= at < 0x1880 and (at - 0x1840) // 8 == func:
            return True
        head = at % 0x1000 < 8 or 0x1800 <= at < 0x1808
        whole = at < 0x80 or 0x1800 <= at < 0x1900 or 0x6000 <= at < 0x6800 or at >= 0x8000
        return func == 0 or not write and (whole or head)

    def is_far(self, block):
        """A block in the ports' clock: timing, ports."""
        return block == 3 or 8 <= block < len(self.places) - 1

    @staticmethod
    def is_bell(bar, at):
        """RING_PRODUCER, LIST_RELEASED, QUEUE_RELEASED, QUEUE_ARM."""
        return bar == 0 and (0x6100 <= at < 0x6200 and at % 64 == 12 or 0xA000 <= at < 0xE000 and at % 64 == 28
                             or 0x14000 <= at < 0x18000 and at % 64 in (12, 28))

    def ask(self, write, bar, offset, dws, first_be=15, last_be=None, poisoned=0, data=None, func=0):
        last_be = (15 if dws > 1 else 0) if last_be is None else last_be
        fields = {"requester": random.getrandbits(16), "tag": random.getrandbits(10), "func": func,
                  "attributes": random.getrandbits(3), "class": random.getrandbits(3)}
        data = random.randbytes(4 * dws) if data is None else data
        self.request.send(header(offset=offset, length=dws, first_be=first_be, last_be=last_be, bar=bar, write=write,
                                 poisoned=poisoned, **fields), data if write else b"")
        status = UNSUPPORTED if bar not in (0, 2) or poisoned or func > 7 else ABORT if dws > 16 else SUCCESS
        bytes_on = enabled(first_be, last_be, dws)
        found = b""
        self.denied += status != SUCCESS
        for index in range(dws if status == SUCCESS else 0):
            at, on = offset + 4 * index, bytes_on[4 * index:4 * index + 4]
            allowed = any(on) and self.block(bar, at) is not None and self.may(func, write, bar, at)
            self.denied += any(on) and not allowed
            if allowed:
                if write and func and 0x5000 <= at < 0x6000 and bar == 0 and at % 32 == 16:
                    # A page is for the function that writes it.
                    data = data[:4 * index + 2] + bytes([func]) + data[4 * index + 3:]
                    on = [*on[:2], True, on[3]]
                if write:
                    old = self.model(bar, at)
                    self.model_memory[bar, at] = bytes(
                        new if enable else was for new, was, enable in zip(data[4 * index:], old, on))
                found += self.model(bar, at)
            else:
                found += bytes(4)
        if not write:
            span = [index for index, on in enumerate(bytes_on) if on] or [0]
            if self.is_bell(bar, offset):
                self.loose.add(len(self.expected))
            self.expected.append((header(lower=offset + span[0] & 0x7F, bytes=span[-1] - span[0] + 1, status=status,
                                         length=len(found) // 4, **fields), found))

    def model(self, bar, at):
        return self.model_memory.get((bar, at), bytes(4))

    def answered(self, head, data):
        dws = field(head, "length")
        assert not any(data[4 * dws:]), "something behind the last DW"
        self.answers.append((head, data[:4 * dws]))

    async def step(self):
        dut = self.dut
        self.request.drive()
        self.host.drive()
        ready = [random.random() >= self.stall for _ in range(3)]
        blocks = len(self.places)
        for name, on in zip(("awready", "wready", "arready"), ready):
            getattr(dut, f"m_axil_{name}").value = ((1 << blocks) - 1) * on
        kind, block, value = self.answer or (None, 0, 0)
        # The answer of the read that waits, maybe in the middle of a doorbell.
        far, found, _ = self.waits if self.waits and self.cycles.number >= self.waits[2] else (None, 0, 0)
        dut.m_axil_bvalid.value = (kind == "b") << block
        dut.m_axil_rvalid.value = (kind == "r") << block | (far is not None) << (far or 0)
        dut.m_axil_rdata.value = joined([value if index == block and kind else found if index == far
                                         else random.getrandbits(32) for index in range(blocks)], 32)
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        if int(dut.hif_rx_req_valid.value) and int(dut.hif_rx_req_ready.value):
            self.taken_at = self.cycles.number if self.taken_at is None else self.taken_at
            self.accepted.append(self.cycles.number)
        self.refused += int(dut.inc_refused.value)
        valid = {name: int(getattr(dut, f"m_axil_{name}valid").value) for name in ("aw", "w", "ar")}
        assert all(one & (one - 1) == 0 for one in valid.values())
        if self.waits and self.cycles.number >= self.waits[2] and int(dut.m_axil_rready.value) >> self.waits[0] & 1:
            assert not any(valid.values())
            self.waits = None
            return
        if self.answer:
            assert not any(valid.values()), "an access before the answer to the last"
            kind, block, _ = self.answer
            if int(getattr(dut, f"m_axil_{kind}ready").value) >> block & 1:
                self.answer = None
            return
        for name, one in valid.items():
            if one and int(getattr(dut, f"m_axil_{name}ready").value):
                block = one.bit_length() - 1
                bar, at = self.places[block][0], int(dut.m_axil_addr.value)
                if name == "w":
                    self.data = (int(dut.m_axil_wdata.value), int(dut.m_axil_wstrb.value))
                else:
                    assert self.block(bar, at) == block, "the access of another block"
                    if self.waits:
                        assert name == "aw" and self.is_bell(bar, at), f"{name} {at:#x} passes a read"
                        self.rung += 1
                    self.address = (name, bar, at, block)
                    self.accesses.append((self.cycles.number, name, bar, at))
        if self.address and self.address[0] == "ar":
            _, bar, at, block = self.address
            value = int.from_bytes(self.memory.get((bar, at), bytes(4)), "little")
            delay = self.far() if self.is_far(block) else 0
            if delay:
                self.waits = (block, value, self.cycles.number + delay)
            else:
                self.answer = ("r", block, value)
            self.address = None
        elif self.address and self.data:
            _, bar, at, block = self.address
            old, new = self.memory.get((bar, at), bytes(4)), self.data[0].to_bytes(4, "little")
            self.memory[bar, at] = bytes(new[i] if self.data[1] >> i & 1 else old[i] for i in range(4))
            self.answer, self.address, self.data = ("b", block, 0), None, None

    async def finish(self):
        for _ in range(12000):
            await self.step()
            if not self.request.queue and len(self.answers) >= len(self.expected):
                break
        for _ in range(100):
            await self.step()
        assert [head for head, _ in self.answers] == [head for head, _ in self.expected]
        for number, ((_, is_), (_, was)) in enumerate(zip(self.answers, self.expected)):
            # A read behind a doorbell finds it, or a later one that has passed it too.
            newer = number in self.loose and int.from_bytes(is_, "little") >= int.from_bytes(was, "little")
            assert newer or is_ == was, f"answer {number}"
        assert self.memory == self.model_memory and self.refused == self.denied


async def started(dut):
    tb = TB(dut)
    await tb.cycles.start()
    return tb


@cocotb.test()
async def random_accesses_of_1_to_64_bytes_with_byte_enables(dut):
    tb = await started(dut)
    tb.stall, tb.host.stall, tb.request.idle = 0.3, 0.3, 0.2
    for _ in range(120):
        bar, at, bits = random.choice(tb.places)
        dws = random.choice((1, 2, random.randrange(1, 17)))
        offset = at + 4 * random.randrange(min(8, (1 << bits) // 4))
        # No bytes at all only of a single DW (PCIe 4.0, 2.2.5).
        first, last = random.randrange(dws > 1, 16), random.randrange(1, 16) if dws > 1 else 0
        tb.ask(random.random() < 0.5, bar, offset, dws, first, last)
    await tb.finish()


@cocotb.test()
async def unknown_places_are_answered_with_zero_and_counted(dut):
    tb = await started(dut)
    for bar, offset in ((0, 0x80), (0, 0x7FF8), (0, 0x80000000), (2, 0x2000), (0, 0x78), (0, 0x3FFFC)):
        tb.ask(1, bar, offset, 4)
        tb.ask(0, bar, offset, 4)
    await tb.finish()
    assert tb.denied == 40


@cocotb.test()
async def what_is_not_supported_is_refused_and_the_next_request_served(dut):
    tb = await started(dut)
    for write in (1, 0):
        tb.ask(write, 1, 0x1000, 2)
        tb.ask(write, 0, 0x1000, 17)
        tb.ask(write, 0, 0x1000, 128)
        tb.ask(write, 0, 0x1000, 2, func=8)
    tb.ask(1, 0, 0x1010, 2, poisoned=1)
    tb.ask(0, 0, 0x1010, 2)
    await tb.finish()


@cocotb.test()
async def a_block_that_goes_away_is_answered_with_zero(dut):
    tb = await started(dut)
    # The block accepts the access, and is reset before it responds.
    tb.ask(0, 0, 0x6000, 1)
    tb.ask(0, 0, 0x1000, 1)
    while not tb.answer:
        await tb.step()
    tb.answer, dut.block_in_reset.value = None, 1 << 6
    tb.denied += 1
    await tb.finish()
    dut.block_in_reset.value = 0
    tb.ask(1, 0, 0x6000, 1)
    tb.ask(0, 0, 0x6000, 1)
    await tb.finish()


@cocotb.test()
async def a_function_reaches_what_is_its_own(dut):
    """All functions access all registers, with changing owners."""
    tb = await started(dut)
    for _ in range(12):
        for owners in tb.owners:
            owners[:] = [random.randrange(8) for _ in owners]
        tb.assign()
        for _ in range(40):
            bar, at, bits = random.choice(tb.places)
            dws = random.choice((1, 1, 2, 16))
            offset = at + 4 * random.randrange(max(1, (1 << bits) // 4 - dws))
            func = random.choice((random.randrange(8), min(7, tb.owner(bar, offset) or 0)))
            tb.ask(random.random() < 0.6, bar, offset, dws, random.randrange(1, 16), func=func)
        await tb.finish()
    assert tb.denied > 100, tb.denied


@cocotb.test()
async def a_function_in_reset_writes_nothing_of_its_own(dut):
    """What it wrote behind the reset's own write would outlive that; its reads go on."""
    tb = await started(dut)
    tb.owners[0][0] = tb.owners[1][200] = tb.owners[1][201] = tb.owners[2][3] = 6
    tb.assign()
    # A port, its ring, one of its lists; a page; queues, a vector; its faults.
    places = [(0, at) for at in (0x18008, 0x6108, 0x610C, 0xA018 + 3 * 64, 0x5600, 0x14000 + 200 * 64 + 8,
                                 0x14000 + 201 * 64 + 12, 0x1838)] + [(2, 200 * 16 + 12)]
    for tb.resetting in (1 << 6, 1 << 5, 0xFF, 0):
        dut.resetting.value = tb.resetting
        before = tb.denied
        for write in (1, 0):
            for bar, at in places:
                tb.ask(write, bar, at, 1, func=6)
            tb.ask(write, 0, 0x1870, 1, func=6)
        await tb.finish()
        assert tb.denied - before == len(places) * (tb.resetting >> 6 & 1)
    # Doorbells that pass a read, too.
    tb.far, tb.resetting, dut.resetting.value, before = (lambda: 60), 1 << 6, 1 << 6, tb.denied
    for _ in range(2):
        tb.ask(0, 0, 0x2000, 1)
        for at in (0x610C, 0xA01C, 0x14000 + 200 * 64 + 12):
            tb.ask(1, 0, at, 1, func=6)
    await tb.finish()
    assert tb.denied - before == 6


@cocotb.test()
async def faults_of_a_function_are_told_as_it_says_or_function_0(dut):
    """All read the rows; one in reset writes none, function 0 included."""
    tb = await started(dut)
    for tb.resetting in (0, 1, 1 << 3):
        dut.resetting.value, before = tb.resetting, tb.denied
        for row in range(8):
            for func in range(8):
                tb.ask(1, 0, 0x1820 + 4 * row, 1, func=func)
                tb.ask(0, 0, 0x1820 + 4 * row, 1, func=func)
        await tb.finish()
        assert tb.denied - before == {0: 49, 1: 57, 8: 50}[tb.resetting]


@cocotb.test()
async def writes_for_a_reset_take_turns_with_the_host(dut):
    tb = await started(dut)
    tb.owners[1][2], taken = 5, 0
    tb.assign()
    dut.resetting.value = 1 << 5
    for _ in range(20):
        tb.ask(1, 0, 0x30, 1)
        tb.ask(0, 0, 0x30, 16)
    dut.s_write_valid.value, dut.s_write_func.value, dut.s_write_data.value = 1, 5, 0x300
    dut.s_write_vector.value, dut.s_write_offset.value = 0, 0x14088
    while taken < 20:
        await tb.step()
        taken += int(dut.s_write_ready.value)
        assert len(tb.answers) <= taken + 1, "the host goes first"
    dut.s_write_valid.value = 0
    assert len(tb.answers) > 5, "the reset goes first"
    tb.model_memory[0, 0x14088] = (0x300).to_bytes(4, "little")
    await tb.finish()


@cocotb.test()
async def latency_of_a_doorbell(dut):
    tb = await started(dut)
    tb.ask(1, 0, 0x6000, 1)
    await tb.finish()
    table.check("csr", tb.accesses[0][0] - tb.taken_at)


def ring(tb, at, value):
    tb.ask(1, 0, at, 1, data=value.to_bytes(4, "little"))


@cocotb.test()
async def doorbells_pass_reads_that_wait_for_another_clock(dut):
    """None of which is answered before all have been performed; a read behind them is not offered meanwhile."""
    tb = await started(dut)
    tb.far = lambda: 500
    for offset in (0x18000, 0x18040, 0x2000, 0x18000):
        tb.ask(0, 0, offset, 2)
    for value, at in enumerate((0x610C, 0xA01C, 0x1400C, 0x1401C, 0x610C, 0xA05C), 1):
        ring(tb, at, value)
    tb.ask(0, 0, 0x610C, 1)
    for _ in range(140):
        await tb.step()
    assert tb.rung == 6 and not tb.answers and tb.memory[0, 0x610C][0] == 5
    assert [name for _, name, *_ in tb.accesses] == ["ar"] + ["aw"] * 6
    # A doorbell is offered as soon as it would be to a card that does nothing else.
    first = tb.accesses[1][0] - tb.accepted[4]
    assert first <= 3, first
    tb.waits = (*tb.waits[:2], 0)
    tb.far = lambda: 0
    await tb.finish()


@cocotb.test()
async def a_doorbell_passes_no_write_and_no_other_write_passes_a_read(dut):
    tb = await started(dut)
    for number, (at, data) in enumerate(((0x6108, 4), (0x610C, 8), (0x18010, 4))):
        tb.far, tb.rung = (lambda: 300), 0
        tb.ask(0, 0, 0x18000, 1)
        tb.ask(1, 0, at, 1, *((7, 0) if data == 8 else ()), data=bytes(4))
        ring(tb, 0x614C, number)
        for _ in range(150):
            await tb.step()
        assert tb.rung == 0 and tb.waits, "only the read has been performed"
        tb.waits, tb.far = (*tb.waits[:2], 0), (lambda: 0)
        await tb.finish()
    # Nor one by a wrong function, poisoned, of two DWs.
    tb.far = lambda: 300
    tb.ask(0, 0, 0x18000, 1)
    tb.ask(1, 0, 0x610C, 1, poisoned=1)
    tb.ask(1, 0, 0x610C, 2)
    tb.ask(1, 0, 0x610C, 1, func=9)
    await tb.finish()
    assert tb.rung == 0
    # One of another function is refused, also in the middle of a read.
    denied = tb.denied
    tb.ask(0, 0, 0x18000, 1)
    tb.ask(1, 0, 0x610C, 1, func=1)
    ring(tb, 0x610C, 7)
    await tb.finish()
    assert tb.rung == 1 and tb.denied == denied + 1


@cocotb.test()
async def a_read_ends_when_its_block_goes_away_in_a_doorbell(dut):
    tb = await started(dut)
    for delay in range(8):
        tb.far, tb.rung, before = (lambda: 10 ** 6), 0, len(tb.answers)
        tb.ask(0, 0, 0x18000, 1)
        while not tb.waits:
            await tb.step()
        ring(tb, 0x610C, delay)
        ring(tb, 0x610C, delay + 1)
        for _ in range(delay):
            await tb.step()
        # For a moment.
        dut.block_in_reset.value = 1 << 8
        await tb.step()
        dut.block_in_reset.value, tb.far, tb.waits = 0, (lambda: 0), None
        for _ in range(40):
            await tb.step()
        assert len(tb.answers) == before + 1
        tb.denied += 1
        await tb.finish()


@cocotb.test()
async def doorbells_among_reads_of_slow_blocks(dut):
    """Any mix: order, values, and completions are as if nothing passed anything, but for doorbells."""
    tb = await started(dut)
    tb.stall, tb.host.stall, tb.request.idle = 0.3, 0.3, 0.2
    tb.far = lambda: random.choice((0, 5, 20, 50))
    bells = (0x610C, 0xA01C, 0x1400C, 0x1401C)
    for value in range(1, 200):
        kind = random.randrange(5)
        if kind < 2:
            ring(tb, random.choice(bells), value)
        elif kind == 2:
            tb.ask(0, 0, random.choice(bells), 1)
        elif kind == 3:
            tb.ask(0, 0, random.choice((0x18000, 0x18020, 0x2000, 0x6000, 0x10000)), random.choice((1, 2, 5)))
        else:
            tb.ask(1, 0, random.choice((0x18010, 0x2010, 0x6020, 0x10020)), random.choice((1, 2, 9)))
    await tb.finish()
    assert tb.rung > 15, tb.rung
