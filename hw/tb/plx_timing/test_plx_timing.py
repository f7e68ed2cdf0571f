"""plx_timing: nanoseconds stay exact; edges of the timing input are latched, counted, reported, and checked."""

import random
from bisect import bisect
from collections import Counter

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly, Timer
from cocotb.utils import get_sim_time

from clocks import Clock

NET_PS = 6400
CLOCK, START, END, TRIGGER = "clock", "start", "end", "trigger"
FLAGS = ("unexpected_start", "unexpected_end", "early", "lost", "event")
# From a level to the cycle in which its edge counts.
DELAY = 2


class TB:
    """Samples each cycle just before its end; inputs set here count from the next one on."""

    def __init__(self, dut):
        self.dut, self.count, self.set, self.events, self.cycle = dut, Counter(), Counter(), [], 0
        for name in (CLOCK, START, END, TRIGGER):
            getattr(dut, f"ttc_{name}").value = 0
        for name in ("from_clock", "set_on_start", "event_burst", "event_trigger", "event_flag", "watch_expect",
                     "watch_tolerance", "set", "preset"):
            getattr(dut, f"cfg_{name}").value = 0
        dut.cfg_period.value, dut.wr_set.value, dut.flags.value, dut.m_event_ready.value = 1638400, 0, 0, 1

    async def start(self):
        cocotb.start_soon(Clock(self.dut.clk, NET_PS, "ps").start(start_high=False))
        self.dut.rst.value = 1
        for _ in range(4):
            await FallingEdge(self.dut.clk)
        self.dut.rst.value = 0
        return self

    async def step(self, count=1):
        dut = self.dut
        for _ in range(count):
            await ReadOnly()
            for name in ("clocks", "triggers", "early", "lost", "unpaired", "events_lost"):
                self.count[name] += int(getattr(dut, f"inc_{name}").value)
            self.set.update(name for bit, name in enumerate(FLAGS) if int(dut.set_flags.value) >> bit & 1)
            if int(dut.m_event_valid.value) and int(dut.m_event_ready.value):
                self.events.append({name: int(getattr(dut, f"m_event_{name}").value) for name in
                                    ("edges", "timestamp_ns", "timestamp_valid", "cycle_ts", "burst", "flags", "clocks",
                                     "triggers")})
            await FallingEdge(dut.clk)
            self.cycle += 1

    async def set_time(self, ns):
        self.dut.cfg_set.value, self.dut.wr_set.value = ns, 1
        await self.step()
        self.dut.wr_set.value = 0

    async def pulse(self, *names, width=2, gap=4):
        """Edges of all of them at once; they have counted when this ends."""
        for name in names:
            getattr(self.dut, f"ttc_{name}").value = 1
        await self.step(width)
        for name in names:
            getattr(self.dut, f"ttc_{name}").value = 0
        await self.step(gap)


@cocotb.test()
async def own_time_is_exact_in_fifths(dut):
    tb = await TB(dut).start()
    assert not int(dut.now_timestamp_valid.value)
    await tb.set_time(10**18)
    assert int(dut.now_timestamp_valid.value)
    stamp = int(dut.now_cycle_ts.value)
    for cycles in range(2000):
        assert int(dut.now_timestamp_ns.value) == 10**18 + cycles * 32 // 5
        assert int(dut.now_cycle_ts.value) == stamp + cycles
        await tb.step()


@cocotb.test()
async def by_the_external_clock_a_period_each(dut):
    tb = await TB(dut).start()
    # 40.078 MHz: 24.951 ns and some.
    period = round(1e9 / 40.078e6 * 65536)
    dut.cfg_from_clock.value, dut.cfg_period.value = 1, period
    await tb.set_time(5000)
    for clocks in range(1, 200):
        await tb.pulse(CLOCK, width=random.randrange(2, 5), gap=random.randrange(3, 6))
        assert int(dut.now_timestamp_ns.value) == 5000 + clocks * period // 65536
    assert tb.count["clocks"] == 199


# A level of the shortest pulse, ps: less than two cycles.
SHORT = 12500


async def short_pulses(signal, count, low, times):
    """Pulses with no relation to the clock, `low(): ps` between them. Each edge has up to 0.5 ns of jitter."""
    for _ in range(count):
        signal.value = 1
        times.append(get_sim_time("ps"))
        await Timer(SHORT + random.randrange(-500, 501), "ps")
        signal.value = 0
        await Timer(low() + random.randrange(-500, 501), "ps")


@cocotb.test()
async def asynchronous_pulses_of_12_5_ns_all_count(dut):
    """An external clock of 40 MHz at any phase, and each other input in its midst; none is missed or counts twice."""
    tb = await TB(dut).start()
    dut.cfg_from_clock.value, dut.cfg_period.value = 1, 25 << 16
    dut.cfg_event_trigger.value = dut.cfg_event_burst.value = 1
    await tb.set_time(0)
    await tb.step(4)
    times, ticks, clocks, pairs = [], [], 4000, 300
    await Timer(random.randrange(NET_PS), "ps")
    running = [cocotb.start_soon(short_pulses(dut.ttc_clock, clocks, lambda: SHORT, ticks)),
               cocotb.start_soon(short_pulses(dut.ttc_trigger, 2 * pairs, lambda: random.randrange(SHORT, 90000), times))]

    async def bursts():
        for _ in range(pairs):
            for signal in (dut.ttc_start, dut.ttc_end):
                await short_pulses(signal, 1, lambda: random.randrange(3 * SHORT, 9 * SHORT), [])

    running.append(cocotb.start_soon(bursts()))
    await FallingEdge(dut.clk)
    while not all(task.done() for task in running):
        await tb.step()
    await tb.step(6)
    assert tb.count["clocks"] == clocks and int(dut.now_timestamp_ns.value) == 25 * clocks
    assert tb.count["triggers"] == 2 * pairs and int(dut.bursts.value) == pairs and not int(dut.in_burst.value)
    assert tb.count["unpaired"] == 0 and not tb.set
    # Each trigger is latched with the clocks until then, to a cycle.
    latched = [event["timestamp_ns"] // 25 for event in tb.events if event["edges"] & 4]
    for wire, time in zip(latched, times, strict=True):
        assert bisect(ticks, time - NET_PS) <= wire <= bisect(ticks, time + NET_PS)


@cocotb.test()
async def a_start_of_burst_latches_and_then_sets(dut):
    tb = await TB(dut).start()
    dut.cfg_set_on_start.value, dut.cfg_preset.value = 1, 77
    dut.cfg_event_burst.value = dut.cfg_event_trigger.value = 1
    await tb.set_time(1_000_000)
    begun = tb.cycle
    await tb.step(random.randrange(50))
    latched = 1_000_000 + (tb.cycle + DELAY - begun) * 32 // 5
    counted = tb.cycle + DELAY
    await tb.pulse(START)
    assert int(dut.at_start.value) == latched and int(dut.in_burst.value) and int(dut.bursts.value) == 1
    assert int(dut.now_timestamp_ns.value) == 77 + (tb.cycle - counted - 1) * 32 // 5
    await tb.pulse(TRIGGER)
    await tb.pulse(END)
    assert not int(dut.in_burst.value) and int(dut.at_trigger.value) < int(dut.at_end.value) < 200
    assert [event["edges"] for event in tb.events] == [1, 4, 2]
    assert [event["timestamp_ns"] for event in tb.events] == [latched, int(dut.at_trigger.value), int(dut.at_end.value)]
    assert [event["triggers"] for event in tb.events] == [0, 1, 1] and {event["burst"] for event in tb.events} == {1}
    assert not tb.set


@cocotb.test()
async def starts_and_ends_without_the_other_raise_flags(dut):
    tb = await TB(dut).start()
    await tb.pulse(END)
    assert tb.set == Counter(unexpected_end=1) and tb.count["unpaired"] == 1
    await tb.pulse(START)
    await tb.pulse(START)
    assert tb.set == Counter(unexpected_end=1, unexpected_start=1) and tb.count["unpaired"] == 2
    # An end and the next start at once are neither.
    await tb.pulse(START, END)
    assert tb.count["unpaired"] == 2 and int(dut.in_burst.value) and int(dut.bursts.value) == 3


@cocotb.test()
async def a_lost_or_an_extra_clock_is_flagged_and_counted(dut):
    tb = await TB(dut).start()
    dut.cfg_watch_expect.value, dut.cfg_watch_tolerance.value = 20, 2
    for gap in (18, 19, 20, 21, 22, 20):
        await tb.pulse(CLOCK, width=5, gap=gap - 5)
    assert not tb.set, "within the tolerance"
    await tb.pulse(CLOCK, width=5, gap=2)
    assert not tb.set
    await tb.pulse(CLOCK, width=5, gap=15)
    assert tb.count["early"] == 1 and tb.set == Counter(early=1), "an extra one"
    await tb.pulse(CLOCK, width=5, gap=35)
    assert tb.count["lost"] == 1, "one stayed away"
    await tb.pulse(CLOCK, width=5, gap=15)
    await tb.pulse(CLOCK, width=5, gap=15 + 80)
    assert tb.count["lost"] == 5 and tb.count["early"] == 1, "four more; none is early behind them"
    await tb.pulse(CLOCK, width=5, gap=18)
    assert tb.count["early"] == 1 and tb.count["clocks"] == 12
    dut.cfg_watch_expect.value = 0
    await tb.step(300)
    assert tb.count["lost"] == 5, "the check is disabled"


@cocotb.test()
async def edges_of_one_cycle_are_one_event_and_a_flag_tells_once(dut):
    tb = await TB(dut).start()
    dut.cfg_event_burst.value = dut.cfg_event_trigger.value = dut.cfg_event_flag.value = 1
    await tb.pulse(CLOCK, START, END, TRIGGER)
    assert [event["edges"] for event in tb.events] == [15], "an end outside of a burst is a flag as well"
    assert (tb.events[0]["clocks"], tb.events[0]["triggers"], tb.events[0]["flags"]) == (1, 1, 2)
    assert tb.events[0]["burst"] == 1 and not tb.events[0]["timestamp_valid"]
    dut.cfg_event_burst.value, dut.flags.value = 0, 0b00010
    await tb.pulse(END)
    await tb.pulse(END)
    assert len(tb.events) == 1, "the flag is set already"
    dut.flags.value = 0
    await tb.pulse(END)
    assert tb.events[1]["edges"] == 8 and tb.events[1]["cycle_ts"] == int(dut.now_cycle_ts.value) - 4
    # They are not accepted.
    dut.cfg_event_burst.value, dut.m_event_ready.value = 1, 0
    await tb.pulse(START, TRIGGER)
    assert tb.count["events_lost"] == 2 and tb.set["event"] == 1 and len(tb.events) == 2
