"""plx_tx_ring: posted descriptors are issued once and in order, completion is reported, an error stops one ring only."""

import random

import cocotb

from core import Cycles, joined, part
from descriptors import (BAD, EVENT, FAILED, FIRST, INLINE, LAST, SENT, STOPPED, UNRESOLVED, Descriptor, inline,
                         pieces, slots)

PARAMETERS = [{"PORTS": 4}, {"PORTS": 1, "DESCRIPTORS": 8}]

M32 = (1 << 32) - 1


class Ring:
    """One ring: its memory, software that posts, a plx_tx_read that reports completion, and the required events."""

    def __init__(self, tb, number, log2):
        self.tb, self.number, self.size = tb, number, 1 << log2
        self.inline = 0.0
        self.base, self.log2, self.queue = (number + 1) << 33 | 0x40, log2, number % tb.queues
        self.enable, self.failing, self.lazy, self.pulse, self.early = 0, False, 0.3, False, None
        self.begin()

    def begin(self):
        """State of the ring after it has been enabled."""
        self.memory, self.posted, self.asked, self.handed, self.done = {}, 0, 0, 0, 0
        self.packets, self.bytes, self.serial, self.cookie, self.open, self.ready = 0, 0, 0, 0, False, 0
        # Open descriptors of plx_tx_read; its present report; expected events.
        # `losses`: to be reported, by number and cookie.
        self.losses = []
        # The last descriptor that was issued, and slots with data behind it.
        self.owner, self.left = None, 0
        self.under_way, self.says, self.events, self.rings, self.ended = [], None, [], [], []

    def post(self, descriptors):
        for descriptor in descriptors:
            assert self.posted - self.done < self.size, "the bench posts too many"
            self.memory[self.posted] = descriptor
            self.posted += 1
        self.pulse = True
        self.rings.append(self.tb.cycles.number)

    def packet(self, pieces=1, event=True):
        if pieces == 1 and random.random() < self.inline:
            made = inline(random.randbytes(random.choice((1, 32, 33, 64))), EVENT * event, cookie=random.getrandbits(32))
            made[0].total = random.randrange(9000)
            return made
        made = [Descriptor(random.getrandbits(64), 5, 0, random.randrange(9000), cookie=random.getrandbits(32))
                for _ in range(pieces)]
        made[0].flags |= FIRST
        made[-1].flags |= LAST | EVENT * event
        return made

    def space(self):
        return self.size - (self.posted - self.done)

    def says_next(self):
        """Report of plx_tx_read in this cycle: (done, end, status, length)."""
        self.says = None
        if self.under_way and self.under_way[0][0] <= self.tb.cycles.number and random.random() >= self.lazy:
            self.says = self.under_way.pop(0)[1:]
        return self.says[1:] if self.says else (0, 0, 0, 0)

    def takes(self, word, is_data, ends):
        """A descriptor was issued, or a slot with data."""
        expected = self.memory[self.handed]
        (plain, _, _), = pieces([expected])
        assert word == plain and is_data == (self.left > 0), "not what was posted"
        if not is_data:
            self.owner = expected
        self.left = self.left - 1 if is_data else slots(expected)
        assert ends == (self.left == 0 and (is_data or bool(expected.flags & (LAST | INLINE))))
        if expected.flags & FIRST and self.open:
            self.later(None, 0, 1, BAD, 77)
        self.handed += 1
        self.open = not ends
        status = random.choices((SENT, BAD, FAILED), (8, 1, 1))[0] if not self.open else SENT
        self.later(self.owner, 1, not self.open, status, self.owner.total)

    def later(self, *what):
        """It ends after some cycles, after the earlier ones."""
        due = max([self.tb.cycles.number + random.randrange(1, 12), *(entry[0] for entry in self.under_way[-1:])])
        self.under_way.append((due, *what))

    def account(self):
        """Records the report of plx_tx_read."""
        if self.says is None:
            return
        descriptor, done, end, status, length = self.says
        self.done += done
        if descriptor:
            self.cookie = descriptor.cookie
        if end:
            self.packets += 1
            self.bytes += length if status == SENT else 0
            self.ended.append(status)
            if status != SENT or done and descriptor.flags & EVENT and descriptor.flags & LAST:
                self.tells(status, length)

    def loses(self):
        """A report of lost packets was accepted."""
        count, cookie = self.losses.pop(0)
        self.events.append((self.done, 0, count, UNRESOLVED, cookie, 0))

    def tells(self, status, length):
        self.events.append((self.done, length, self.packets, status, self.cookie, self.bytes))
        self.packets = self.bytes = 0

    def check(self, record, queue):
        bits = lambda at, width=32: record >> at & ((1 << width) - 1)  # noqa: E731
        assert bits(480, 16) == self.number and bits(496, 8) == 2 and queue == self.queue
        assert self.events, "an unexpected event"
        expected = self.events.pop(0)
        assert (bits(64), bits(96), bits(128), bits(160), bits(192), bits(256, 64)) == expected, expected
        assert bits(448) == self.serial and bits(504, 8) == 0
        self.serial += 1
        rang, fetched, read = bits(320), bits(352), bits(384)
        if expected[3] not in (STOPPED, UNRESOLVED):
            assert rang <= fetched < read and rang in self.rings
        assert bits(416) == 0


class TB:
    def __init__(self, dut):
        self.dut, self.cycles = dut, Cycles(dut)
        self.ports, self.places, self.queues = int(dut.PORTS.value), int(dut.DESCRIPTORS.value), 8
        self.rings = [Ring(self, number, 5) for number in range(self.ports)]
        self.cycles.watchers.append(self.look)
        # Words of responses, in order: (cycle, ring, word, last, bad).
        self.answers, self.requests, self.stall, self.delay, self.room = [], [], 0.2, 20, (1 << self.queues) - 1
        self.losing = 0.0
        self.events, self.counts = 0, [[0] * 4 for _ in range(self.ports)]
        for name in ("now_cycle_ts", "m_desc_ready", "s_data_tvalid", "s_data_tdata", "s_data_tlast", "s_data_tuser",
                     "s_data_tag", "m_tx_segment_ready", "s_done_valid", "s_done_end", "s_done_status", "s_done_length",
                     "s_room", "forget", "m_event_ready", "wr_ring_producer", "cfg_ring_producer", "cfg_ring_ctrl_enable"):
            getattr(dut, name).value = 0
        dut.s_read_idle.value = dut.s_fifo_idle.value = (1 << self.ports) - 1

    async def start(self):
        dut = self.dut
        dut.cfg_ring_base.value = joined([ring.base for ring in self.rings], 64)
        dut.cfg_ring_ctrl_log2_size.value = joined([ring.log2 for ring in self.rings], 5)
        dut.cfg_ring_ctrl_queue.value = joined([ring.queue for ring in self.rings], 8)
        await self.cycles.start()
        for ring in self.rings:
            ring.enable = 1
        await self.step()

    async def step(self):
        dut = self.dut
        dut.now_cycle_ts.value = self.cycles.number
        dut.cfg_ring_ctrl_enable.value = joined([ring.enable for ring in self.rings], 1)
        dut.cfg_ring_producer.value = joined([(len(ring.early) if ring.early else ring.posted) & M32
                                              for ring in self.rings], 32)
        dut.wr_ring_producer.value = joined([ring.pulse for ring in self.rings], 1)
        for ring in self.rings:
            ring.pulse = False
        dut.m_desc_ready.value = random.random() >= self.stall
        self.word = self.answers[0] if self.answers and self.answers[0][0] <= self.cycles.number else None
        dut.s_data_tvalid.value = self.word is not None
        if self.word:
            _, ring, data, last, bad = self.word
            dut.s_data_tag.value, dut.s_data_tdata.value = ring, data
            dut.s_data_tlast.value, dut.s_data_tuser.value = last, bad
        for ring in self.rings:
            # An open packet ends with the flush.
            if ring.open and not ring.under_way and part(dut.m_tx_segment_flush, ring.number, 1):
                ring.open = False
                ring.later(None, 0, 1, BAD, 77)
            ring.ready = random.random() >= ring.lazy
        dut.m_tx_segment_ready.value = joined([ring.ready for ring in self.rings], 1)
        says = [ring.says_next() for ring in self.rings]
        for index, (name, width) in enumerate((("valid", 1), ("end", 1), ("status", 2), ("length", 16))):
            getattr(dut, f"s_done_{name}").value = joined([int(said[index]) for said in says], width)
        dut.s_read_idle.value = joined([not ring.under_way and not ring.open and not ring.says
                                        for ring in self.rings], 1)
        for ring in self.rings:
            if self.losing and random.random() < self.losing and len(ring.losses) < 3:
                ring.losses.append((random.randrange(1, 1 << 16), random.getrandbits(32)))
        offers = [ring.losses[0] if ring.losses else (0, 0) for ring in self.rings]
        dut.s_lost_valid.value = joined([bool(ring.losses) for ring in self.rings], 1)
        dut.s_lost_count.value = joined([count for count, _ in offers], 16)
        dut.s_lost_cookie.value = joined([cookie for _, cookie in offers], 32)
        dut.s_room.value = joined([self.room >> ring.queue & 1 for ring in self.rings], 1)
        dut.m_event_ready.value = random.random() >= self.stall
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        if self.word:
            assert int(dut.s_data_tready.value), "an answer is held up"
            self.answers.pop(0)
        if int(dut.m_desc_valid.value) and int(dut.m_desc_ready.value):
            self.ask(int(dut.m_desc_tag.value), int(dut.m_desc_address.value), int(dut.m_desc_length.value))
        for ring in self.rings:
            ring.account()
            if ring.losses and part(dut.s_lost_ready, ring.number, 1):
                ring.loses()
            if part(dut.m_tx_segment_valid, ring.number, 1) and ring.ready:
                ring.takes(part(dut.m_tx_segment, ring.number, 256), part(dut.m_tx_segment_data, ring.number, 1),
                           part(dut.m_tx_segment_ends, ring.number, 1))
            for index, (name, width) in enumerate((("packets", 1), ("bytes", 14), ("bad", 1), ("read_failed", 1))):
                self.counts[ring.number][index] += part(getattr(dut, f"inc_{name}"), ring.number, width)
        if int(dut.m_event_valid.value) and int(dut.m_event_ready.value):
            record = int(dut.m_event_record.value)
            self.rings[record >> 480 & 0xFFFF].check(record, int(dut.m_event_queue.value))
            self.events += 1

    def ask(self, number, address, length):
        ring = self.rings[number]
        if ring.early:
            assert ring.asked == ring.done and not ring.open and not ring.events, "too early"
            descriptors, ring.early = ring.early, None
            ring.begin()
            ring.post(descriptors)
            ring.pulse, ring.rings = False, [self.cycles.number - late for late in range(400)]
        count = length // 32
        assert length == 32 * count and 1 <= count <= 8
        assert address == ring.base + ring.asked % ring.size * 32 and ring.asked % ring.size + count <= ring.size
        assert ring.asked + count <= ring.posted, "more than were posted"
        assert ring.asked + count - ring.done <= self.places, "no place for them"
        self.requests.append((number, count))
        good = random.randrange(count) if ring.failing else count
        due = self.cycles.number + random.randrange(1, self.delay)
        for index in range(min(good + 1, count)):
            data = int.from_bytes(ring.memory[ring.asked + index].bytes(), "little")
            bad = index == good
            self.answers.append((due, number, data, bad or index == count - 1, bad))
        ring.asked += count

    def status(self, name, ring):
        return part(getattr(self.dut, f"sts_ring_status_{name}"), ring.number, 1)

    async def finish(self, most=3000):
        """All posted descriptors are done and reported."""
        for _ in range(most):
            await self.step()
            if (all(ring.done == ring.posted and not ring.events and not ring.losses for ring in self.rings)
                    and not self.answers):
                break
        for _ in range(4):
            await self.step()
        for ring in self.rings:
            assert ring.done == ring.posted and not ring.events, (ring.number, ring.done, ring.posted, ring.events)
            assert self.status("idle", ring) and not self.status("error", ring)
            assert part(self.dut.sts_ring_consumer, ring.number, 32) == ring.done


async def started(dut):
    tb = TB(dut)
    await tb.start()
    return tb


async def many(tb, packets):
    """Packets of all rings, some of them at each doorbell, as fit."""
    left = {ring: packets for ring in tb.rings}
    for _ in range(4000):
        for ring in tb.rings:
            if left[ring] and random.random() < 0.05:
                made = []
                while left[ring] and len(made) < 12:
                    made += ring.packet(random.choice((1, 1, 2, 4)), random.random() < 0.4)
                    left[ring] -= 1
                if len(made) > ring.space():
                    left[ring] += sum(bool(descriptor.flags & FIRST) for descriptor in made)
                else:
                    ring.post(made)
        await tb.step()
        if not any(left.values()):
            return
    raise AssertionError("a ring does not go on")


@cocotb.test()
async def what_was_posted_is_handed_out_once_and_told_of(dut):
    tb = await started(dut)
    for ring in tb.rings:
        ring.inline = 0.4
    await many(tb, 80)
    await tb.finish()
    for ring, counts in zip(tb.rings, tb.counts):
        assert len(ring.ended) == 80 and ring.posted > 3 * ring.size
        assert [counts[0], counts[2], counts[3]] == [ring.ended.count(status) for status in (SENT, BAD, FAILED)]


@cocotb.test()
async def several_descriptors_with_one_doorbell_are_read_at_once(dut):
    tb = await started(dut)
    ring = tb.rings[-1]
    for posted, counts in ((8, [8]), (5, [5]), (8, [3, 5]), (1, [1])):
        tb.requests = []
        ring.post([ring.packet()[0] for _ in range(posted)])
        await tb.finish()
        assert [count for _, count in tb.requests] == counts


@cocotb.test()
async def a_ring_that_waits_delays_no_other(dut):
    tb = await started(dut)
    ring = tb.rings[0]
    ring.lazy = 1.0
    for other in tb.rings:
        other.post([other.packet()[0] for _ in range(other.size)])
    for _ in range(400):
        await tb.step()
    assert ring.asked == min(tb.places, ring.size) and ring.done == 0
    assert all(other.done == other.size for other in tb.rings[1:])
    ring.lazy = 0.0
    await tb.finish()


@cocotb.test()
async def lost_packets_are_reported_between_the_others(dut):
    """Each report is an event, and no other event, count or descriptor is affected."""
    tb = await started(dut)
    tb.losing = 0.1
    await many(tb, 40)
    tb.losing = 0.0
    await tb.finish()
    assert all(len(ring.ended) == 40 for ring in tb.rings) and tb.events > 40 * tb.ports
    # With no space for events they wait, and one that the ring reserves for its end is left.
    tb.room = 0
    ring = tb.rings[-1]
    ring.losses = [(1, number) for number in range(tb.places)]
    expect_stop(ring)
    for _ in range(3 * tb.places):
        await tb.step()
    assert len(ring.losses) == 2
    ring.failing = True
    ring.post(ring.packet())
    for _ in range(200):
        await tb.step()
    assert tb.status("error", ring) and not tb.status("idle", ring) and len(ring.losses) == 2
    tb.room = (1 << tb.queues) - 1
    for _ in range(400):
        await tb.step()
    assert ring.stop is not None and not ring.losses and not ring.events


async def stopped(tb, ring):
    """The ring has reported its stop, after all other events; the others continue."""
    for _ in range(250):
        await tb.step()
    assert tb.status("error", ring) and tb.status("idle", ring)
    for other in tb.rings:
        if other is not ring:
            other.post(other.packet(3))
            other.post(other.packet(1))


async def anew(tb, ring):
    """Off and on again: it begins with descriptor 0."""
    ring.enable = 0
    await tb.step()
    ring.begin()
    ring.enable = 1
    await tb.step()
    await tb.step()
    assert not tb.status("error", ring) and part(tb.dut.sts_ring_consumer, ring.number, 32) == 0
    ring.post(ring.packet(2) + ring.packet(1))
    await tb.finish()


def expect_stop(ring):
    """Wraps the check of events: the last one, but for lost packets, is the ring's end."""
    ring.stop = None
    plain = ring.check

    def check(record, queue):
        if record >> 160 & 7 == STOPPED:
            assert all(event[3] == UNRESOLVED for event in ring.events) and ring.stop is None
            ring.events.insert(0, (ring.done, 0, ring.packets, STOPPED, ring.cookie, ring.bytes))
            ring.stop = record
        plain(record, queue)

    ring.check = check


@cocotb.test()
async def a_failed_read_of_descriptors_stops_its_ring(dut):
    for _ in range(2):
        tb = await started(dut)
        ring = tb.rings[-1]
        ring.post(ring.packet(2))
        await tb.finish()
        expect_stop(ring)
        ring.post(ring.packet(7) + ring.packet(3))
        for _ in range(random.randrange(8)):
            await tb.step()
        ring.failing = True
        ring.post(ring.packet(7) + ring.packet(5))
        await stopped(tb, ring)
        assert ring.stop is not None and ring.done < ring.posted
        ring.failing = False
        await anew(tb, ring)


@cocotb.test()
async def a_producer_index_that_cannot_be_is_refused(dut):
    for wrong in (lambda ring: ring.done + ring.size + 1, lambda ring: ring.posted - 1, lambda ring: 1 << 31):
        tb = await started(dut)
        ring = tb.rings[-1]
        expect_stop(ring)
        ring.post(ring.packet(2) + ring.packet(3))
        for _ in range(6):
            await tb.step()
        right, ring.posted, ring.pulse = ring.posted, wrong(ring), True
        await tb.step()
        for _ in range(4):
            await tb.step()
        assert tb.status("error", ring)
        ring.posted = right
        await stopped(tb, ring)
        assert ring.done == right and ring.stop is not None, "what was posted before is sent"
        await anew(tb, ring)


@cocotb.test()
async def a_full_event_queue_stops_its_rings_and_loses_nothing(dut):
    tb = await started(dut)
    ring = tb.rings[0]
    tb.room &= ~(1 << ring.queue)
    for other in tb.rings:
        other.post([other.packet()[0] for _ in range(20)])
    for _ in range(500):
        await tb.step()
    assert tb.status("no_event", ring) and not tb.status("idle", ring)
    assert all(not other.events and other.done == 20 for other in tb.rings if other.queue != ring.queue)
    assert ring.handed == min(20, tb.places - 2)
    tb.room |= 1 << ring.queue
    await tb.finish()
    assert tb.events == 20 * tb.ports and not tb.status("no_event", ring)


@cocotb.test()
async def a_ring_that_is_switched_off_finishes_what_it_fetched(dut):
    tb = await started(dut)
    ring = tb.rings[0]
    ring.post(ring.packet(3) + ring.packet(2) + ring.packet(4)[:3])
    for _ in range(8):
        await tb.step()
    ring.enable = 0
    for _ in range(400):
        await tb.step()
    assert ring.asked == ring.handed == ring.done and not ring.events and tb.status("idle", ring)
    assert ring.done and not ring.open, "a packet without an end is ended"
    await anew(tb, ring)


@cocotb.test()
async def a_ring_that_is_enabled_too_early_waits_for_what_it_fetched(dut):
    """And its doorbell with it."""
    tb = await started(dut)
    ring = tb.rings[0]
    ring.lazy = 0.9
    ring.post(ring.packet(3) + ring.packet(2) + ring.packet(3))
    for _ in range(40):
        await tb.step()
    assert ring.asked == 8 and ring.done < 8
    ring.enable = 0
    await tb.step()
    ring.enable = 1
    ring.early = ring.packet(2) + ring.packet(1)
    ring.pulse = True
    for _ in range(400):
        await tb.step()
        if ring.early is None:
            break
    await tb.finish()
    assert ring.done == 3
