"""plx_evb_columns: queues and choices equal a model of lists, for each discipline; the next buffer in time."""

import random

import cocotb

import cycles as table
from core import Cycles

PARAMETERS = [{"COLUMNS": 5, "BUFFERS": 32}, {"COLUMNS": 2, "BUFFERS": 8}]

TURNS, WEIGHTS, LENGTH = range(3)


class Model:
    """The rules of the choice: the columns after the last one that was chosen come first."""

    def __init__(self, columns, discipline, weights, wait, partition):
        self.columns, self.discipline, self.weights = columns, discipline, weights
        self.wait, self.partition = wait, partition
        self.queues = [[] for _ in range(columns)]
        self.live, self.last, self.ready, self.passed = set(range(columns)), None, None, 0
        self.turns, self.next, self.balance = [0, 0], 0, [0] * columns

    def members(self, part):
        return [column for column in range(self.columns) if self.partition >> column & 1 == part]

    def choose(self):
        parts = 2 if self.partition else 1
        candidates = self.live - ({self.last} if len(self.live) > 1 else set())
        passed = 0
        for step in range(parts):
            part = (self.next + step) % parts
            mine = [column for column in self.members(part) if column in candidates]
            usable = [column for column in mine if self.wait or self.queues[column]]
            if not usable:
                passed += len(mine)
                continue
            turn = self.turns[part]

            def rank(column, turn=turn):
                score = [0, self.balance[column] + self.weights[column], len(self.queues[column])][self.discipline]
                return score, -((column - turn) % self.columns)

            best = max(usable, key=rank)
            if not self.queues[best]:
                return
            self.passed += passed + sum(rank(column) > rank(best) for column in mine if not self.queues[column])
            self.ready = (best, self.queues[best].pop(0))
            self.next, self.turns[part] = (part + 1) % parts, (best + 1) % self.columns
            if self.discipline == WEIGHTS:
                shares = [column for column in self.members(part) if column in self.live]
                total = sum(self.weights[column] for column in shares)
                for column in shares:
                    balance = self.balance[column] + self.weights[column] - (total if column == best else 0)
                    self.balance[column] = max(-total, min(total, balance))
            return

    def may_follow(self):
        return self.last != self.ready[0] or not self.live - {self.ready[0]}


class TB:
    def __init__(self, dut):
        self.dut, self.cycles, self.passed = dut, Cycles(dut), 0
        self.columns, self.buffers = int(dut.COLUMNS.value), int(dut.BUFFERS.value)
        self.cycles.watchers.append(self.look)
        for name in ("push", "pop", "give_back", "drop", "choose", "take", "w_weight", "look_column", "op_column",
                     "op_buffer", "weight_data"):
            getattr(dut, name).value = 0

    def look(self):
        if self.dut.inc_passed.value.is_resolvable:
            self.passed += int(self.dut.inc_passed.value)

    async def start(self, discipline, wait, partition, weights):
        dut = self.dut
        dut.cfg_discipline.value, dut.cfg_wait.value, dut.cfg_partition.value = discipline, wait, partition
        dut.cfg_live.value = (1 << self.columns) - 1
        await self.cycles.start()
        self.passed = 0
        for column, weight in enumerate(weights):
            dut.w_weight.value, dut.look_column.value, dut.weight_data.value = 1, column, weight
            await self.cycles.cycle()
        dut.w_weight.value = 0
        self.model = Model(self.columns, discipline, weights, wait, partition)

    async def pulse(self, name, column=0, buffer=0):
        self.dut.op_column.value, self.dut.op_buffer.value = column, buffer
        getattr(self.dut, name).value = 1
        await self.cycles.cycle()
        getattr(self.dut, name).value = 0

    async def rest(self):
        """Until no choice is under way and its queue has moved on."""
        spent = 0
        while not int(self.dut.rests.value) or int(self.dut.picks.value) or int(self.dut.fresh.value):
            await self.cycles.cycle()
            spent += 1
            assert spent < 3 * self.columns + 20
        # Columns that were passed are counted.
        await self.cycles.cycle(3)

    def check(self):
        dut, model = self.dut, self.model
        assert int(dut.ready.value) == (model.ready is not None), (model.ready, int(dut.ready.value))
        if model.ready:
            assert (int(dut.ready_column.value), int(dut.ready_buffer.value)) == model.ready
            assert int(dut.may_follow.value) == model.may_follow()
        assert self.passed == model.passed

    async def choose(self):
        """As the scheduler does after each change."""
        if self.model.ready and not self.model.may_follow():
            column, buffer = self.model.ready
            self.model.queues[column].insert(0, buffer)
            self.model.ready = None
            await self.pulse("give_back", column, buffer)
        if not self.model.ready:
            self.model.choose()
            await self.pulse("choose")
            await self.rest()
        self.check()

    async def take(self):
        self.model.last = self.model.ready[0]
        self.model.ready = None
        await self.pulse("take")
        self.model.choose()
        await self.rest()
        self.check()

    async def push(self, column, buffer):
        self.model.queues[column].append(buffer)
        await self.pulse("push", column, buffer)
        await self.choose()

    async def purge(self, column, gone):
        """Each buffer of a queue leaves it, and goes to its end unless it is gone."""
        for buffer in list(self.model.queues[column]):
            await self.pulse("pop", column)
            assert int(self.dut.reading.value) and int(self.dut.head.value) == buffer
            await self.cycles.cycle(2)
            self.model.queues[column].pop(0)
            if buffer not in gone:
                self.model.queues[column].append(buffer)
                await self.pulse("push", column, buffer)
        if self.model.ready and self.model.ready[1] in gone:
            self.model.ready = None
            await self.pulse("drop")
        await self.choose()


@cocotb.test()
async def queues_and_choices_as_the_model_says(dut):
    tb = TB(dut)
    for discipline in (TURNS, WEIGHTS, LENGTH):
        for wait in (0, 1):
            for partition in (0, random.randrange(1, 1 << tb.columns) & ~1):
                await tb.start(discipline, wait, partition, [random.randrange(1, 9) for _ in range(tb.columns)])
                out = list(range(tb.buffers))
                for _ in range(120):
                    act = random.random()
                    if act < 0.5 and out:
                        buffer = out.pop(random.randrange(len(out)))
                        await tb.push(buffer % tb.columns, buffer)
                    elif act < 0.85 and tb.model.ready:
                        out.append(tb.model.ready[1])
                        await tb.take()
                    elif act < 0.92:
                        column = random.randrange(tb.columns)
                        gone = set(random.sample(range(tb.buffers), tb.buffers // 3))
                        mine = tb.model.queues[column] + ([tb.model.ready[1]] if tb.model.ready else [])
                        gone &= set(mine)
                        out += sorted(gone)
                        await tb.purge(column, gone)
                    else:
                        column = random.randrange(tb.columns)
                        tb.model.live ^= {column}
                        dut.cfg_live.value = sum(1 << live for live in tb.model.live)
                        await tb.cycles.cycle(2)
                        await tb.choose()
                    for column, queue in enumerate(tb.model.queues):
                        dut.look_column.value = column
                        await tb.cycles.cycle()
                        assert int(dut.look_used.value) == len(queue)


@cocotb.test()
async def the_next_buffer_is_there_in_time(dut):
    tb = TB(dut)
    for discipline in (TURNS, WEIGHTS, LENGTH):
        await tb.start(discipline, 0, 0, [1] * tb.columns)
        for buffer in range(tb.buffers):
            await tb.push(buffer % tb.columns, buffer)
        for _ in range(tb.buffers - tb.columns):
            await tb.pulse("take")
            spent = 0
            while not int(dut.ready.value):
                await tb.cycles.cycle()
                spent += 1
            # Two walks over the columns come between, of which the second begins before the first one ends.
            table.check("sched_next", spent - (2 * tb.columns + 3 if discipline else 0))
            tb.model.last, tb.model.ready = tb.model.ready[0], None
            tb.model.choose()
            await tb.rest()
            tb.check()
