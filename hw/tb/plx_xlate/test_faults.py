"""plx_xlate: each fault is reported to its function, in its queue; full queues, and resets of functions at any time."""

import random

import cocotb

from test_plx_xlate import DENIED, NONE, QUEUE, Chunk, filled

PARAMETERS = [{"MASTERS": 4, "ENTRIES": 128}, {"MASTERS": 1, "ENTRIES": 2}]


@cocotb.test()
async def a_held_chunk_is_a_fault_after_the_timeout(dut):
    tb = await filled(dut, 1, timeout=100)
    begun = tb.cycles.number
    tb.requests[0] += [Chunk(0x7000_0000_0000), Chunk(0x7000_0000_1000)]
    await tb.settle()
    first, second = (when for *_, when in tb.answers)
    assert 100 <= first - begun <= 115 and 100 <= second - first <= 115
    await tb.drain()
    assert (tb.held, tb.counted, len(tb.events)) == (2, 2, 2)
    tb.check_events()
    # Key and right are not waited for.
    entry = tb.entries[0]
    tb.requests[0].append(Chunk(entry.page, 16, entry.func, entry.key + 1))
    await tb.settle(20)
    assert tb.answers[-1][2] == DENIED


@cocotb.test()
async def a_fault_waits_for_room_and_those_behind_it_are_counted(dut):
    """Of the same master, while its queue is full."""
    tb = await filled(dut, 2)
    tb.rooms = ~(1 << QUEUE)
    tb.requests[0] += [Chunk(0x1000 * n, 64, 0, index=n) for n in range(6)]
    await tb.settle()
    for _ in range(40):
        await tb.step()
    assert not tb.events and tb.lost == 5, "an event without room"
    tb.rooms = -1
    await tb.drain()
    assert [record >> 64 & 0xFF for record in tb.events] == [0] and tb.counted == 6
    tb.requests[0].append(Chunk(0x7000, 64, 0, index=7))
    await tb.settle()
    await tb.drain()
    assert len(tb.events) == 2
    tb.check_events()


@cocotb.test()
async def each_function_is_told_of_its_own_faults_in_its_own_queue(dut):
    """No report for a function without events, nor for a number without a function, and none to another."""
    tb = await filled(dut, 1)
    tb.on = 0b10110101
    told = []
    for number, func in enumerate([*range(8), 8, 9, 10, 18, 128, 2, 2, 5]):
        tb.requests[number % tb.masters].append(Chunk(0x7000_0000_0000 + 0x1000 * number, 16, func, index=number))
        await tb.settle()
        await tb.drain()
        if func < 8 and tb.on >> func & 1:
            told.append((func, number))
        assert [(record >> 192 & 0xFFFFFFFF, record >> 64 & 0xFF) for record in tb.events] == told
    assert [record >> 448 & 0xFF for record in tb.events if record >> 192 & 0xFF == 2] == [0, 1, 2]
    assert tb.lost == 0 and tb.counted == 16


@cocotb.test()
async def a_full_queue_of_one_function_delays_no_other(dut):
    """However many faults it has, from whichever master."""
    tb = await filled(dut, 1)
    tb.rooms = ~(1 << QUEUE + 3)
    for master in range(1, tb.masters):
        for other in range(tb.masters):
            if other != master:
                tb.requests[other] += [Chunk(0x7000_0000_0000, 16, 3) for _ in range(20)]
        for _ in range(30):
            await tb.step()
        events, lost = len(tb.events), tb.lost
        tb.requests[master].append(Chunk(0x7000_0000_0000, 16, 1, index=master))
        for _ in range(40):
            await tb.step()
            if len(tb.events) > events:
                break
        assert tb.events[events] >> 64 & 0xFF == master and len(tb.events) == events + 1
        await tb.settle()
        # What waited before of this one goes.
        tb.rooms = -1
        await tb.drain()
        tb.rooms = ~(1 << QUEUE + 3)
        assert tb.lost > lost


@cocotb.test()
async def no_fault_of_before_a_reset_is_told_after_it(dut):
    """It waits in its place, or is on its way there, or has been read from it; or the function has no events for a
    moment. Faults of other functions go on, and numbers begin anew."""
    tb = await filled(dut, 1)
    master = tb.masters - 1
    for ends in ("resetting", "on"):
        for wait in range(24):
            tb.rooms, before = ~(1 << QUEUE + 2), len(tb.events)
            tb.requests[master].append(Chunk(0x7000_0000_0000, 16, 2, index=1))
            for _ in range(wait):
                await tb.step()
            if wait > 12:
                tb.rooms = -1 if wait % 2 else tb.rooms
            value = getattr(tb, ends)
            setattr(tb, ends, value ^ 4)
            for _ in range(12):
                await tb.step()
            tb.requests[0].append(Chunk(0x7000_0000_0000, 16, 1, index=2))
            await tb.settle()
            setattr(tb, ends, value)
            tb.rooms = -1
            await tb.drain()
            found = [record >> 64 & 0xFF for record in tb.events[before:]]
            assert found == [2] or wait > 12 and wait % 2 and sorted(found) == [1, 2], f"{ends} {wait}: {found}"
    tb.events.clear()
    for _ in range(2):
        tb.resetting = 4
        await tb.step()
        tb.resetting = 0
        for _ in range(3):
            await tb.step()
            tb.requests[0].append(Chunk(0x7000_0000_0000, 16, 2))
            await tb.settle()
            await tb.drain()
    assert [record >> 448 & 0xFF for record in tb.events] == [0, 1, 2] * 2


@cocotb.test()
async def resets_among_faults_of_all(dut):
    """At any time, with or without room: an event is of its function's present life."""
    tb = await filled(dut, 1)
    tb.idle, tb.event_stall = 0.3, 0.5
    for _ in range(3000):
        for queue in tb.requests:
            if not queue:
                queue.append(Chunk(0x7000_0000_0000, 16, random.randrange(4), index=random.randrange(99)))
        if random.random() < 0.1:
            tb.rooms = ~(random.getrandbits(4) << QUEUE)
        for name in ("resetting", "on"):
            if random.random() < 0.1:
                setattr(tb, name, getattr(tb, name) ^ 1 << random.randrange(4))
        await tb.step()
    assert len(tb.events) > 40


@cocotb.test()
async def a_held_chunk_of_a_function_in_reset_ends(dut):
    """The reset does not wait for the timeout; chunks of others are held as before."""
    tb = await filled(dut, 1, timeout=100000)
    tb.requests[0].append(Chunk(0x7000_0000_0000, 16, 2))
    if tb.masters > 1:
        tb.requests[1].append(Chunk(0x7000_0000_0000, 16, 1))
    for _ in range(50):
        await tb.step()
    assert not tb.answers
    tb.resetting = 4
    for _ in range(16):
        await tb.step()
    assert [(master, what) for master, _, what, _ in tb.answers] == [(0, NONE)] and tb.counted == 1
    # So does one that comes meanwhile, and is not told.
    tb.requests[0].append(Chunk(0x7000_0000_0000, 16, 2))
    for _ in range(24):
        await tb.step()
    assert len(tb.answers) == 2 and len(tb.events) == min(tb.masters, 2)
