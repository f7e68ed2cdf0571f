"""plx_card: TLB faults of a function, reported in its own queue, and what its reset leaves of them."""

import cocotb
from frames import udp
from test_function_resets import reset, write
from test_plx_card import CARD, CLOP, CTRL, EVENT, FUNCTIONS, HOST, STATUS, TB, TLB, VIRTUAL, port

PARAMETERS = [{"PORTS": 2, "TLB_ENTRIES": 4, "EVENT_QUEUES": 2, "RD_TAGS": 8, "RX_FIFO_WORDS": 256,
               "RX_FIFO_FRAMES": 32, "ARP_ENTRIES": 16}]
QUICK = ("a_function_is_told_of_its_missing_pages_and_no_other_is",
         "a_held_chunk_does_not_hold_up_the_reset_of_its_function",
         "a_reset_of_the_card_forgets_where_faults_are_told")

FAULT, OWNERS = FUNCTIONS + 0x20, FUNCTIONS + 0x80
# The queue of function 1, and its memory: of one life, and of the next.
QUEUE, FIRST, NEXT = EVENT + 0x4040, 0x5_0000_0000, 0x6_0000_0000
ITS_LIST = CLOP + 0x2000 + 32 * 0x40


async def started(dut):
    """Port 1 and queue 1 are function 1's, whose list has no page."""
    tb = await TB(dut).start()
    await tb.set_up()
    dut.cfg_bus_master.value = 7
    await tb.write(FUNCTIONS + 8, 1 << 4)
    await tb.write(OWNERS, 1 << 4)
    await has_queue(tb, FIRST)
    return tb


async def has_queue(tb, base):
    """Function 1 has its faults told in its queue."""
    await write(tb, QUEUE, base, 8)
    await write(tb, QUEUE + 8, 1 | 4 << 8)
    await write(tb, FAULT + 4, 1 | 1 << 8)
    await tb.settle()


async def has_list(tb):
    for register, value in ((0x8, 4096), (0xC, 4), (0x10, 1 << 8), (0x14, 60), (0x18, 1)):
        await write(tb, ITS_LIST + register, value)
    await tb.settle()


def told(tb, base):
    """Faults in a queue: address, function, number. All have been written by function 1."""
    found = [(data, func) for address, data, func in tb.writes.log if base <= address < base + 1024]
    assert all(func == 1 and len(data) == 64 and data[62] == 3 for data, func in found)
    number = lambda data, at, size: int.from_bytes(data[at:at + size], "little")
    return [(number(data, 16, 8), number(data, 24, 4), number(data, 56, 4)) for data, _ in found]


@cocotb.test()
async def a_function_is_told_of_its_missing_pages_and_no_other_is(dut):
    tb = await started(dut)
    at = VIRTUAL + 0x10000
    await tb.write(FAULT, 1)
    for count in (1, 2):
        tb.frames(1, [udp(b"without a page")])
        await tb.until(lambda count=count: len(told(tb, FIRST)) == count)
        assert told(tb, FIRST)[-1] == (at, 1, count - 1)
    # Faults of function 0 are reported to it.
    await tb.write(TLB + 0x1010, 0)
    tb.frames(0, [udp(b"without a page")])
    record = await tb.next_event()
    assert record[62] == 3 and int.from_bytes(record[16:24], "little") == VIRTUAL and not any(record[24:28])
    assert not any(record[56:60]), "its first fault"
    # In a queue of function 0 it is discarded.
    before = await tb.read(HOST + 0x148, size=8)
    await write(tb, FAULT + 4, 1)
    tb.frames(1, [udp(b"without a page")])
    await tb.step(400)
    assert await tb.read(HOST + 0x148, size=8) == before + 1 and tb.event() is None
    # Without events, nothing is told.
    await write(tb, FAULT + 4, 1 << 8)
    tb.frames(1, [udp(b"without a page")])
    await tb.step(400)
    assert len(told(tb, FIRST)) == 2 and tb.event() is None
    assert await tb.read(HOST + 0x148, size=8) == before + 1 and await tb.read(TLB + 0x108, size=8) == 0


@cocotb.test()
async def a_full_queue_of_a_function_delays_no_fault_of_another(dut):
    tb = await started(dut)
    await write(tb, QUEUE + 8, 0)
    await tb.write(FAULT, 1)
    await tb.write(TLB + 0x1010, 0)
    tb.frames(1, [udp(b"without a page") for _ in range(12)])
    await tb.step(2500)
    tb.frames(0, [udp(b"without a page")])
    record = await tb.next_event()
    assert record[62] == 3 and not any(record[24:28])
    assert await tb.read(TLB + 0x108, size=8) == 11 and not told(tb, FIRST)
    await write(tb, QUEUE + 8, 1 | 4 << 8)
    await tb.until(lambda: told(tb, FIRST))


@cocotb.test()
async def a_fault_does_not_outlive_the_reset_of_its_function(dut):
    """It waits for space, or for its turn behind a host that accepts no writes."""
    tb = await started(dut)
    await tb.write(FAULT, 1)
    for stall in (False, True):
        tb.writes.log.clear()
        if stall:
            tb.writes.stall = 1.0
        else:
            await write(tb, QUEUE + 8, 0)
        # Some wait for the host, one has its grant, one waits for it, one is in its place.
        tb.frames(1, [udp(b"without a page") for _ in range(12)])
        await tb.step(700)
        assert int(dut.memory.xlate.waiting.value) == 2
        assert int(dut.memory.xlate.m_event_valid.value) == stall
        dut.cfg_flr.value = 2
        if stall:
            # All registers have been written by then.
            await tb.step(2000)
            assert int(dut.memory.xlate.m_event_valid.value) and not int(dut.memory.xlate.waiting.value)
            tb.writes.stall = 0.0
        await tb.until(lambda: int(dut.flr_done.value) == 2)
        dut.cfg_flr.value = 0
        # What the host had been offered by then has left.
        before = len(told(tb, FIRST))
        assert before < 3 if stall else before == 0
        # The next one has its queue at once.
        assert await tb.read(FAULT + 4) == 0
        await has_queue(tb, NEXT)
        await tb.step(300)
        assert not told(tb, NEXT) and len(told(tb, FIRST)) == before
        # What it does itself is told, from 0 on.
        await write(tb, port(1, 0x200), 5000 | 1 << 31)
        await has_list(tb)
        await write(tb, port(1, 0x8), 3)
        await tb.settle()
        tb.frames(1, [udp(b"without a page")])
        await tb.until(lambda: told(tb, NEXT))
        assert told(tb, NEXT) == [(VIRTUAL + 0x10000, 1, 0)]
        await has_queue(tb, FIRST)


@cocotb.test()
async def a_held_chunk_does_not_hold_up_the_reset_of_its_function(dut):
    """However long function 0 lets it wait."""
    tb = await started(dut)
    await tb.write(TLB + 0x14, 0xFFFFFFFF)
    tb.frames(1, [udp(b"without a page")])
    await tb.until(lambda: told(tb, FIRST))
    await reset(tb, 1)


@cocotb.test()
async def a_reset_of_the_card_forgets_where_faults_are_told(dut):
    """Owners stay."""
    tb = await started(dut)
    await tb.write(FAULT, 1)
    await tb.write(CARD + CTRL, 1)
    for _ in range(20):
        if not await tb.read(CARD + STATUS) & 1:
            break
    assert [await tb.read(FAULT + at) for at in (0, 4)] == [0, 0] and await tb.read(OWNERS) == 1 << 4
