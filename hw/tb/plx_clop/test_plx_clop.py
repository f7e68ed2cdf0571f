"""plx_clop: addresses, announcements and outcomes equal the model of the format; four ports at line rate."""

import random

import cocotb

import cycles as table
from core import Cycles, Window, clear, joined
from lists import BAD, FAULT, FLUSH, FULL, MALFORMED, NO_BUFFER, NO_EVENT, OFF, OVERSIZE, PLACED, TIMEOUT, List

PARAMETERS = [{"PORTS": 4}, {"PORTS": 1}]

QUEUES = 8

FIELDS = (("list", 7), ("length", 16), ("wire", 64), ("timestamp_valid", 1))


class Port:
    """One payload after the other: select, some cycles, commit."""

    def __init__(self):
        self.jobs, self.state, self.wait, self.job, self.since = [], "idle", 0, None, 0


class TB:
    def __init__(self, dut):
        self.dut, self.cycles, self.ports = dut, Cycles(dut), int(dut.PORTS.value)
        self.cycles.watchers.append(self.look)
        self.port = [Port() for _ in range(self.ports)]
        self.lists, self.outcomes, self.extra = {}, {}, None
        self.hold, self.idle, self.stall, self.no_room = (2, 2), 0.0, 0.0, 0.0
        self.room, self.asked = (1 << QUEUES) - 1, 0
        self.room_before = self.room
        self.event, self.latencies, self.reader, self.finished = None, set(), 1.0, 0
        self.granted, self.skew = [None] * self.ports, 0
        for name in ("s_select_valid", "s_commit_valid", "win_write", "win_addr", "win_wdata", "m_event_ready",
                     "now_cycle_ts"):
            getattr(dut, name).value = 0
        dut.s_room.value = 1
        self.window, self.counters = Window(dut, "list", self.step), Window(dut, "outcome", self.step)

    async def start(self, at_once=True):
        await self.cycles.start()
        if at_once:
            clear(self.dut.status_counts)
        while int(self.dut.counters_ready.value) == 0:
            await self.cycles.cycle()

    @property
    def now(self):
        return self.cycles.number + self.skew

    async def enable(self, number, **settings):
        """A list of the model."""
        new, at = List(**settings), 0x2000 + number * 64
        await self.window.write64(at, new.base)
        await self.window.write(at + 8, new.size)
        await self.window.write(at + 12, new.count)
        await self.window.write(at + 16, new.bare | new.func << 4 | new.queue << 8 | new.stride << 16)
        await self.window.write(at + 20, new.timeout)
        await self.window.access(at + 24, 1)
        self.lists[number] = new

    async def disable(self, number):
        await self.window.write(0x2000 + number * 64 + 24, 0)
        self.lists.pop(number)

    async def release(self, number, value):
        self.pending_release = (self.lists[number], value)
        await self.window.write(0x2000 + number * 64 + 28, value)

    async def flush(self, number):
        self.lists[number].flush = True
        await self.window.write(0x2000 + number * 64 + 24, 3)

    async def step(self, extra=None):
        dut = self.dut
        self.extra = extra
        for port in self.port:
            if port.state == "idle" and port.jobs and random.random() >= self.idle:
                port.job, port.state = port.jobs.pop(0), "select"
            elif port.state == "hold":
                port.wait -= 1
                if port.wait <= 0:
                    port.state = "commit"
                    mac = self.now - random.randrange(50) & 0xFFFFFFFF
                    port.stages = (mac, mac + 9 & 0xFFFFFFFF, self.now & 0xFFFFFFFF)
        jobs = [port.job or (0, 0, 0, 0, 0, 0) for port in self.port]
        for kind in ("select", "commit"):
            getattr(dut, f"s_{kind}_valid").value = joined([port.state == kind for port in self.port], 1)
            for index, (name, width) in enumerate(FIELDS):
                # A commit is of the list that was selected.
                if kind == "commit" and name == "list":
                    continue
                # A select has the bound of the length, a commit the length.
                at = 5 if name == "length" and kind == "commit" else index
                getattr(dut, f"s_{kind}_{name}").value = joined([job[at] for job in jobs], width)
        dut.s_commit_status.value = joined([getattr(port, "outcome", 0) for port in self.port], 4)
        for index, name in enumerate(("mac", "parsed", "placed")):
            getattr(dut, f"s_commit_stamp_{name}").value = joined(
                [getattr(port, "stages", (0, 0, 0))[index] for port in self.port], 32)
        self.room_before, self.room = self.room, sum(
            (random.random() >= self.no_room) << queue for queue in range(QUEUES))
        dut.s_room.value, dut.now_cycle_ts.value = self.room >> self.asked & 1, self.now
        dut.m_event_ready.value = random.random() >= self.stall
        await self.cycles.cycle()

    def look(self):
        dut = self.dut
        self.asked = int(dut.m_room_queue.value) if dut.m_room_queue.value.is_resolvable else 0
        if int(dut.m_event_valid.value):
            record = int(dut.m_event_record.value)
            if self.event is None:
                number = record >> 480 & 0xFFFF
                assert self.lists[number].queue == int(dut.m_event_queue.value)
                assert self.room_before >> self.lists[number].queue & 1, "an announcement without room"
                # What it covers was known two cycles before.
                self.lists[number].announce(record, number, self.now - 2)
            else:
                assert record == self.event, "the offer did not stand"
            self.event = None if int(dut.m_event_ready.value) else record
        else:
            assert self.event is None, "an offer was taken back"
        answers = int(dut.m_select_valid.value)
        assert answers & (answers - 1) == 0
        for index, port in enumerate(self.port):
            if answers >> index & 1:
                self.answer(index, port)
        if self.extra:
            self.extra()
        if int(dut.win_list_valid.value) and int(dut.win_list_ready.value) and getattr(self, "pending_release", None):
            released, value = self.pending_release
            released.released, self.pending_release = value, None
        for index, port in enumerate(self.port):
            if int(dut.s_select_ready.value) >> index & 1:
                assert port.state == "select"
                port.state, port.since = "answer", self.cycles.number
            if int(dut.s_commit_ready.value) >> index & 1:
                self.committed(port)

    def answer(self, index, port):
        assert port.state == "answer"
        number, bound, stamp, stamped, self_outcome, _ = port.job
        self.latencies.add(self.cycles.number - port.since)
        outcome = int(self.dut.m_select_status.value)
        if number not in self.lists:
            assert outcome == OFF
        else:
            mine = self.lists[number]
            expected, place = mine.select(bound, stamp, stamped)
            if expected == NO_EVENT:
                assert not self.room_before >> mine.queue & 1, "not announced, for all the room"
            assert outcome == expected, f"list {number}: {outcome} instead of {expected}"
            if outcome == PLACED:
                address = int(self.dut.m_select_address.value)
                assert address == place, f"{address:#x} instead of {place:#x}"
                assert int(self.dut.m_select_sequence.value) == mine.sequence
                assert int(self.dut.m_select_bare.value) == mine.bare
                assert int(self.dut.m_select_stride.value) == mine.stride
                assert int(self.dut.m_select_func.value) == mine.func
        port.outcome = self_outcome if outcome == PLACED or self_outcome >= MALFORMED else outcome
        port.list = self.lists.get(number)
        port.state, port.wait = "hold", random.randint(*self.hold)

    def committed(self, port):
        number, _, stamp, stamped, _, length = port.job
        outcome = port.outcome
        if outcome <= FAULT and self.lists.get(number) is not port.list:
            outcome = OFF
        if outcome != BAD:
            self.outcomes[number, outcome] = self.outcomes.get((number, outcome), 0) + 1
        if port.list and self.lists.get(number) is port.list:
            # It happens in the cycle after.
            port.list.commit(outcome, length, stamp, stamped, port.stages, self.now + 1)
        port.state, port.job = "idle", None
        self.finished += 1

    async def run(self, limit=20000):
        """Runs until all jobs are done; the reader returns announced buffers at random times."""
        for _ in range(limit):
            if not any(port.jobs or port.state != "idle" for port in self.port):
                break
            number = random.choice(list(self.lists))
            mine = self.lists[number]
            if mine.released < mine.serial and random.random() < self.reader:
                await self.release(number, random.randint(mine.released, mine.serial))
            else:
                await self.step()
        else:
            raise AssertionError("payloads that never end")

    async def flush_all(self):
        self.no_room = self.stall = 0.0
        for number in self.lists:
            await self.flush(number)
        for _ in range(600):
            await self.step()
        for number, mine in self.lists.items():
            assert not mine.payloads, f"list {number}: not announced"
            assert await self.window.read(0x2000 + number * 64 + 24) == 1, "the flush is done"

    async def check_counters(self):
        for number in {number for number, _ in self.outcomes} | set(self.lists):
            for outcome in range(8):
                at = 0x4000 + number * 64 + outcome * 8
                low, high = await self.counters.read(at), await self.counters.read(at + 4)
                assert low | high << 32 == self.outcomes.get((number, outcome), 0), (number, outcome)


def payload(number, longest, clock=None, bound=False):
    length = random.choice([0, 1, 16, 17, longest, random.randrange(longest + 1)])
    stamp = random.getrandbits(20) + random.choice([0, 0, 0, 0, 1 << 31, 1 << 33]) if clock is None else clock
    outcome = random.choice([PLACED] * 12 + [FAULT, MALFORMED, MALFORMED + 1, BAD])
    return (number, length + (random.randrange(40) if bound else 0), stamp, random.random() < 0.8, outcome, length)


@cocotb.test()
async def lists_of_all_kinds_as_the_model_says(dut):
    tb = TB(dut)
    await tb.start(at_once=False)
    for port in range(tb.ports):
        for stream, settings in ((0, dict(size=512, count=3, timeout=60)), (7, dict(size=64, count=1)),
                                 (16, dict(size=1024, count=2, bare=True, stride=7, timeout=200))):
            number = port * 32 + stream
            await tb.enable(number, base=(number + 1) << 40 | 0x40 * port, queue=number % QUEUES, func=number % 5,
                            **settings)
    for index, port in enumerate(tb.port):
        port.jobs = [payload(index * 32 + random.choice([0, 0, 7, 16, 16, 3]), 200, bound=True)
                     for _ in range(100 if tb.ports > 1 else 200)]
    tb.idle, tb.stall, tb.no_room, tb.reader, tb.hold = 0.1, 0.5, 0.2, 0.3, (1, 12)
    await tb.run()
    await tb.flush_all()
    await tb.check_counters()
    seen = {outcome for _, outcome in tb.outcomes}
    assert seen >= {PLACED, NO_BUFFER, NO_EVENT, OVERSIZE, FAULT, OFF, MALFORMED}, seen
    reasons = {reason for mine in tb.lists.values() for _, reason, _ in mine.announced}
    assert reasons == {FULL, TIMEOUT, FLUSH}
    assert sum(tb.outcomes.get((number, PLACED), 0) for number in tb.lists) == sum(
        len(payloads) for mine in tb.lists.values() for _, _, payloads in mine.announced)


@cocotb.test()
async def select_takes_three_cycles(dut):
    tb = TB(dut)
    await tb.start()
    await tb.enable(0, base=0, size=1 << 20, count=2)
    tb.port[0].jobs = [payload(0, 64, clock=5) for _ in range(50)]
    await tb.run()
    assert len(tb.latencies) == 1
    table.check("clop_select", tb.latencies.pop())


@cocotb.test()
async def minimum_frames_of_all_ports(dut):
    """Select and commit for each frame of 59.5 million a second: 4.2 cycles each, for four ports."""
    tb = TB(dut)
    await tb.start()
    for port in range(tb.ports):
        await tb.enable(port * 32 + 16, base=port << 30, size=1024, count=64)
        tb.port[port].jobs = [(port * 32 + 16, 60, 0, 0, PLACED, 60)] * 100
    tb.hold = (6, 6)
    begun = tb.cycles.number
    await tb.run()
    each = (tb.cycles.number - begun) / (100 * tb.ports)
    assert each <= 4.2 * 4 / tb.ports, f"{each} cycles for each frame"
    assert all(tb.outcomes[port * 32 + 16, PLACED] == 100 for port in range(tb.ports))


@cocotb.test()
async def a_timeout_comes_in_time_on_every_list(dut):
    """Not before, and at most 1.1 us (275 cycles) late; so also when the payload's clock wraps."""
    tb = TB(dut)
    await tb.start()
    tb.skew = (1 << 32) - 1500
    for port in range(tb.ports):
        for stream in (0, 16):
            await tb.enable(port * 32 + stream, base=0, size=4096, count=4, timeout=400)
            tb.port[port].jobs.append((port * 32 + stream, 60, 9, 1, PLACED, 60))
    await tb.run()
    waits = {}
    for _ in range(800):
        await tb.step()
        for number, mine in tb.lists.items():
            if mine.announced and number not in waits:
                waits[number] = tb.now - mine.announced[0][2][0].arrival
    assert len(waits) == 2 * tb.ports and max(waits.values()) <= 400 + 275 + 2, waits


@cocotb.test()
async def a_timeout_is_not_starved_by_a_busy_list(dut):
    tb = TB(dut)
    await tb.start()
    await tb.enable(3, base=0, size=1 << 20, count=4, timeout=100)
    tb.port[0].jobs = [(3, 60, 0, 0, PLACED, 60)] * 60
    await tb.run()
    gaps = [payloads[-1].arrival - payloads[0].arrival for _, _, payloads in tb.lists[3].announced]
    assert len(gaps) >= 4 and max(gaps) < 200


@cocotb.test()
async def a_list_that_began_anew_knows_nothing_of_a_payload_from_before(dut):
    tb = TB(dut)
    await tb.start()
    await tb.enable(5, base=0x1000, size=4096, count=4)
    tb.hold = (200, 200)
    tb.port[0].jobs = [(5, 60, 0, 0, PLACED, 60)]
    for _ in range(20):
        await tb.step()
    await tb.disable(5)
    await tb.enable(5, base=0x9000, size=4096, count=4)
    await tb.run()
    assert tb.outcomes == {(5, OFF): 1}
    tb.hold = (2, 2)
    tb.port[0].jobs = [(5, 60, 0, 0, PLACED, 60)]
    await tb.run()
    await tb.flush_all()
    assert [reason for _, reason, _ in tb.lists[5].announced] == [FLUSH]
    await tb.check_counters()


@cocotb.test()
async def what_was_never_announced_cannot_be_returned(dut):
    """A number beyond those announced returns none; the right one after it does."""
    tb = TB(dut)
    await tb.start()
    await tb.enable(1, base=0, size=64, count=2)
    tb.reader = 0.0
    tb.port[0].jobs = [(1, 40, 0, 0, PLACED, 40)] * 3
    await tb.run()
    assert tb.outcomes == {(1, PLACED): 2, (1, NO_BUFFER): 1}
    await tb.release(1, 1000)
    tb.port[0].jobs = [(1, 40, 0, 0, PLACED, 40)]
    await tb.run()
    await tb.release(1, 1)
    tb.port[0].jobs = [(1, 40, 0, 0, PLACED, 40)] * 2
    await tb.run()
    assert tb.outcomes == {(1, PLACED): 3, (1, NO_BUFFER): 3}
    assert await tb.window.read(0x2000 + 64 + 32) == 3 and await tb.window.read(0x2000 + 64 + 40) == 6


@cocotb.test()
async def bytes_that_are_not_enabled_stay(dut):
    """Only its own byte enables and disables a list."""
    tb = TB(dut)
    await tb.start()
    await tb.enable(2, base=0x1000, size=0x1240, count=4)
    await tb.window.access(0x2000 + 2 * 64 + 8, 0xAABBCCDD, strobe=0b0010)
    assert await tb.window.read(0x2000 + 2 * 64 + 8) == 0xCC40
    await tb.window.access(0x2000 + 2 * 64 + 24, 0, strobe=0b1110)
    assert await tb.window.read(0x2000 + 2 * 64 + 24) == 1
    await tb.window.access(0x2000 + 2 * 64 + 24, 0, strobe=0b0001)
    assert await tb.window.read(0x2000 + 2 * 64 + 24) == 0
