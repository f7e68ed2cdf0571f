"""plx_event_irq: once for each arming; by count, by time, at once for events missed before the arming."""

import cocotb

from core import Cycles, joined

PARAMETERS = [{"EVENT_QUEUES": 2}]


class TB:
    def __init__(self, dut):
        self.dut, self.cycles, self.produced, self.irqs = dut, Cycles(dut), [0, 0], [[], []]
        self.cycles.watchers.append(self.look)
        dut.wr_queue_arm.value = dut.cfg_queue_arm_seen.value = dut.sts_queue_produced.value = 0
        dut.cfg_queue_ctrl_enable.value = 3

    async def start(self, count, hold):
        self.dut.cfg_queue_count.value, self.dut.cfg_queue_hold_cycles.value = joined(count, 16), joined(hold, 32)
        await self.cycles.start()

    def look(self):
        for queue in range(2):
            if int(self.dut.m_irq.value) >> queue & 1:
                self.irqs[queue].append(self.cycles.number)

    async def arm(self, queue, seen):
        self.dut.cfg_queue_arm_seen.value = seen << 32 * queue
        self.dut.wr_queue_arm.value = 1 << queue
        await self.cycles.cycle()
        self.dut.wr_queue_arm.value = 0
        await self.cycles.cycle()

    async def produce(self, queue, count=1):
        self.produced[queue] += count
        self.dut.sts_queue_produced.value = joined(self.produced, 32)
        await self.cycles.cycle()


@cocotb.test()
async def by_count_or_by_time_once_for_each_arming(dut):
    tb = TB(dut)
    await tb.start([3, 3], [50, 50])
    await tb.produce(0, 2)
    await tb.cycles.cycle(100)
    assert tb.irqs == [[], []], "not armed"
    await tb.arm(0, 2)
    for _ in range(3):
        assert not tb.irqs[0]
        await tb.produce(0)
    await tb.cycles.cycle(2)
    assert len(tb.irqs[0]) == 1, "three records"
    await tb.produce(0, 9)
    await tb.cycles.cycle(100)
    assert len(tb.irqs[0]) == 1 and not tb.irqs[1], "once"
    await tb.arm(0, 14)
    await tb.produce(0)
    begun = tb.cycles.number
    await tb.cycles.cycle(100)
    assert [when - begun for when in tb.irqs[0][1:]] == [49], "a record that waits alone"


@cocotb.test()
async def an_event_between_the_last_look_and_the_arming_is_not_slept_over(dut):
    tb = TB(dut)
    await tb.start([8, 8], [1000, 1000])
    await tb.produce(1, 5)
    await tb.arm(1, 4)
    await tb.cycles.cycle(2)
    assert len(tb.irqs[1]) == 1
    await tb.arm(1, 5)
    await tb.cycles.cycle(20)
    assert len(tb.irqs[1]) == 1, "nothing new"
    dut.cfg_queue_ctrl_enable.value = 1
    await tb.cycles.cycle()
    await tb.produce(1, 20)
    await tb.cycles.cycle(4)
    assert len(tb.irqs[1]) == 1, "switched off"
