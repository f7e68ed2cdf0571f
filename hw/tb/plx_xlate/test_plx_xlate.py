"""plx_xlate: permission and translation against a model; latency, one request a cycle; held chunks; unmapping;
faults, each told to its function."""

import random

import cocotb

import cycles as table
from core import Cycles, Window, joined

PARAMETERS = [{"MASTERS": 4, "ENTRIES": 128}, {"MASTERS": 1, "ENTRIES": 2}]

NONE, CROSSES, DENIED = 0, 1, 2
LATENCY = 3
PAGE = 4096
# The event queue of function 0; that of function n is n behind it.
QUEUE = 5


class Entry:
    """A page of one function."""

    def __init__(self, page, bus, log2, func, key=0, read=True, write=True):
        self.page, self.bus, self.log2, self.func = page, bus, log2, func
        self.key, self.read, self.write = key, read, write

    def control(self):
        return 1 | self.read << 1 | (not self.write) << 2 | self.log2 << 8 | self.func << 16


class Chunk:
    """A request."""

    def __init__(self, address, length=16, func=0, key=0, write=True, index=0):
        self.address, self.length, self.func, self.key, self.write, self.index = address, length, func, key, write, index


class TB:
    """Requests of all masters, their responses by a model of the table, and the events of faults."""

    def __init__(self, dut, timeout=0):
        self.dut, self.masters, self.size = dut, int(dut.MASTERS.value), int(dut.ENTRIES.value)
        self.cycles = Cycles(dut)
        self.cycles.watchers.append(self.look)
        self.extra = None
        self.window = Window(dut, "entry", self.step)
        self.entries = {}
        # Of each master: chunks to request, the present one stands first; chunks in use, with their epoch.
        self.requests = [[] for _ in range(self.masters)]
        self.offered, self.using = [False] * self.masters, [[] for _ in range(self.masters)]
        # Lookups in flight: cycle, master, what the entries said when all of them compared.
        self.taken, self.answers, self.faults, self.misses, self.events = [], [], [], 0, []
        self.lost = self.counted = self.held = 0
        self.idle, self.event_stall, self.keep = 0.0, 0.0, 0.0
        # Functions that have events, and those in reset; queues with room, and the one that was asked for. Of each
        # function: the latest cycle in which it had no events, and the first of those.
        self.on, self.resetting, self.rooms, self.asked, self.silent = 0xFF, 0, -1, 0, [-9] * 8
        self.offered_event, self.began = False, [0] * 8
        self.fences, self.fence_wait, self.invalidate = 0, 3, None
        self.done = [None] * self.masters
        # A cycle, and a chunk that the first master requests then; a cycle from which on entry 0 is invalid.
        self.later = self.ends = None
        for name in ("s_req_valid", "s_req_address", "s_req_length", "s_req_func", "s_req_key", "s_req_write",
                     "s_req_index", "s_done", "s_done_epoch", "win_write", "win_addr", "win_wdata", "now_cycle_ts",
                     "m_event_ready", "cfg_invalidate", "wr_invalidate", "s_fence_done"):
            getattr(dut, name).value = 0
        dut.cfg_fault_queue.value = joined([QUEUE + function for function in range(8)], 8)
        dut.s_room.value = dut.resetting.value = 0
        dut.cfg_event_fault.value = self.on
        dut.cfg_timeout_cycles.value = timeout

    async def start(self):
        await self.cycles.start()

    async def step(self, extra=None):
        """One cycle."""
        dut, self.extra = self.dut, extra
        if self.later and self.cycles.number >= self.later[0]:
            self.requests[0].append(self.later[1])
            self.later = None
        for master in range(self.masters):
            self.offered[master] = bool(self.requests[master]) and (self.offered[master] or random.random() >= self.idle)
            using = self.using[master]
            self.done[master] = using.pop(0) if using and random.random() >= self.keep else None
        none = Chunk(0, 0)
        heads = [queue[0] if offered else none for queue, offered in zip(self.requests, self.offered)]
        dut.s_req_valid.value = joined(self.offered, 1)
        for name, width in (("address", 64), ("length", 13), ("func", 8), ("key", 32), ("write", 1), ("index", 7)):
            getattr(dut, f"s_req_{name}").value = joined([getattr(head, name) for head in heads], width)
        dut.s_done.value = joined([done is not None for done in self.done], 1)
        dut.s_done_epoch.value = joined([done or 0 for done in self.done], 1)
        dut.wr_invalidate.value = self.invalidate is not None
        if self.invalidate is not None:
            dut.cfg_invalidate.value, self.invalidate = self.invalidate, None
        self.fences = self.fences + 1 if int(dut.m_fence.value) else 0
        dut.s_fence_done.value = self.fences > self.fence_wait
        dut.now_cycle_ts.value = self.cycles.number
        dut.s_room.value = self.rooms >> self.asked & 1
        dut.cfg_event_fault.value, dut.resetting.value = self.on, self.resetting
        dut.m_event_ready.value = random.random() >= self.event_stall
        await self.cycles.cycle()

    def look(self):
        dut, now = self.dut, self.cycles.number
        if self.extra:
            self.extra()
        if self.ends == now:
            self.entries.pop(0)
        for lookup in self.taken:
            if lookup[0] + 1 == now:
                lookup[2] = self.translate(self.requests[lookup[1]][0])
        valid = int(dut.m_rsp_valid.value)
        if self.taken and self.taken[0][0] + LATENCY == now:
            self.answered(valid, *self.taken.pop(0))
        else:
            assert valid == 0, "a response without a lookup"
        grant = int(dut.m_req_accepted.value)
        assert grant & (grant - 1) == 0, "more than one granted"
        for master in range(self.masters):
            if grant >> master & 1:
                assert self.offered[master] and all(lookup[1] != master for lookup in self.taken)
                self.taken.append([now, master, None])
        self.counted += int(dut.inc_faults.value)
        self.held += int(dut.inc_misses.value)
        self.lost += int(dut.inc_events_lost.value)
        self.look_at_events()

    def look_at_events(self):
        dut, now = self.dut, self.cycles.number
        asked = dut.m_room_queue.value
        self.asked = int(asked) if asked.is_resolvable else 0
        for function in range(8):
            if not self.on >> function & 1 or self.resetting >> function & 1:
                if self.silent[function] != now - 1:
                    self.began[function] = now
                self.silent[function] = now
        if not int(dut.m_event_valid.value):
            self.offered_event = False
            return
        record, function = int(dut.m_event_record.value), int(dut.m_event_func.value)
        assert int(dut.m_event_queue.value) == QUEUE + function == QUEUE + (record >> 192 & 0xFFFFFFFF)
        if not self.offered_event:
            # It is of a chunk behind all silence of its function; what has just begun is known two cycles later.
            assert record >> 384 & 0xFFFFFFFF > self.silent[function] or now - self.began[function] <= 2
        self.offered_event = not int(dut.m_event_ready.value)
        if not self.offered_event:
            self.events.append(record)

    def answered(self, valid, _, master, expected):
        """The end of a lookup: a response to its master, or it is held."""
        what, bus = expected
        chunk = self.requests[master][0]
        if not valid:
            assert what == NONE and int(self.dut.cfg_timeout_cycles.value), "no response"
            if not getattr(chunk, "told", False):
                self.report(chunk, what, master)
            chunk.told = True
            return
        assert valid == 1 << master, "a response to another master"
        if int(self.dut.m_rsp_hit.value):
            assert what is None and int(self.dut.m_rsp_address.value) == bus, f"a page that is not {chunk.__dict__}"
            self.using[master].append(int(self.dut.m_rsp_epoch.value))
        else:
            assert what is not None, f"a fault of {chunk.__dict__}"
            if not getattr(chunk, "told", False):
                self.report(chunk, what, master)
        self.answers.append((master, chunk, what, self.cycles.number))
        self.requests[master].pop(0)
        self.offered[master] = False

    def report(self, chunk, what, master):
        self.faults.append((chunk, what, self.cycles.number, master))

    def translate(self, chunk):
        """(None, bus address), or (reason, None): by hw/rdl/tlb.rdl, the lowest entry of the function first."""
        if chunk.address % PAGE + chunk.length > PAGE:
            return CROSSES, None
        for number in sorted(self.entries):
            entry = self.entries[number]
            if entry.func == chunk.func and chunk.address >> entry.log2 == entry.page >> entry.log2:
                allowed = entry.write if chunk.write else entry.read
                if entry.key != chunk.key or not allowed:
                    return DENIED, None
                return None, entry.bus + chunk.address % (1 << entry.log2)
        return NONE, None

    async def enter(self, number, entry):
        await self.remove(number)
        at = number * 32
        await self.window.write64(at, entry.page)
        await self.window.write64(at + 8, entry.bus)
        await self.window.write(at + 20, entry.key)
        await self.window.write(at + 16, entry.control())
        # It takes effect in the cycle after.
        await self.step()
        legal = 12 <= entry.log2 <= 30 and (entry.page | entry.bus) % (1 << entry.log2) == 0
        if legal:
            self.entries[number] = entry
        # Valid, or refused.
        assert await self.window.read(at + 16) & 9 == (1 if legal else 8)

    async def remove(self, number):
        await self.window.write(number * 32 + 16, 0)
        await self.step()
        self.entries.pop(number, None)

    async def settle(self, limit=3000):
        for _ in range(limit):
            if not any(self.requests) and not self.taken and not self.later:
                return
            await self.step()
        raise AssertionError("requests that are never answered")

    async def drain(self):
        self.event_stall = 0
        for _ in range(40):
            await self.step()

    def check_events(self):
        """Each of a fault, once; those of a master in order, those of a function numbered. The others are lost."""
        told = [fault for fault in self.faults if fault[0].func < 8]
        assert len(self.events) + self.lost == len(told)
        by_cycle, last, numbers = {fault[2]: fault for fault in told}, {}, [0] * 8
        for record in self.events:
            bits = lambda low, width, record=record: record >> low & ((1 << width) - 1)
            chunk, what, when, master = by_cycle.pop(bits(384, 32))
            assert bits(64, 32) == chunk.index and bits(96, 32) == chunk.length and bits(128, 64) == chunk.address
            assert bits(192, 32) == chunk.func and bits(224, 32) == what
            assert bits(448, 32) == numbers[chunk.func] and bits(496, 8) == 3 and bits(504, 8) == 0
            assert when > last.get(master, -1), "out of order"
            last[master], numbers[chunk.func] = when, numbers[chunk.func] + 1


def some_entry(number):
    log2 = random.choice([12, 12, 13, 16, 21, 29, 30])
    # Two in three share a virtual address with the one before it.
    page = (number // 3 + 1) << 32
    return Entry(page, random.getrandbits(62 - log2) << log2, log2, random.choice([0, 0, 1, 3]),
                 random.choice([0, 0, 7]), random.random() < 0.7, random.random() < 0.7)


async def filled(dut, count, timeout=0):
    """Entries of random page sizes, functions, keys and rights, some of them at the same virtual address."""
    tb = TB(dut, timeout)
    await tb.start()
    for number in range(count):
        await tb.enter(number, some_entry(number))
    return tb


def some_chunk(tb):
    entry = random.choice(list(tb.entries.values()))
    size, length = 1 << entry.log2, random.choice([1, 16, 256, 4095, 4096])
    inside = random.choice([0, size - PAGE, random.randrange(size)])
    inside -= random.choice([0, inside % PAGE, inside % PAGE])
    length = min(length, PAGE - inside % PAGE) + random.choice([0] * 9 + [1])
    address = entry.page + inside + random.choice([0, 0, 0, 0, 0, size, -size])
    other = random.random()
    return Chunk(address % (1 << 64), length, random.choice([entry.func] * 4 + [0, 1, 9]),
                 entry.key if other < 0.9 else 5, random.random() < 0.7, random.getrandbits(7))


@cocotb.test()
async def every_access_as_the_model_says(dut):
    """No page of another function or key, and none without the right."""
    tb = await filled(dut, min(int(dut.ENTRIES.value), 12))
    tb.idle, tb.event_stall, tb.keep = 0.3, 0.2, 0.5
    for queue in tb.requests:
        queue += [some_chunk(tb) for _ in range(400 // tb.masters)]
    await tb.settle()
    await tb.drain()
    assert len(tb.answers) == 400 // tb.masters * tb.masters
    tb.check_events()
    assert len(tb.events) > 20 and len(tb.faults) == tb.counted > 20
    assert {what for _, _, what, _ in tb.answers} == {None, NONE, CROSSES, DENIED}


@cocotb.test()
async def a_lookup_in_every_cycle(dut):
    """As many cycles as requests where all masters ask, and every master has its turn."""
    tb = await filled(dut, 2)
    for queue in tb.requests:
        queue += [some_chunk(tb) for _ in range(40)]
    begun = tb.cycles.number
    await tb.settle()
    assert tb.cycles.number - begun <= 40 * max(tb.masters, LATENCY + 1) + LATENCY + 1
    first = min(when for *_, when in tb.answers)
    table.check("xlate_hit", first - begun)


@cocotb.test()
async def a_missing_chunk_is_held_until_its_page_is_entered(dut):
    """Its master waits, the others go on; another page's entry does not end the wait; one event for each."""
    tb = await filled(dut, 1, timeout=2000)
    entry = tb.entries[0]
    entry_ok = Chunk(entry.page, 16, entry.func, entry.key, entry.write)
    tb.requests[0].append(Chunk(0x7000_0000_0000, 64, 2, 3, index=9))
    for _ in range(60):
        if tb.masters > 1 and not tb.requests[1]:
            tb.requests[1].append(Chunk(**{**entry_ok.__dict__}))
        await tb.step()
    assert tb.requests[0] and tb.held == 1 and len(tb.faults) == 1
    others = sum(master == 1 for master, *_ in tb.answers)
    assert tb.masters == 1 or others > 8
    await tb.enter(1, Entry(0x6000_0000_0000, 0x5000, 12, 2, 3))
    for _ in range(20):
        await tb.step()
    assert tb.requests[0], "the page is another"
    await tb.enter(1, Entry(0x7000_0000_0000, 0x9000, 12, 2, 3))
    await tb.settle()
    await tb.drain()
    assert tb.answers[-1][2] is None or tb.masters > 1
    assert (tb.held, tb.counted, len(tb.events)) == (1, 0, 1)
    tb.check_events()


@cocotb.test()
async def an_entry_made_during_a_lookup_ends_the_wait(dut):
    """Whatever the cycle in which it is made: a chunk is never held although its page is there."""
    tb = TB(dut, timeout=3000)
    await tb.start()
    page = 0x10_0000
    for wait in range(48):
        # Software takes some 30 cycles for an entry.
        tb.later = (tb.cycles.number + wait, Chunk(page))
        await tb.enter(0, Entry(page, 0x5000, 12, 0))
        await tb.settle(60)
        assert tb.answers[-1][2] is None and len(tb.answers) == wait + 1
        page += PAGE
    assert 0 < tb.held < 48


@cocotb.test()
async def unmapping_ends_when_nothing_uses_its_page_any_more(dut):
    """Whatever is in flight; others go on meanwhile, and do not delay it; writes before have left."""
    tb = await filled(dut, 2)
    page, other = Entry(1 << 40, 0x5000, 12, 0), Entry(2 << 40, 0x6000, 12, 0)
    await tb.enter(1, other)
    for number in range(1, 12):
        await tb.enter(0, page)
        tb.keep = 1.0
        tb.requests[0].append(Chunk(page.page))
        await tb.settle()
        assert tb.answers[-1][2] is None
        await tb.remove(0)
        tb.invalidate = number
        for cycle in range(24):
            await tb.step()
            # The request has taken effect.
            if tb.masters > 1 and cycle > 3 and not tb.requests[1]:
                tb.requests[1].append(Chunk(other.page))
            assert int(dut.sts_invalidated.value) == number - 1, "complete while its page is in use"
            assert not tb.fences
        others = len(tb.using[1]) if tb.masters > 1 else None
        assert others is None or others > 2, "it stopped another"
        # The first master is done, the other is not.
        tb.fence_wait = random.randrange(12)
        await tb.settle()
        kept, tb.using[1:] = tb.using[1:], [[] for _ in range(tb.masters - 1)]
        tb.keep = 0.0
        await tb.step()
        tb.keep = 1.0
        tb.using[1:] = kept
        for wait in range(40):
            await tb.step()
            if int(dut.sts_invalidated.value) == number:
                break
        assert tb.fence_wait <= wait < tb.fence_wait + 8, f"{wait} cycles with a fence of {tb.fence_wait}"
        tb.keep = 0.0
        await tb.settle()
        await tb.drain()
        assert not any(tb.using)


@cocotb.test()
async def a_held_chunk_does_not_delay_unmapping(dut):
    tb = await filled(dut, 1, timeout=3000)
    tb.requests[0].append(Chunk(0x7000_0000_0000))
    for _ in range(20):
        await tb.step()
    tb.invalidate = 77
    for _ in range(20):
        await tb.step()
    assert int(dut.sts_invalidated.value) == 77 and tb.requests[0]


@cocotb.test()
async def requests_to_unmap_that_overlap_end_with_the_last(dut):
    tb = await filled(dut, 1)
    entry = Entry(1 << 40, 0x5000, 12, 0)
    await tb.enter(0, entry)
    tb.keep = 1.0
    tb.requests[0].append(Chunk(entry.page))
    await tb.settle()
    for number in (3, 4, 5):
        tb.invalidate = number
        await tb.step()
        await tb.step()
    tb.keep = 0.0
    await tb.drain()
    assert int(dut.sts_invalidated.value) == 5


@cocotb.test()
async def software_reads_what_it_wrote(dut):
    tb = await filled(dut, 2)
    for number, entry in tb.entries.items():
        at = number * 32
        for offset, value in ((0, entry.page), (8, entry.bus)):
            low, high = await tb.window.read(at + offset), await tb.window.read(at + offset + 4)
            assert low | high << 32 == value
        assert await tb.window.read(at + 16) == entry.control() and await tb.window.read(at + 20) == entry.key
    # An unsupported page size makes no entry.
    await tb.enter(0, Entry(0x5000, 0x7000, 11, 0))
    assert await tb.window.read(16) & 1 == 0
    dut.rst.value = 1
    await tb.step()
    dut.rst.value = 0
    assert await tb.window.read(32 + 16) & 1 == 0


@cocotb.test()
async def bytes_that_are_not_enabled_stay(dut):
    """Of the page, of what it belongs to; and only its own byte enables or disables an entry."""
    tb = TB(dut)
    await tb.start()
    await tb.enter(1, Entry(0x1122_3344_5566_7000, 0x9000, 12, 3, write=True, read=False))
    await tb.window.access(32 + 4, 0xAABBCCDD, strobe=0b0100)
    assert await tb.window.read(32 + 4) == 0x11BB_3344
    # Its address was written.
    assert await tb.window.read(32 + 16) & 1 == 0
    await tb.window.access(32 + 16, 0xFFFF_FF01, strobe=0b0001)
    await tb.window.access(32 + 16, 0xFFFF_FF00, strobe=0b0100)
    assert await tb.window.read(32 + 16) == 1 | 12 << 8 | 0xFF << 16
    tb.entries[1] = Entry(0x11BB_3344_5566_7000, 0x9000, 12, 0xFF, read=False)
    tb.requests[0] += [Chunk(0x11BB_3344_5566_7010, 16, 0xFF), Chunk(0x1122_3344_5566_7010, 16, 3)]
    await tb.settle()
    await tb.drain()
    assert len(tb.answers) == 2 and tb.counted == 1


@cocotb.test()
async def a_misaligned_page_is_refused(dut):
    """Any bit below the size, in either address: nothing is translated, and no waiting chunk is looked up again."""
    tb = TB(dut)
    await tb.start()
    page, bus = 0x7F12 << 40, 0x35 << 40
    for log2 in range(12, 31):
        for shift in {0, 11, log2 - 1, random.randrange(log2)}:
            for off in ((1 << shift, 0), (0, 1 << shift), (1 << shift, 1 << shift)):
                await tb.enter(0, Entry(page + off[0], bus + off[1], log2, 0))
                assert not tb.entries
        await tb.enter(0, Entry(page + (1 << log2), bus + (3 << log2), log2, 0))
        tb.requests[0] += [Chunk(page + (1 << log2)), Chunk(page + (2 << log2) - 16), Chunk(page)]
        await tb.settle()
        assert [what for _, _, what, _ in tb.answers[-3:]] == [None, None, NONE]
    for log2 in (0, 11, 31):
        await tb.enter(0, Entry(page, bus, log2, 0))
    assert await tb.window.read(16) & 9 == 8
    await tb.remove(0)
    assert await tb.window.read(16) & 9 == 0


@cocotb.test()
async def an_address_that_is_written_ends_its_page(dut):
    """From the first cycle of the access on; a chunk that was looked up before gets the page that it found."""
    tb = TB(dut)
    await tb.start()
    old, new = Entry(1 << 40, 5 << 30, 21, 0), Entry(2 << 40, 7 << 30, 21, 0)
    words = [new.page & 0xFFFFFFFF, new.page >> 32, new.bus & 0xFFFFFFFF, new.bus >> 32]
    for word, value in enumerate(words):
        for strobe in (15, 1, 8):
            for ahead in range(-5, 6):
                await tb.enter(0, old)
                tb.answers.clear()
                chunk = Chunk(old.page + 0x4321)
                if ahead < 0:
                    tb.later = (tb.cycles.number - ahead, chunk)
                else:
                    tb.requests[0].append(chunk)
                for _ in range(ahead):
                    await tb.step()
                # Its lookup compares in the cycle after.
                tb.ends = tb.cycles.number + 1
                await tb.window.access(4 * word, value, strobe)
                await tb.settle()
                assert (tb.answers[0][2] is None) == (ahead > 0), f"{ahead} cycles ahead"
                assert await tb.window.read(16) & 9 == 0
