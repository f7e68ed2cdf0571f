"""plx_queue_owners: the owner that function 0 wrote last, at once and for each asker; after a reset function 0."""

import random

import cocotb
from cocotb.triggers import Timer

from core import Cycles, joined, part

PARAMETERS = [{"ASKERS": 4}, {"ASKERS": 1}]
QUEUES, WORDS = 256, 32


class TB:
    """Owners as they should be; all askers look up queues in each cycle."""

    def __init__(self, dut):
        self.dut, self.cycles, self.askers = dut, Cycles(dut), int(dut.ASKERS.value)
        self.owners, self.waited = [0] * QUEUES, 0
        self.cycles.watchers.append(self.look)
        for name in ("win_valid", "win_write", "win_addr", "win_wdata", "win_wstrb", "s_queue"):
            getattr(dut, name).value = 0

    def ask(self):
        self.queues = [random.choice((0, 255, random.randrange(QUEUES))) for _ in range(self.askers)]
        self.dut.s_queue.value = joined(self.queues, 8)

    def look(self):
        for asker, queue in enumerate(self.queues):
            assert part(self.dut.m_owner, asker, 3) == self.owners[queue], f"asker {asker}, queue {queue}"

    async def step(self):
        self.ask()
        await self.cycles.cycle()

    async def access(self, word, data=None, strobe=15):
        """Until it is ready; what was read."""
        dut = self.dut
        dut.win_valid.value, dut.win_write.value, dut.win_addr.value = 1, data is not None, 4 * word
        dut.win_wdata.value, dut.win_wstrb.value = data or 0, strobe
        for self.waited in range(100):
            self.ask()
            await Timer(1, "ps")
            ready, read = int(dut.win_ready.value), dut.win_rdata.value
            await self.cycles.cycle()
            if ready:
                break
        else:
            raise AssertionError("no answer")
        dut.win_valid.value = 0
        if data is not None:
            for byte in (byte for byte in range(4) if strobe >> byte & 1):
                for half in range(2):
                    self.owners[8 * word + 2 * byte + half] = data >> (8 * byte + 4 * half) & 7
        return int(read)

    async def check(self):
        for word in range(WORDS):
            assert await self.access(word) == joined(self.owners[8 * word:8 * word + 8], 4), f"word {word}"

    async def write_all(self):
        """No owner is 0."""
        for word in random.sample(range(WORDS), WORDS):
            await self.access(word, joined([random.randrange(1, 8) for _ in range(8)], 4))

    async def reset(self):
        self.dut.rst.value = 1
        await self.step()
        self.owners = [0] * QUEUES
        self.dut.rst.value = 0


@cocotb.test()
async def an_owner_is_that_written_last(dut):
    tb = TB(dut)
    tb.ask()
    await tb.cycles.start()
    await tb.check()
    for _ in range(500):
        await tb.access(random.randrange(WORDS), random.getrandbits(32), random.randrange(16))
        await tb.step()
        assert tb.waited == 0
    await tb.check()


@cocotb.test()
async def after_a_reset_function_0_owns_all_and_registers_wait_until_it_does(dut):
    tb = TB(dut)
    tb.ask()
    await tb.cycles.start()
    await tb.check()
    for begins in (0, 1, 17, 31, 40):
        await tb.write_all()
        # A reset, and another one while the words are cleared.
        await tb.reset()
        for _ in range(begins):
            await tb.step()
        await tb.reset()
        first = random.randrange(WORDS)
        await tb.access(first, 0x7654_3211)
        assert tb.waited == WORDS, "a register waits until all words are cleared"
        await tb.check()
        await tb.reset()
        assert await tb.access(first) == 0
