"""plx_event_writer: records arrive whole, once, in order, with the phase of their pass; no unread record is overwritten."""

import random

import cocotb

import cycles as table
from core import Cycles, joined, part

PARAMETERS = [{"SOURCES": 4, "EVENT_QUEUES": 8}, {"SOURCES": 2, "EVENT_QUEUES": 1}]

STAMP, PHASE = 52 * 8, 511


class TB:
    """Sources that observe `room`, host memory, and consumers."""

    def __init__(self, dut):
        self.dut, self.cycles = dut, Cycles(dut)
        self.sources, self.queues = int(dut.SOURCES.value), int(dut.EVENT_QUEUES.value)
        self.cycles.watchers.append(self.look)
        self.waiting = [[] for _ in range(self.sources)]
        self.offered = [None] * self.sources
        # Host memory by address; writes in flight.
        self.memory, self.descriptor, self.words, self.taken_at = {}, None, [], None
        self.base, self.log2 = {}, {}
        self.read, self.released = [0] * self.queues, [0] * self.queues
        self.got = [[] for _ in range(self.queues)]
        self.stall = self.idle = 0.0
        self.discarded, self.granted_at, self.latency = 0, None, set()
        for name in ("now_stamp", "cfg_queue_base", "cfg_queue_ctrl_enable", "cfg_queue_ctrl_log2_size",
                     "cfg_queue_released", "s_event_valid", "s_event_queue", "s_event_record", "m_desc_ready",
                     "m_data_tready", "m_taken", "s_event_func", "cfg_queue_owner"):
            getattr(dut, name).value = 0

    async def start(self, log2):
        await self.cycles.start()
        for queue in range(self.queues):
            self.base[queue], self.log2[queue] = 0x7_0000_0000 * (queue + 1) + 0x40 * queue, log2 + queue % 2
        self.dut.cfg_queue_base.value = joined(self.base.values(), 64)
        self.dut.cfg_queue_ctrl_log2_size.value = joined(self.log2.values(), 5)
        self.dut.cfg_queue_ctrl_enable.value = (1 << self.queues) - 1
        await self.step()

    async def step(self, patient=True):
        """One cycle; sources offer only where there is room, unless they are not patient."""
        dut, room = self.dut, int(self.dut.room.value)
        for source, waiting in enumerate(self.waiting):
            if self.offered[source] is None and waiting and random.random() >= self.idle:
                if not patient or room >> waiting[0][0] & 1:
                    self.offered[source] = waiting.pop(0)
        heads = [offer or (0, 0) for offer in self.offered]
        dut.s_event_valid.value = joined([offer is not None for offer in self.offered], 1)
        dut.s_event_queue.value = joined([head[0] for head in heads], 3)
        dut.s_event_record.value = joined([head[1] for head in heads], 512)
        dut.now_stamp.value = self.cycles.number
        # Data are taken behind their descriptor, as a multiplexer does it.
        ready = random.random() >= self.stall
        dut.m_desc_ready.value = ready and self.descriptor is None
        dut.m_data_tready.value = ready
        dut.m_taken.value = self.taken_at is not None
        if self.taken_at is not None:
            self.taken_at = None
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        ready = int(dut.s_event_ready.value)
        assert ready & (ready - 1) == 0, "two at once"
        if int(dut.m_desc_valid.value) and self.granted_at is not None:
            self.latency.add(self.cycles.number - self.granted_at)
            self.granted_at = None
        if int(dut.m_desc_valid.value) and int(dut.m_desc_ready.value):
            assert int(dut.m_desc_length.value) == 64
            self.descriptor = int(dut.m_desc_address.value)
        if int(dut.m_data_tvalid.value) and int(dut.m_data_tready.value):
            assert self.descriptor is not None, "data before their descriptor"
            self.words.append(int(dut.m_data_tdata.value))
            assert int(dut.m_data_tlast.value) == (len(self.words) == 2)
            if len(self.words) == 1:
                self.stamp = int(dut.now_stamp.value)
            else:
                self.write()
        self.discarded += int(dut.inc_discarded.value)
        for source in range(self.sources):
            if ready >> source & 1:
                assert self.offered[source] is not None
                self.offered[source] = None
                if not int(dut.inc_discarded.value):
                    self.granted_at = self.cycles.number

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

    def consume(self, queue, most=64):
        found = self.unread(queue)[:most]
        self.got[queue] += [record & ~(0xFFFFFFFF << STAMP) & ~(1 << PHASE) for record in found]
        self.read[queue] += len(found)
        self.released[queue] = self.read[queue]
        self.dut.cfg_queue_released.value = joined(self.released, 32)


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
            tb.consume(random.randrange(tb.queues), random.randrange(1, 9))
    for _ in range(20):
        await tb.step()
    for queue in range(tb.queues):
        tb.consume(queue)
        for source in range(tb.sources):
            mine = [record for record in tb.got[queue] if record >> 496 & 0xFF == source]
            assert mine == sent.get((source, queue), []), "lost, doubled or out of order"
        assert part(dut.sts_queue_produced, queue, 32) == len(tb.got[queue])
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
    tb.consume(0)
    tb.released[0] = 1000
    dut.cfg_queue_released.value = joined(tb.released, 32)
    await tb.step()
    assert int(dut.room.value) & 1 == 0
    tb.consume(0)
    await tb.step()
    assert int(dut.room.value) & 1 == 1


@cocotb.test()
async def latency_and_fairness(dut):
    """To the host bus in the next cycle; sources take turns."""
    tb = TB(dut)
    await tb.start(8)
    for source in range(tb.sources):
        tb.waiting[source] = [event(source, number, 0) for number in range(10)]
    for _ in range(60 * tb.sources):
        await tb.step()
    tb.consume(0)
    order = [record >> 496 & 0xFF for record in tb.got[0]]
    assert order == list(range(tb.sources)) * 10
    assert len(tb.latency) == 1
    table.check("event_write", tb.latency.pop())


@cocotb.test()
async def a_queue_begins_anew(dut):
    tb = TB(dut)
    await tb.start(4)
    tb.waiting[0] = [event(0, number, 0) for number in range(3)]
    for _ in range(40):
        await tb.step()
    dut.cfg_queue_ctrl_enable.value = (1 << tb.queues) - 2
    await tb.step()
    assert part(dut.sts_queue_produced, 0, 32) == 0 and int(dut.room.value) & 1 == 0
    dut.cfg_queue_ctrl_enable.value = (1 << tb.queues) - 1
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
    dut.cfg_queue_owner.value = joined([3] * tb.queues, 3)
    for func in (0, 2, 3, 7):
        dut.s_event_func.value = joined([func] * tb.sources, 3)
        tb.waiting[0] = [event(0, func, 0)]
        for _ in range(20):
            if int(dut.m_desc_valid.value):
                assert int(dut.m_desc_func.value) == 3
            await tb.step()
    assert [record >> 448 & 0xFF for record in tb.memory.values()] == [3] and tb.discarded == 3
