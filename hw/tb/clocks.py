"""Clocks that cost the benches little."""

from cocotb import simulator
from cocotb.triggers import GPITrigger
from cocotb.utils import get_sim_steps


class Edges(GPITrigger):
    """Toggles a signal for as long as a task waits for it, and never fires: no coroutine wakes up for an edge."""

    __slots__ = ("signal", "steps", "high")

    def __init__(self, signal, steps, high):
        super().__init__()
        self.signal, self.steps, self.high = signal, steps, high

    def prime(self, callback):
        self.wait()
        super().prime(callback)

    def wait(self):
        self.cbhdl = simulator.register_timed_callback(self.steps, self.toggle)

    def toggle(self):
        self.high = not self.high
        self.signal.setimmediatevalue(int(self.high))
        self.wait()


class Clock:
    """What cocotb.clock.Clock does, whose edges take two turns of the scheduler each."""

    def __init__(self, signal, period, units):
        self.signal, self.steps = signal, get_sim_steps(period, units) // 2

    async def start(self, start_high=True):
        self.signal.value = int(start_high)
        await Edges(self.signal, self.steps, start_high)
