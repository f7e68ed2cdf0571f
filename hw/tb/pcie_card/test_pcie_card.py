"""pcie_card: the whole card through the shim, for function 0 and for a virtual one.

What hw/cosim shows of the card on its own host bus, for the block's: frames in and out, events, interrupts. Each test
names those of the conformance suite (hw/cosim/src/suite) of which it is a part.
"""

import cocotb
from cocotb.triggers import with_timeout
from users import EVENT, FUNCTION, Card, User, virtual

QUICK = ("the_card_says_what_it_is",)
REFUSED = 0x1150


@cocotb.test()
async def the_card_says_what_it_is(dut):
    """All blocks are linked, to each function; to those that own nothing, all else is closed.

    Suite: a_card_tells_what_it_is, functions_reach_their_own_registers_and_no_others."""
    tb = Card(dut)
    await tb.start()
    for number, function in enumerate(tb.all):
        bar, at, kinds = function.bar_window[0], 0, []
        while at or not kinds:
            kinds.append(await bar.read_dword(at) & 0xFFFF)
            at = await bar.read_dword(at + 4)
        assert kinds == [1, 2, 10, 3, 5, 6, 7, 4, 8, 8]
        assert await bar.read_dword(FUNCTION) == number
        await bar.write_dword(EVENT + 0x4008, 1)
    assert await tb.bar.read_dword(EVENT + 0x4008) == 1
    assert await tb.bar.read_qword(REFUSED) == 7


@cocotb.test()
async def frames_events_and_interrupts_of_function_0(dut):
    """A stream in its list, packets with the card's checksum, an interrupt behind its event; all as function 0.

    Suite: each_stream_has_its_own_list, checksums_are_none_given_or_the_cards, interrupts_come_by_count_or_by_time."""
    tb = Card(dut)
    await tb.start()
    user = User(tb, 0, 0)
    await user.set_up()
    await user.listen()
    await user.arm()
    await user.receive(3)
    await tb.until(lambda: user.interrupts == 1)
    await user.send(100, 0)
    await user.send(1000, 1)
    assert {number for number, _, _ in tb.requests} == {0}


@cocotb.test()
async def a_virtual_function_has_a_port_of_its_own(dut):
    """Beside function 0, both at once: each has its frames, events and interrupts, in its memory, as itself.

    Suite: functions_have_their_own_frames_memory_and_interrupts."""
    tb = Card(dut)
    await tb.start()
    first, other = User(tb, 0, 0), await virtual(tb, 5)
    await first.set_up()
    users = (first, other)
    for user in users:
        await user.listen()
        await user.arm()
    for task in [cocotb.start_soon(user.receive(4)) for user in users]:
        await with_timeout(task.join(), 200, "us")
    await tb.until(lambda: first.interrupts == other.interrupts == 1)
    for task in [cocotb.start_soon(user.send(300, 0)) for user in users]:
        await with_timeout(task.join(), 200, "us")
    assert {number for number, _, _ in tb.requests} == {0, 8}
