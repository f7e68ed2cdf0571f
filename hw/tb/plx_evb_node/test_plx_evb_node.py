"""plx_evb_node: a message waits for its transfer, passes a long one, and is forwarded; each in time."""

import random

import cocotb

import cycles as table
from core import Cycles
from evb import FLOW, RUN, flow, pack, unpack

PARAMETERS = [{"ID": 0, "BUFFERS": 16, "SLOTS": 8}]

# Cycles of a link, which the row of the table includes.
LINK = 2


class TB:
    def __init__(self, dut):
        self.dut, self.cycles, self.out, self.begun = dut, Cycles(dut), [], []
        self.cycles.watchers.append(self.look)
        self.stall = 0.0
        for name in ("w_table", "w_descriptor", "w_address", "s_store_valid", "s_store_bytes", "s_flow_valid",
                     "s_flow_data", "s_done", "setup"):
            getattr(dut, name).value = 0
        dut.m_flow_ready.value = 1
        dut.cfg_run.value, dut.cfg_descriptors.value = RUN, 12
        dut.cfg_slot.value, dut.cfg_bypass_above.value = 1024, 256
        self.was_running = False

    def look(self):
        dut = self.dut
        if int(dut.m_flow_valid.value) and int(dut.m_flow_ready.value):
            self.out.append((self.cycles.number, unpack(FLOW, int(dut.m_flow_data.value))))
        running = int(dut.m_transfer_valid.value)
        if running and not self.was_running:
            self.begun.append((self.cycles.number, int(dut.m_transfer_address.value), int(dut.m_transfer_bytes.value)))
        self.was_running = running

    async def start(self):
        await self.cycles.start()
        for descriptor in range(12):
            self.dut.w_table.value, self.dut.w_descriptor.value = 1, descriptor
            self.dut.w_address.value = descriptor << 20
            await self.cycles.cycle()
        self.dut.w_table.value = 0
        await self.cycles.cycle(20)

    async def cycle(self, count=1):
        for _ in range(count):
            self.dut.m_flow_ready.value = random.random() >= self.stall
            await self.cycles.cycle()

    async def offer(self, stream, **values):
        """One word of a stream; returns the cycle in which it was taken."""
        for name, value in values.items():
            getattr(self.dut, f"s_{stream}_{name}").value = value
        getattr(self.dut, f"s_{stream}_valid").value = 1
        taken = []
        ready = getattr(self.dut, f"s_{stream}_ready")
        watch = lambda: taken.append(int(ready.value))
        self.cycles.watchers.append(watch)
        while not taken or not taken[-1]:
            await self.cycle()
        self.cycles.watchers.remove(watch)
        getattr(self.dut, f"s_{stream}_valid").value = 0
        return self.cycles.number - 1

    async def store(self, length):
        await self.offer("store", bytes=length)

    async def send(self, **values):
        message = flow(**values)
        return await self.offer("flow", data=pack(FLOW, **message))

    async def set_up(self, run, done=0):
        """A set-up, in whose cycle a transfer may end."""
        dut = self.dut
        dut.setup.value, dut.s_done.value = 1, done
        await self.cycle()
        dut.setup.value = dut.s_done.value = 0
        dut.cfg_run.value = run
        assert not int(dut.inc.value), "an event of the cycle before is counted"
        assert not int(dut.m_flow_valid.value) and not int(dut.decided.value)
        self.out.clear()
        self.begun.clear()

    async def done(self):
        self.dut.s_done.value = 1
        await self.cycle()
        self.dut.s_done.value = 0
        return self.cycles.number - 1


@cocotb.test()
async def within_ten_cycles_beside_the_transfer(dut):
    tb = TB(dut)
    await tb.start()
    await tb.store(120)
    came = await tb.send(number=0, descriptor=5)
    await tb.cycle(12)
    assert [(address, size) for _, address, size in tb.begun] == [(5 << 20, 128)]
    ended = await tb.done()
    await tb.cycle(12)
    assert [message for _, message in tb.out] == [flow(number=0, descriptor=5, pending=2)]
    table.check("flow_node", tb.begun[0][0] - came + tb.out[0][0] - ended + LINK)


@cocotb.test()
async def the_next_transfer_is_looked_up_while_one_runs(dut):
    tb = TB(dut)
    await tb.start()
    for number in range(3):
        await tb.store(64)
    for number in range(3):
        await tb.send(number=number, descriptor=number)
    await tb.cycle(20)
    for number in range(2):
        ended = await tb.done()
        await tb.cycle(8)
        assert tb.begun[number + 1][0] - ended <= 2, "the next transfer begins at once"
    await tb.done()
    await tb.cycle(8)
    assert [message["number"] for _, message in tb.out] == [0, 1, 2]
    assert all(message["pending"] == 2 for _, message in tb.out)


@cocotb.test()
async def behind_a_long_transfer_messages_pass_untouched(dut):
    tb = TB(dut)
    tb.stall = 0.4
    await tb.start()
    for length in (64, 500, 64, 64, 64):
        await tb.store(length)
    await tb.send(number=0)
    # They wait behind a short transfer, then behind a long one; the last is held.
    await tb.send(number=1, descriptor=1, hold=0)
    await tb.send(number=2, descriptor=2, hold=0)
    await tb.send(number=3, descriptor=3, hold=1)
    await tb.cycle(10)
    assert not tb.out
    await tb.done()
    await tb.cycle(30)
    assert [(message["number"], message["pending"]) for _, message in tb.out] == [(0, 2), (2, 3)]
    await tb.send(number=4, descriptor=4, hold=0)
    await tb.cycle(20)
    assert (tb.out[-1][1]["number"], tb.out[-1][1]["pending"]) == (4, 3)
    await tb.done()
    await tb.cycle(20)
    await tb.done()
    await tb.cycle(20)
    assert [message["number"] for _, message in tb.out] == [0, 2, 4, 1, 3]
    # What passed comes round again, and is held.
    await tb.send(number=2, descriptor=2, loops=1)
    await tb.cycle(10)
    await tb.done()
    await tb.cycle(20)
    assert tb.out[-1][1] == flow(number=2, descriptor=2, loops=1, pending=2)


@cocotb.test()
async def what_is_not_its_own_or_comes_again(dut):
    tb = TB(dut)
    await tb.start()
    await tb.store(64)
    await tb.send(number=0)
    await tb.send(number=0)
    await tb.send(number=0, attempt=0)
    await tb.send(number=1, run=RUN + 1)
    await tb.send(number=1, descriptor=12)
    await tb.cycle(10)
    assert not tb.out and len(tb.begun) == 1, "repeated, given up, another run, no such buffer"
    await tb.done()
    await tb.send(number=1, pending=2)
    await tb.send(number=9, event=0, descriptor=0, decided=1)
    await tb.send(number=0, attempt=2)
    await tb.cycle(20)
    assert [(m["number"], m["pending"]) for _, m in tb.out] == [(0, 2), (1, 2), (9, 2), (0, 2)]
    assert int(dut.decided.value) == 1 and len(tb.begun) == 1, "a decided event is not transferred again"


@cocotb.test()
async def a_new_attempt_takes_the_place_of_the_one_that_waits(dut):
    tb = TB(dut)
    await tb.start()
    for _ in range(5):
        await tb.store(64)
    for number in range(4):
        await tb.send(number=number, descriptor=number)
    # Of the second in the queue, then of the first; of one that does not wait, which is new at the end.
    await tb.send(number=2, descriptor=6, attempt=2)
    await tb.send(number=1, descriptor=5, attempt=2)
    await tb.send(number=0, descriptor=4, attempt=2)
    # The one that was given up comes late.
    await tb.send(number=2, descriptor=2)
    for _ in range(5):
        await tb.cycle(20)
        await tb.done()
    await tb.cycle(20)
    assert [address >> 20 for _, address, _ in tb.begun] == [0, 5, 6, 3, 4]
    found = [(message["number"], message["attempt"], message["pending"]) for _, message in tb.out]
    assert found == [(0, 1, 2), (1, 2, 2), (2, 2, 2), (3, 1, 2), (0, 2, 2)]


async def events(tb, run, lengths):
    """Event 0 and those behind it, one after the other, of these lengths."""
    for length in lengths:
        await tb.store(length)
    for number, length in enumerate(lengths):
        await tb.send(number=number, descriptor=number, run=run, decided=number)
        await tb.cycle(12)
        assert tb.begun[number:] == [(tb.begun[-1][0], number << 20, 8 + length)]
        assert len(tb.out) == number, "not before its transfer is done"
        await tb.done()
        await tb.cycle(12)
        assert tb.out[-1][1] == flow(number=number, descriptor=number, run=run, decided=number, pending=2)


@cocotb.test()
async def a_second_run_begins_with_event_0(dut):
    tb = TB(dut)
    await tb.start()
    for run, lengths in ((RUN, (64, 128, 64)), (RUN + 1, (256, 64)), (RUN + 1, (128, 8, 16, 24))):
        await events(tb, run, lengths)
        # More is stored and waits, some of it in the output buffer.
        tb.stall = 1.0
        for number in range(len(lengths), 8):
            await tb.store(40)
            await tb.send(number=number, descriptor=number, run=run)
        await tb.cycle(20)
        await tb.done()
        await tb.cycle(20)
        assert int(dut.m_flow_valid.value)
        await tb.set_up(run + 1)
        tb.stall = 0.0
        await tb.cycle(20)
        assert int(dut.m_transfer_valid.value) and not tb.out
        await tb.done()
        # Of both runs, where their numbers differ.
        await tb.send(number=len(lengths), descriptor=1, run=run)
        await tb.cycle(20)
        assert not tb.out and not int(dut.m_transfer_valid.value)
        await tb.set_up(RUN + 1)


@cocotb.test()
async def a_transfer_ends_in_the_run_in_which_it_began(dut):
    tb = TB(dut)
    await tb.start()
    for late in range(24):
        for end in range(4):
            await tb.store(64)
            await tb.store(64)
            await tb.send(number=0, descriptor=3)
            sender = cocotb.start_soon(tb.send(number=1, descriptor=4)) if late > 1 else None
            await tb.cycle(late)
            if sender and not sender.done():
                sender.kill()
                dut.s_flow_valid.value = 0
            runs = int(dut.m_transfer_valid.value)
            # It ends before the set-up, with it, or after it.
            if runs and end == 0:
                await tb.done()
            await tb.set_up(RUN, done=runs and end == 1)
            assert int(dut.m_transfer_valid.value) == (runs and end > 1), (late, end)
            # The new run's data and message are there at once.
            store = cocotb.start_soon(tb.store(256))
            message = cocotb.start_soon(tb.send(number=0, descriptor=5))
            await tb.cycle(end)
            if runs and end > 1:
                await tb.cycle(20)
                assert int(dut.m_transfer_valid.value) and int(dut.m_transfer_address.value) == 3 << 20
                assert not store.done() and not message.done()
                await tb.done()
            await store
            await message
            await tb.cycle(12)
            assert int(dut.m_transfer_valid.value) and not tb.out, "what ended was of the run before"
            assert (int(dut.m_transfer_address.value), int(dut.m_transfer_bytes.value)) == (5 << 20, 264)
            await tb.done()
            await tb.cycle(12)
            assert [m for _, m in tb.out] == [flow(number=0, descriptor=5, pending=2)], (late, end)
            await tb.set_up(RUN)
