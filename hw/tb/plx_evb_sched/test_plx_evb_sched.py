"""plx_evb_sched: registers, a message a cycle after its trigger, messages compared, sent again, nodes excluded."""

import cocotb

import cycles as table
from evb import FEEDBACK, FLOW, RUN, flow, pack, unpack
from scheduler import (COLUMN, COMMAND, COPIES, COUNTERS, DESCRIPTORS, EVENT, FEEDER_BITS, INPUT, LIMIT, LOOPS, OUTPUT,
                       OVERFLOW, PASSED, PEAK, PENDING, RETURNED, RING_ERRORS, RUN_NUMBER, SETUP, STATE, TIMEOUT,
                       Scheduler)

PARAMETERS = [{"COLUMNS": 4, "NODES": 8, "BUFFERS": 32, "SLOTS": 8}]
NODES, COLUMNS = 8, 4
SETTINGS = {RUN_NUMBER: RUN, DESCRIPTORS: 16, FEEDER_BITS: 3, LOOPS: 1, TIMEOUT: 400, LIMIT: 4}


class TB(Scheduler):
    """Eight nodes with two buffers each, in four columns; two feeders."""

    def __init__(self, dut):
        super().__init__(dut, COLUMNS, ("s_flow_valid", "s_flow_data", "inc_damaged"))
        self.out = []
        dut.m_flow_ready.value = 1

    def look(self):
        if int(self.dut.m_flow_valid.value):
            self.out.append((self.cycles.number, unpack(FLOW, int(self.dut.m_flow_data.value))))

    async def start(self):
        await self.cycles.start()
        await self.cycle(40)
        await self.configure(NODES, SETTINGS)
        await self.set_up()
        await self.enable()

    async def back(self, message):
        self.dut.s_flow_data.value, self.dut.s_flow_valid.value = pack(FLOW, **message), 1
        await self.cycle()
        self.dut.s_flow_valid.value = 0
        await self.cycle(8)


@cocotb.test()
async def a_message_in_the_cycle_after_its_trigger(dut):
    tb = TB(dut)
    await tb.start()
    assert await tb.read(STATE) == 1
    for descriptor in range(8):
        await tb.feedback(descriptor)
    assert await tb.read(STATE) == 2
    for number in range(4):
        at = await tb.trigger()
        table.check("sched_decide", tb.out[-1][0] - at)
        assert tb.out[-1][1] == flow(number=number, descriptor=number, hold=0, generation=1)
    assert await tb.read(EVENT) == 4 and await tb.read(COPIES) == 4
    assert await tb.read(COLUMN + 4) == 1 and await tb.read(COLUMN + 8 + 4) == 1


@cocotb.test()
async def a_buffer_is_in_one_place_in_each_cycle(dut):
    tb = TB(dut)
    await tb.start()
    for late in range(24):
        await tb.set_up()
        feedback = cocotb.start_soon(tb.feedback(1))
        await tb.cycle(late)
        assert await tb.read(COLUMN + 8 + 4) in (0, 1), late
        await feedback
        assert await tb.read(COLUMN + 8 + 4) == 1


@cocotb.test()
async def triggers_wait_and_are_refused(dut):
    tb = TB(dut)
    await tb.start()
    for _ in range(6):
        await tb.trigger()
    assert await tb.read(PENDING) == 4 and await tb.read(OVERFLOW) == 1 and not tb.out
    await tb.feedback(1)
    await tb.feedback(5)
    assert [(m["number"], m["descriptor"]) for _, m in tb.out] == [(0, 1)], "never twice running to a column"
    await tb.feedback(2)
    assert [m["descriptor"] for _, m in tb.out] == [1, 2, 5]


@cocotb.test()
async def returned_messages_are_compared_and_lost_ones_sent_again(dut):
    tb = TB(dut)
    await tb.start()
    for descriptor in range(8):
        await tb.feedback(descriptor)
    for _ in range(3):
        await tb.trigger(4)
    first, second, third = (message for _, message in tb.out)
    await tb.back({**first, "pending": 0, "generation": 9})
    assert await tb.read(RING_ERRORS) == 1
    await tb.back({**first, "pending": 0})
    await tb.back({**second, "pending": 2})
    assert tb.out[-1][1] == {**second, "pending": 2, "loops": 1, "hold": 1}, "another round, the last one"
    await tb.back({**tb.out[-1][1], "pending": 0})
    assert await tb.read(COPIES) == 1 and len(tb.out) == 4
    await tb.cycle(500)
    assert tb.out[-1][1] == {**third, "attempt": 2}
    await tb.back({**third, "pending": 0})
    assert await tb.read(COPIES) == 1 and await tb.read(RING_ERRORS) == 1, "of an attempt that was given up"


@cocotb.test()
async def events_of_an_excluded_node_go_to_others(dut):
    tb = TB(dut)
    await tb.start()
    for descriptor in (0, 4, 1, 5, 8):
        await tb.feedback(descriptor)
    await tb.trigger()
    assert tb.out[-1][1]["descriptor"] == 0
    await tb.write(COMMAND, 0)
    await tb.idle()
    await tb.cycle(20)
    assert (tb.out[-1][1]["number"], tb.out[-1][1]["attempt"], tb.out[-1][1]["descriptor"]) == (0, 2, 1)
    # The other buffer of node 0 is gone; its feedback is discarded.
    await tb.feedback(8)
    assert await tb.read(COLUMN + 4) == 1
    await tb.write(COMMAND, 1 << 16)
    await tb.idle()
    await tb.feedback(8)
    assert await tb.read(COLUMN + 4) == 2


async def crowd(tb, late):
    """More triggers, feedback and messages in each cycle than are taken, and a set-up in their midst. Feedback ends with
    it, as what comes later is of the new run; messages with the cycle in which links are cleared; triggers later.
    Returns what was counted before."""
    dut, before, over = tb.dut, [], []

    def look():
        if int(dut.m_setup.value) or over:
            over.append(int(dut.m_setup.value))

    tb.cycles.watchers.append(look)
    dut.trigger.value = 1
    for descriptor in range(400):
        dut.s_feedback_data.value = pack(FEEDBACK, run=RUN + descriptor % 2, descriptor=descriptor % 16,
                                         column=descriptor % 4)
        late_run = RUN + int(dut.m_setup.value)
        dut.s_flow_data.value = pack(FLOW, **flow(run=late_run, number=0, generation=9, pending=0))
        dut.s_feedback_valid.value = not over and not int(dut.m_setup.value)
        dut.s_flow_valid.value = dut.inc_damaged.value = not over
        if descriptor == 150:
            # More events wait than may, and returned messages differ from their copies.
            before.append(await tb.read(OVERFLOW))
            before.append(await tb.read(RING_ERRORS))
            before.append(await tb.read(PASSED))
            task = cocotb.start_soon(tb.bus.write_dword(SETUP, 1))
        await tb.cycle()
        if len(over) > late:
            break
    dut.trigger.value = dut.inc_damaged.value = dut.s_flow_valid.value = dut.s_feedback_valid.value = 0
    while not task.done():
        await tb.cycle()
    tb.cycles.watchers.remove(look)
    assert over and sum(over) == 1
    return before


@cocotb.test()
async def a_set_up_clears_what_was_counted_before(dut):
    tb = TB(dut)
    await tb.start()
    for round_ in range(12):
        # Column 0 has no buffers, and is passed.
        for descriptor in (1, 2, 3, 5, 6, 7):
            await tb.feedback(descriptor)
        for _ in range(4):
            await tb.trigger()
        dut.m_flow_ready.value = round_ % 2
        overflow, errors, passed = await crowd(tb, late=round_ % 3)
        assert overflow == 15 and errors and passed, (overflow, errors, passed)
        for at in (RING_ERRORS, OVERFLOW, EVENT, PASSED, PEAK, INPUT, OUTPUT, COPIES, RETURNED, PENDING):
            assert await tb.read(at) == 0, f"{at:#x} in round {round_}"
        # Each counter has been added to by then.
        await tb.cycle(60)
        for at in range(COUNTERS, COUNTERS + 24 * 8, 4):
            assert await tb.read(at) == 0, f"{at:#x} in round {round_}"
        await tb.idle()
        # The new run begins with event 0, and counts what it has.
        dut.m_flow_ready.value = 1
        tb.out.clear()
        await tb.feedback(3)
        await tb.trigger()
        assert [m for _, m in tb.out] == [flow(number=0, descriptor=3, hold=0, generation=1)]
        await tb.cycle(60)
        assert await tb.read(EVENT) == 1 and await tb.read(COUNTERS) == 1
        await tb.cycle(round_)
        await tb.set_up()
