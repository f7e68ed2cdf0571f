"""plx_event_writer: records arrive whole, once, in order, with the phase of their pass; no unread record is overwritten."""

import random

import cocotb

import cycles as table
from core import Cycles, joined

PARAMETERS = [{"SOURCES": 4, "EVENT_QUEUES": 8, "ASKERS": 4}, {"SOURCES": 2, "EVENT_QUEUES": 1, "ASKERS": 2},
              {"SOURCES": 2, "EVENT_QUEUES": 256, "ASKERS": 2}]

# Words of a queue.
CTRL, RELEASED, PRODUCED, COUNT, HOLD, ARM = 8, 12, 16, 20, 24, 28

STAMP, PHASE = 52 * 8, 511


class TB:
    """Sources that observe `room`, host memory, and consumers."""

    def __init__(self, dut):
        self.dut, self.cycles = dut, Cycles(dut)
        self.sources, self.queues = int(dut.SOURCES.value), min(int(dut.EVENT_QUEUES.value), 8)
        self.cycles.watchers.append(self.look)
        self.waiting = [[] for _ in range(self.sources)]
        self.offered = [None] * self.sources
        # Host memory by address; writes in flight.
        self.memory, self.descriptor, self.words, self.taken_at = {}, None, [], None
        self.base, self.log2 = {}, {}
        self.read, self.released = [0] * self.queues, [0] * self.queues
        self.got = [[] for _ in range(self.queues)]
        self.stall = self.idle = 0.0
        self.asked, self.held = [0] * self.sources, False
        self.discarded, self.offered_at, self.latency = 0, None, set()
        self.owner, self.released_by, self.irqs, self.access, self.answer = 0, [], [], None, None
        for name in ("now_cycle_ts", "win_valid", "win_write", "win_addr", "win_wdata", "win_wstrb", "s_event_valid",
                     "s_event_queue", "s_event_record", "m_desc_ready", "m_data_tready", "m_accepted", "s_event_func",
                     "s_owner", "s_room_queue", "resetting"):
            getattr(dut, name).value = 0

    async def start(self, log2):
        await self.cycles.start()
        for queue in range(self.queues):
            self.base[queue], self.log2[queue] = 0x7_0000_0000 * (queue + 1) + 0x40 * queue, log2 + queue % 2
            await self.put(queue, 0, self.base[queue] & 0xFFFFFFFF)
            await self.put(queue, 4, self.base[queue] >> 32)
            await self.enable(queue)

    async def put(self, queue, word, value, strobe=15):
        self.dut.win_valid.value, self.dut.win_write.value, self.dut.win_wstrb.value = 1, 1, strobe
        self.dut.win_addr.value, self.dut.win_wdata.value = 64 * queue + word, value
        self.answer = None
        while self.answer is None:
            await self.step()
        self.dut.win_valid.value = 0

    async def get(self, queue, word):
        self.dut.win_valid.value, self.dut.win_write.value = 1, 0
        self.dut.win_addr.value = 64 * queue + word
        self.answer = None
        while self.answer is None:
            await self.step()
        self.dut.win_valid.value = 0
        return self.answer

    async def enable(self, queue, on=1):
        await self.put(queue, CTRL, self.log2[queue] << 8 | on)

    async def has_room(self, queue):
        """As the last asker sees it, a source that sends nothing."""
        self.waiting[-1] = [(queue, 0)]
        self.held = True
        await self.step()
        await self.step()
        self.waiting[-1], self.held = [], False
        return int(self.dut.m_room.value) >> self.sources - 1 & 1

    async def step(self, patient=True):
        """One cycle; sources offer only where there is room, unless they are not patient."""
        dut, room = self.dut, int(self.dut.m_room.value) if self.dut.m_room.value.is_resolvable else 0
        for source, waiting in enumerate(self.waiting):
            if self.offered[source] is None and waiting and random.random() >= self.idle:
                # What it asked in the cycle before; its last event has been accepted.
                if not self.held and (not patient or room >> source & 1 and self.asked[source] == waiting[0][0]):
                    self.offered[source], self.offered_at = waiting.pop(0), self.cycles.number
        heads = [offer or (0, 0) for offer in self.offered]
        dut.s_event_valid.value = joined([offer is not None for offer in self.offered], 1)
        dut.s_event_queue.value = joined([head[0] for head in heads], 8)
        self.asked = [(waiting or [(0, 0)])[0][0] for waiting in self.waiting]
        dut.s_room_queue.value = joined(self.asked, 8)
        dut.s_event_record.value = joined([head[1] for head in heads], 512)
        dut.now_cycle_ts.value = self.cycles.number
        # Data are taken behind their descriptor, as a multiplexer does it.
        ready = random.random() >= self.stall
        dut.m_desc_ready.value = ready and self.descriptor is None
        dut.m_data_tready.value = ready
        dut.m_accepted.value = self.taken_at is not None
        if self.taken_at is not None:
            self.taken_at = None
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        ready = int(dut.s_event_ready.value)
        assert ready & (ready - 1) == 0, "two at once"
        if int(dut.win_valid.value) and int(dut.win_ready.value):
            self.answer = int(dut.win_rdata.value) if dut.win_rdata.value.is_resolvable else 0
        if int(dut.m_irq_valid.value):
            self.irqs.append((int(dut.m_irq_queue.value), self.cycles.number))
        if int(dut.m_desc_valid.value) and self.offered_at is not None:
            self.latency.add(self.cycles.number - self.offered_at)
            self.offered_at = None
        if int(dut.m_desc_valid.value) and int(dut.m_desc_ready.value):
            assert int(dut.m_desc_length.value) == 64
            self.descriptor = int(dut.m_desc_address.value)
        if int(dut.m_data_tvalid.value) and int(dut.m_data_tready.value):
            assert self.descriptor is not None, "data before their descriptor"
            self.words.append(int(dut.m_data_tdata.value))
            assert int(dut.m_data_tlast.value) == (len(self.words) == 2)
            if len(self.words) == 1:
                self.stamp = int(dut.now_cycle_ts.value)
            else:
                self.write()
        self.discarded += int(dut.inc_discarded.value)
        for source in range(self.sources):
            if ready >> source & 1:
                assert self.offered[source] is not None
                self.offered[source] = None

    def write(self):
        record = self.words[0] | self.words[1] << 256
        queue = [queue for queue in self.base if 0 <= self.descriptor - self.base[queue] < 64 << self.log2[queue]]
        assert len(queue) == 1, f"outside of the queues: {self.descriptor:#x}"
        queue, = queue
        place = (self.descriptor - self.base[queue]) // 64
        unread = range(self.released[queue], self.read[queue] + len(self.unread(queue)))
        assert all(number % (1 << self.log2[queue]) != place for number in unread), "overwritten"
        assert record >> STAMP & 0xFFFFFFFF == self.stamp
        self.memory[self.descriptor] = record
        self.descriptor, self.words, self.taken_at = None, [], self.cycles.number

    def unread(self, queue):
        """Records that a consumer finds by their phase."""
        found, number = [], self.read[queue]
        while len(found) < 1 << self.log2[queue]:
            place = number % (1 << self.log2[queue])
            record = self.memory.get(self.base[queue] + 64 * place, 0)
            if record >> PHASE != 1 - (number >> self.log2[queue] & 1):
                break
            found.append(record)
            number += 1
        return found

    async def consume(self, queue, most=64):
        found = self.unread(queue)[:most]
        self.got[queue] += [record & ~(0xFFFFFFFF << STAMP) & ~(1 << PHASE) for record in found]
        self.read[queue] += len(found)
        self.released[queue] = self.read[queue]
        await self.put(queue, RELEASED, self.released[queue])


def event(source, number, queue):
    return queue, random.getrandbits(400) << 8 & ~(0xFFFFFFFF << STAMP) | source << 496 | number << 448


@cocotb.test()
async def all_records_in_order_through_many_passes(dut):
    tb = TB(dut)
    await tb.start(3)
    tb.idle, tb.stall = 0.2, 0.4
    sent = {}
    for source in range(tb.sources):
        for number in range(60):
            queue, record = event(source, number, random.randrange(min(tb.queues, 3)))
            tb.waiting[source].append((queue, record))
            sent.setdefault((source, queue), []).append(record)
    for _ in range(6000):
        if not any(tb.waiting) and not any(tb.offered):
            break
        await tb.step()
        if random.random() < 0.1:
            await tb.consume(random.randrange(tb.queues), random.randrange(1, 9))
    for _ in range(20):
        await tb.step()
    for queue in range(tb.queues):
        await tb.consume(queue)
        for source in range(tb.sources):
            mine = [record for record in tb.got[queue] if record >> 496 & 0xFF == source]
            assert mine == sent.get((source, queue), []), "lost, doubled or out of order"
        assert await tb.get(queue, PRODUCED) == len(tb.got[queue])
    assert sum(map(len, tb.got)) == 60 * tb.sources and tb.discarded == 0


@cocotb.test()
async def a_queue_that_is_not_read_fills_up_and_no_further(dut):
    """`room` ends while ROOM records are free; a source that ignores it loses records that do not fit."""
    tb = TB(dut)
    await tb.start(4)
    tb.waiting[0] = [event(0, number, 0) for number in range(40)]
    for _ in range(200):
        await tb.step()
    assert len(tb.unread(0)) == 16 - int(dut.ROOM.value) + 1 and tb.discarded == 0
    for _ in range(300):
        await tb.step(patient=False)
    assert len(tb.unread(0)) == 16 and tb.discarded == 40 - 16
    # A consumer with an impossible released number gets no record, until it writes a possible one.
    await tb.consume(0)
    await tb.put(0, RELEASED, 1000)
    assert not await tb.has_room(0)
    await tb.put(0, RELEASED, 17 << 8, strobe=2)
    assert await tb.get(0, RELEASED) == 17 << 8 | 1000 & 0xFF
    await tb.consume(0)
    assert await tb.has_room(0)


@cocotb.test()
async def latency_and_fairness(dut):
    """Sources take turns."""
    tb = TB(dut)
    await tb.start(8)
    for source in range(tb.sources):
        tb.waiting[source] = [event(source, number, 0) for number in range(10)]
    for _ in range(120 * tb.sources):
        await tb.step()
    await tb.consume(0)
    order = [record >> 496 & 0xFF for record in tb.got[0]]
    assert order == list(range(tb.sources)) * 10
    tb.latency.clear()
    for _ in range(20):
        tb.waiting[0] = [event(0, 7, 0)]
        for _ in range(random.randrange(20, 30)):
            await tb.step()
    # Two more where it meets the look at its queue.
    assert max(tb.latency) <= min(tb.latency) + 2
    table.check("event_write", min(tb.latency))


@cocotb.test()
async def a_queue_begins_anew(dut):
    tb = TB(dut)
    await tb.start(4)
    tb.waiting[0] = [event(0, number, 0) for number in range(3)]
    for _ in range(40):
        await tb.step()
    assert await tb.get(0, PRODUCED) == 3
    await tb.enable(0, 0)
    assert await tb.get(0, PRODUCED) == 0 and not await tb.has_room(0)
    await tb.put(0, RELEASED, 3)
    await tb.enable(0)
    assert await tb.get(0, RELEASED) == 0 and await tb.has_room(0)
    tb.memory.clear()
    tb.waiting[0] = [event(0, 7, 0)]
    for _ in range(20):
        await tb.step()
    assert len(tb.unread(0)) == 1 and tb.memory[tb.base[0]] >> 448 & 0xFF == 7


@cocotb.test()
async def a_record_of_another_function_is_discarded(dut):
    """A queue takes the records of its owner only, and they are written as the owner."""
    tb = TB(dut)
    await tb.start(4)
    dut.s_owner.value = 3
    for func in (0, 2, 3, 7):
        dut.s_event_func.value = joined([func] * tb.sources, 3)
        tb.waiting[0] = [event(0, func, 0)]
        for _ in range(20):
            if int(dut.m_desc_valid.value):
                assert int(dut.m_desc_func.value) == 3
            await tb.step()
    assert [record >> 448 & 0xFF for record in tb.memory.values()] == [3] and tb.discarded == 3


@cocotb.test()
async def a_queue_at_a_misaligned_address_takes_nothing(dut):
    """The queue has no room and says so; a record that comes in spite of that is discarded, also one that is granted
    while the address is written."""
    tb = TB(dut)
    await tb.start(4)
    low, control = tb.base[0] & 0xFFFFFFFF, tb.log2[0] << 8 | 1
    for off in (1, 2, 4, 8, 16, 32, 63):
        # One byte of it, while the queue is enabled.
        await tb.put(0, 0, low + off, strobe=1)
        assert await tb.get(0, CTRL) == control | 2 and not await tb.has_room(0)
        tb.waiting[0], discarded = [event(0, off, 0)], tb.discarded
        for _ in range(20):
            await tb.step(patient=False)
        assert tb.discarded == discarded + 1 and not tb.memory and await tb.get(0, PRODUCED) == 0
        await tb.put(0, 0, low)
        assert await tb.get(0, CTRL) == control and await tb.has_room(0)
    # In every distance from a record.
    for wait in range(12):
        tb.waiting[0], discarded, produced = [event(0, wait, 0)], tb.discarded, await tb.get(0, PRODUCED)
        for _ in range(wait):
            await tb.step()
        await tb.put(0, 0, low + 32)
        for _ in range(20):
            await tb.step(patient=False)
        await tb.put(0, 0, low)
        assert tb.discarded - discarded + await tb.get(0, PRODUCED) - produced == 1
        await tb.consume(0)
    assert 7 < tb.discarded < 7 + 12 and len(tb.got[0]) == 7 + 12 - tb.discarded


@cocotb.test()
async def a_queue_that_the_card_has_not_takes_nothing(dut):
    tb = TB(dut)
    await tb.start(4)
    most = int(dut.EVENT_QUEUES.value)
    for queue in [] if most == 256 else [most, 255]:
        await tb.put(queue, CTRL, 4 << 8 | 1)
        assert await tb.get(queue, CTRL) == 0 and not await tb.has_room(queue)
        tb.waiting[0] = [event(0, 7, queue)]
        for _ in range(20):
            await tb.step(patient=False)
    assert tb.discarded == (0 if most == 256 else 2) and not tb.memory


@cocotb.test()
async def queues_keep_their_words(dut):
    """All rows are 0 after the reset; each keeps what it was given."""
    tb = TB(dut)
    await tb.cycles.start()
    most, words = int(dut.EVENT_QUEUES.value), {}
    for queue in {0, most // 2, most - 1}:
        for word in (0, 4, 12, 20, 24, 28):
            assert await tb.get(queue, word) == 0
            words[queue, word] = random.getrandbits(16 if word == COUNT else 32)
            await tb.put(queue, word, words[queue, word])
    for (queue, word), value in words.items():
        assert await tb.get(queue, word) == value
    dut.rst.value = 1
    await tb.step()
    dut.rst.value = 0
    for queue, word in words:
        assert await tb.get(queue, word) == 0


async def armed(dut, count, hold):
    tb = TB(dut)
    await tb.start(6)
    await tb.put(0, COUNT, count)
    await tb.put(0, HOLD, hold)
    return tb


async def produce(tb, records, cycles=14):
    tb.waiting[0] = [event(0, number, 0) for number in range(records)]
    for _ in range(cycles * records):
        await tb.step()


@cocotb.test()
async def an_interrupt_by_count_or_by_time_once_for_each_arming(dut):
    tb = await armed(dut, 3, 900)
    await produce(tb, 2)
    assert not tb.irqs, "not armed"
    await tb.put(0, ARM, 2)
    await produce(tb, 2)
    assert not tb.irqs
    await produce(tb, 1)
    assert [queue for queue, _ in tb.irqs] == [0], "three records"
    await produce(tb, 9)
    for _ in range(1500):
        await tb.step()
    assert len(tb.irqs) == 1, "once"
    await tb.put(0, ARM, 14)
    begun = tb.cycles.number
    await produce(tb, 1)
    for _ in range(1500):
        await tb.step()
    assert len(tb.irqs) == 2 and 900 <= tb.irqs[1][1] - begun <= 900 + 290, "a record that waits alone"
    await tb.put(0, HOLD, 0)
    await tb.put(0, ARM, 15)
    begun = tb.cycles.number
    await produce(tb, 1)
    assert len(tb.irqs) == 3 and tb.irqs[2][1] - begun < 16, "at once"


@cocotb.test()
async def an_event_between_the_last_look_and_the_arming_is_not_slept_over(dut):
    tb = await armed(dut, 8, 100000)
    await produce(tb, 5)
    await tb.put(0, ARM, 4)
    await tb.step()
    assert len(tb.irqs) == 1
    await tb.put(0, ARM, 5)
    for _ in range(600):
        await tb.step()
    assert len(tb.irqs) == 1, "nothing new"
    await tb.enable(0, 0)
    await tb.enable(0)
    tb.memory.clear()
    await produce(tb, 9)
    for _ in range(600):
        await tb.step()
    assert len(tb.irqs) == 1, "switched off"


@cocotb.test()
async def software_and_records_of_one_queue_do_not_miss_each_other(dut):
    """Words are written while records of the same queues come, in every distance."""
    tb = TB(dut)
    await tb.start(5)
    tb.idle, sent, counts = 0.3, 0, {}
    for source in range(tb.sources):
        tb.waiting[source] = [event(source, number, random.randrange(min(tb.queues, 2))) for number in range(40)]
        sent += 40
    for _ in range(4000):
        queue = random.randrange(min(tb.queues, 2))
        if random.random() < 0.5:
            await tb.consume(queue, random.randrange(1, 9))
            counts[queue] = random.getrandbits(16)
            await tb.put(queue, COUNT, counts[queue])
        elif queue in counts:
            assert await tb.get(queue, COUNT) == counts[queue]
            assert await tb.get(queue, RELEASED) == tb.released[queue]
        if not any(tb.waiting) and not any(tb.offered) and sum(map(len, tb.got)) == sent:
            break
    assert sum(map(len, tb.got)) == sent and tb.discarded == 0


@cocotb.test()
async def places_rest_one_after_the_other_although_events_never_end(dut):
    """What was granted before has been written by then; so a reset of a function waits for no events of others."""
    tb = TB(dut)
    await tb.start(6)
    granted, written, spans, place, begun, owed = 0, [], [], 3, 0, 0
    whole = tb.write
    tb.write = lambda: (whole(), written.append(tb.cycles.number))

    def look():
        nonlocal granted, place, begun, owed
        for source in range(tb.sources):
            tb.waiting[source] = tb.waiting[source] or [event(source, tb.cycles.number % 256, 0)]
        granted += int(dut.s_event_ready.value).bit_count()
        if place == 3:
            place, begun, owed = 0, tb.cycles.number, granted + int(dut.held.value)
        place += int(dut.rest.value) >> place & 1
        if place == 3:
            spans.append(tb.cycles.number - begun)
            assert len(written) + tb.discarded >= owed

    tb.cycles.watchers.append(look)
    for tb.stall in (0.0, 0.5):
        for _ in range(20):
            for _ in range(15):
                await tb.step()
            await tb.consume(0)
    assert len(spans) > 20 and max(spans) < 100, spans
    assert tb.discarded == 0 and len(written) > 60


@cocotb.test()
async def the_first_place_is_not_at_rest_while_a_source_offers_a_record_of_a_function_in_reset(dut):
    """It has no grant yet; the records of others that go before it, and come after it, do not count."""
    tb = TB(dut)
    await tb.start(6)
    last, funcs = tb.sources - 1, [1] * (tb.sources - 1) + [6]
    dut.s_event_func.value, seen = joined(funcs, 3), []

    def look():
        rest, offered = int(dut.rest.value) & 1, tb.offered[last] is not None
        # It begins to be offered in this cycle, or not; or it has just been written.
        seen.append((rest, offered))

    tb.cycles.watchers.append(look)
    for resetting, held in ((1 << 6, True), (0, False), (1 << 5, False)):
        for tb.stall in (0.0, 0.7):
            dut.resetting.value, quiet = resetting, 0
            for _ in range(12):
                for source in range(last):
                    tb.waiting[source] = [event(source, number, 0) for number in range(3)]
                for _ in range(random.randrange(12)):
                    await tb.step(patient=False)
                seen.clear()
                tb.waiting[last] = [event(last, 1, 0)]
                while tb.waiting[last] or tb.offered[last]:
                    await tb.step(patient=False)
                # Known a cycle later.
                quiet += sum(rest for rest, offered in seen[1:] if offered)
                await tb.step()
                for _ in range(60):
                    await tb.step(patient=False)
                assert any(rest for rest, _ in seen)
                await tb.consume(0)
            assert (quiet == 0) == held, f"{quiet} with {resetting:#x}"
