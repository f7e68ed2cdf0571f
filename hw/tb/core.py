"""Shared by the benches of clk_core: a cycle is set up at its falling edge and sampled just before its end."""

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

from clocks import Clock

CORE_PS = 4000


def part(signal, index, width):
    """Element of a flat vector; the others may be undefined."""
    bits = signal.value.binstr
    return int(bits[len(bits) - (index + 1) * width:len(bits) - index * width], 2)


def joined(values, width):
    """A flat vector of these elements."""
    return sum(value << (index * width) for index, value in enumerate(values))


class Cycles:
    """A module of one clock. `look` of each watcher is called once a cycle, with all signals settled."""

    def __init__(self, dut, clk=None):
        self.dut, self.clk, self.number, self.watchers = dut, clk or dut.clk, 0, []

    async def start(self, resets=None):
        """Inputs are set by now; the reset lasts some cycles."""
        cocotb.start_soon(Clock(self.clk, CORE_PS, "ps").start(start_high=False))
        for reset in resets or [self.dut.rst]:
            reset.value = 1
        for _ in range(3):
            await FallingEdge(self.clk)
        for reset in resets or [self.dut.rst]:
            reset.value = 0

    async def cycle(self, count=1):
        """Ends this cycle, and begins the next one."""
        for _ in range(count):
            await ReadOnly()
            for look in self.watchers:
                look()
            await FallingEdge(self.clk)
            self.number += 1


def clear(outcomes):
    """Has plx_clop_status cleared at once. After a reset it takes 1024 cycles, before which no payload is placed;
    the benches that say so wait for it."""
    for word in outcomes.counters.memory:
        word.value = 0
    outcomes.cleared.value = 1024


class Window:
    """Software's accesses to a table; `step` advances the rest of the bench meanwhile."""

    def __init__(self, dut, name, step):
        self.dut, self.name, self.step = dut, name, step
        self.valid, self.ready = getattr(dut, f"win_{name}_valid"), getattr(dut, f"win_{name}_ready")
        self.valid.value = 0

    async def access(self, address, data=None, strobe=15):
        self.valid.value, self.dut.win_write.value = 1, data is not None
        if hasattr(self.dut, "win_wstrb"):
            self.dut.win_wstrb.value = strobe
        self.dut.win_addr.value, self.dut.win_wdata.value = address, data or 0
        for _ in range(2000):
            taken = []
            await self.step(lambda: taken.append((int(self.ready.value), self.data())))
            if taken[0][0]:
                self.valid.value = 0
                return taken[0][1]
        raise AssertionError(f"no answer to an access of {self.name} at {address:#x}")

    def data(self):
        value = getattr(self.dut, f"win_{self.name}_rdata").value
        return value.integer if value.is_resolvable else None

    async def write(self, address, data):
        await self.access(address, data)

    async def write64(self, address, data):
        await self.access(address, data & 0xFFFFFFFF)
        await self.access(address + 4, data >> 32)

    async def read(self, address):
        return await self.access(address)
