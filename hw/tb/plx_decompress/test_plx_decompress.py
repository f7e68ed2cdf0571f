"""plx_decompress: containers of the format page, refusals of every kind, and payloads that pass unchanged."""

import random

import cocotb

import cycles as table
from core import Cycles
from hits import BAD_VERSION, GOOD, MALFORMED, container, examples, expand

BAD = 1


class TB:
    def __init__(self, dut):
        self.dut, self.cycles = dut, Cycles(dut)
        self.cycles.watchers.append(self.look)
        self.queue, self.words, self.word, self.meta = [], [], None, None
        self.got, self.now_words, self.metas, self.offered = [], [], [], None
        self.idle = self.stall = 0.0
        self.first_in = self.latency = None

    async def start(self):
        self.drive()
        await self.cycles.start()

    def send(self, data, form=2, bad=False):
        self.queue.append((data, form, bad))

    def drive(self):
        dut = self.dut
        if self.word is None and not self.words and self.queue:
            data, form, bad = self.queue.pop(0)
            pieces = [data[at:at + 8] for at in range(0, len(data), 8)] or [b""]
            self.words = [(int.from_bytes(piece, "little"), (1 << len(piece)) - 1, index == len(pieces) - 1,
                           index == len(pieces) - 1 and bad) for index, piece in enumerate(pieces)]
            self.meta = 0x1234567 | len(data) << 128 | 5 << 160 | form << 165 | 1 << 167
        if self.word is None and self.words and random.random() >= self.idle:
            self.word = self.words.pop(0)
        data, keep, last, bad = self.word or (0, 0, 0, 0)
        dut.s_axis_payload_tvalid.value = self.word is not None
        dut.s_axis_meta_tvalid.value, dut.s_axis_meta_tdata.value = self.meta is not None, self.meta or 0
        dut.s_axis_payload_tdata.value, dut.s_axis_payload_tkeep.value = data, keep
        dut.s_axis_payload_tlast.value, dut.s_axis_payload_tuser.value = last, bad
        dut.m_axis_payload_tready.value = random.random() >= self.stall
        dut.m_axis_meta_tready.value = random.random() >= self.stall

    def look(self):
        dut = self.dut
        if self.word and int(dut.s_axis_payload_tready.value):
            if self.first_in is None:
                self.first_in = self.cycles.number
            self.word = None
        if int(dut.s_axis_meta_tready.value) and self.meta is not None:
            assert self.word is None, "metadata are taken with the first word"
            self.meta = None
        if int(dut.m_axis_meta_tvalid.value) and int(dut.m_axis_meta_tready.value):
            self.metas.append(int(dut.m_axis_meta_tdata.value))
        if int(dut.m_axis_payload_tvalid.value):
            word = tuple(int(getattr(dut, f"m_axis_payload_{name}").value)
                         for name in ("tdata", "tkeep", "tlast", "tuser"))
            assert self.offered in (None, word), "the offer did not stand"
            if self.latency is None:
                self.latency = self.cycles.number - self.first_in
            self.offered = word
            if int(dut.m_axis_payload_tready.value):
                self.offered = None
                self.now_words.append(word)
                if word[2]:
                    data = b"".join(bytes(tdata >> 8 * n & 0xFF for n in range(8) if tkeep >> n & 1)
                                    for tdata, tkeep, _, _ in self.now_words)
                    self.got.append((data, word[3]))
                    self.now_words = []
        else:
            assert self.offered is None

    async def run(self, limit=30000):
        wanted = len(self.got) + len(self.queue)
        for _ in range(limit):
            if len(self.got) == wanted and len(self.metas) == wanted:
                break
            self.drive()
            await self.cycles.cycle()
        else:
            raise AssertionError("a payload that never ends")
        for _ in range(10):
            self.drive()
            await self.cycles.cycle()
        assert len(self.got) == wanted and not self.now_words


def some_events(hits=None):
    events, slot = [], 0
    for _ in range(random.choice([0, 1, 2, 6])):
        count = random.choice([0, 1, 2, 3, 7, 8, 9, 40, 255]) if hits is None else hits
        indices = sorted(random.sample(range(1952 if random.random() < 0.8 else count + 20), count))
        events.append((slot, [(index, random.getrandbits(8)) for index in indices]))
        slot += random.choice([1, 2, 128, 129, 16384])
    return events


def broken(data):
    """A container with random damage: bytes changed, cut off, or added."""
    data = bytearray(data)
    kind = random.randrange(4)
    if kind == 0:
        return bytes(data[:random.randrange(len(data))])
    if kind == 1:
        return bytes(data) + random.randbytes(random.randint(1, 20))
    for _ in range(random.randint(1, 3)):
        data[random.randrange(len(data) if kind == 2 else min(len(data), 28))] = random.choice([0, 1, 0x80, 0xFF])
    return bytes(data)


def check(tb, sent):
    for (data, form, bad), (got, user), meta in zip(sent, tb.got, tb.metas):
        if form != 2:
            assert got == data and user == bad and meta >> 128 & 0xFFFF == len(data) and meta >> 167 & 1
            continue
        outcome, expanded = expand(data)
        assert user == (BAD if bad else outcome), f"{user}, not {outcome}: {data.hex()}"
        bound = max(24, 4 * len(data) - 72)
        assert meta >> 128 & 0xFFFF == bound and not meta >> 167 & 1 and len(got) <= bound
        if user == GOOD:
            assert got == expanded
        assert meta & (1 << 128) - 1 == 0x1234567 and meta >> 160 & 0x7F == 5 | 2 << 5


@cocotb.test()
async def the_worked_example_of_the_format_page(dut):
    compressed, expanded = examples()
    assert expand(compressed) == (GOOD, expanded)
    tb = TB(dut)
    await tb.start()
    tb.send(compressed)
    await tb.run()
    assert tb.got == [(expanded, GOOD)]


@cocotb.test()
async def containers_of_all_kinds(dut):
    for idle, stall in ((0, 0), (0.5, 0), (0.2, 0.6)):
        tb = TB(dut)
        await tb.start()
        tb.idle, tb.stall = idle, stall
        sent = []
        for _ in range(20):
            data = container(some_events())
            sent.append(random.choice([(data, 2, False)] * 5 + [(data, 2, True), (random.randbytes(random.choice([0, 1, 8, 61])), 0, False), (data, 1, True)]))
        for one in sent:
            tb.send(*one)
        await tb.run()
        check(tb, sent)


@cocotb.test()
async def what_a_reader_refuses_is_refused(dut):
    """Each row of the page, and random damage: always the result of software, never a container that hangs."""
    good = container([(0, [(5, 1), (1951, 2)]), (9, [])])
    late = container([(0, []), (1, [])], first=(1 << 64) - 1)
    sent = [(data, 2, False) for data in (
        good, b"", good[:23], b"XXRH" + good[4:], good[:4] + b"\2" + good[5:], good[:7] + b"\1" + good[8:],
        good + b"\0", good[:-1], container([(0, [(1952, 0)])]), late, container([(0, [])], first=(1 << 64) - 1),
        good[:14] + b"\2\0" + good[16:24] + b"\0\0\0\0", good[:4] + b"\2" + good[5:20],
        good[:12] + b"\1\0\4\0" + good[16:24] + b"\x80\x80\0\0", good[:12] + b"\1\0\2\0" + good[16:24] + b"\1\0")]
    sent += [(broken(container(some_events())), 2, random.random() < 0.1) for _ in range(80)]
    tb = TB(dut)
    await tb.start()
    tb.idle, tb.stall = 0.1, 0.2
    for one in sent:
        tb.send(*one)
    await tb.run()
    check(tb, sent)
    users = [user for _, user in tb.got]
    assert users[:5] == [GOOD, MALFORMED, MALFORMED, MALFORMED, BAD_VERSION] and users[9] == MALFORMED
    assert users[10] == GOOD and {GOOD, BAD, MALFORMED, BAD_VERSION} == set(users)


@cocotb.test()
async def pass_through_takes_no_longer_than_it_may(dut):
    tb = TB(dut)
    await tb.start()
    tb.send(bytes(range(64)), form=0)
    await tb.run()
    table.check("decompress", tb.latency)
    # And a word in every cycle.
    begun = tb.cycles.number
    for _ in range(8):
        tb.send(bytes(80), form=1)
    await tb.run()
    assert tb.cycles.number - begun <= 8 * 10 + 12


async def cycles_of(dut, data, count=2):
    """For some containers behind each other."""
    tb = TB(dut)
    await tb.start()
    for _ in range(count):
        tb.send(data)
    begun = tb.cycles.number
    await tb.run()
    assert tb.got == count * [(expand(data)[1], GOOD)]
    # run() looks on for 10 cycles.
    return tb.cycles.number - begun - 10


@cocotb.test()
async def containers_of_hits_come_at_the_rate_of_the_wire(dut):
    """Of codes of one byte and of two: no slower than frames follow each other, with 66 B of headers, FCS, preamble
    and gap around each (IEEE 802.3, 4.4.2)."""
    for hits, gap, events in ((15, 130, 29), (32, 3, 21), (90, 20, 5), (255, 1, 2)):
        data = container([(slot, [(index * gap, 7) for index in range(hits)]) for slot in range(events)])
        wire = 4 * (len(data) + 66) * 0.8
        taken = await cycles_of(dut, data) * 4
        assert taken <= wire, f"{hits} hits: {taken} of {wire:.0f} ns"


@cocotb.test()
async def events_without_hits_come_a_word_in_each_cycle(dut):
    data = container([(slot, []) for slot in range(300)])
    words = len(expand(data)[1]) // 8
    assert await cycles_of(dut, data, 1) <= words + 12
