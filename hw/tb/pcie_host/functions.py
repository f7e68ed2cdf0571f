"""What the benches of virtual functions share: memory of each function, and traffic of all of them."""

import random

import cocotb
import sriov
from cocotb.triggers import with_timeout
from traffic import patient

# Owners of the first eight queues (hw/docs/registers.md); memory of each function, and its number at the block.
QUEUES = 0x1880
AREA = 8192
NUMBERS = (0, *range(sriov.FIRST, sriov.FIRST + sriov.TOTAL))


async def functions(dut, timeout=2500, quarantine=50):
    """The bench with all functions, which the host lets master the bus, each in its own memory alone. The data of 128
    open reads take some 2000 cycles on the link."""
    tb = await patient(dut, timeout, quarantine)
    tb.told = []

    def allows(tlp):
        at, number = tlp.address - tb.base, int(tlp.requester_id) & 0xFF
        if 0 <= at < 8 * AREA:
            return tlp.requester_id.bus == tb.block.bus_num and number == NUMBERS[at // AREA]
        # Interrupts: the number of the requester, and the message.
        tb.told.append((number, int.from_bytes(tlp.get_data(), "little")))
        return True
    tb.requests.allows = allows
    await populate(tb)
    return tb


async def populate(tb):
    tb.all = [tb.device, *await sriov.enable(tb.device)]
    for vf in tb.all[1:]:
        await vf.set_master()
    await tb.settle(20)


async def until(tb, condition, patience=1000):
    for _ in range(patience):
        if condition():
            return
        await tb.settle(10)
    raise AssertionError("it did not come to that")


class Traffic:
    """Reads and writes of all functions at random, until stopped. Those in `rough` may fail, the others not."""

    def __init__(self, tb, rough=()):
        self.tb, self.rough, self.asked, self.stopped = tb, set(rough), [], False
        self.model, self.good, self.bad = bytearray(tb.memory), [0] * 8, [0] * 8
        self.tasks = [cocotb.start_soon(task) for task in (self.ask(), self.store())]

    async def ask(self):
        turns = []
        while not self.stopped:
            turns = turns or random.sample(range(8), 8)
            func, length = turns.pop(), random.choice((1, 4, 60, 64, 200, 512, 1500))
            at = AREA * func + random.randrange(AREA // 2 - length)
            self.asked.append((func, at, length))
            await self.tb.reader.request(self.tb.base + at, length, func)

    async def store(self):
        while not self.stopped:
            func, data = random.randrange(8), random.randbytes(random.choice((4, 60, 64, 256, 1000)))
            at = AREA * func + AREA // 2 + random.randrange(0, AREA // 2 - len(data), 4)
            self.model[at:at + len(data)] = data
            await self.tb.writer.write(self.tb.base + at, data, func)

    async def stop(self):
        self.stopped = True
        for task in self.tasks:
            await with_timeout(task.join(), 400, "us")
        for (func, at, length), found in zip(self.asked, await with_timeout(self.tb.reader.ended(len(self.asked)), 400, "us")):
            assert found == self.tb.memory[at:at + length] or found is None and func in self.rough, (func, at, length)
            self.bad[func] += found is None
            self.good[func] += found is not None

        def same(func):
            place = slice(AREA * func, AREA * func + AREA)
            return func in self.rough or self.tb.memory[place] == self.model[place]
        await until(self.tb, lambda: all(same(func) for func in range(8)))
        return self


async def calm(tb, cycles=400):
    """Traffic of all, of which nothing fails."""
    traffic = Traffic(tb)
    await tb.settle(cycles)
    await traffic.stop()
    assert min(traffic.good) > 0, traffic.good
