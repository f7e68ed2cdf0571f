"""pcie_card: what goes wrong in one function, beside another: a reset, a missing page, a failed read, a masked vector.

Each test names those of the conformance suite (hw/cosim/src/suite) of which it is a part.
"""

import struct

import cocotb
from cocotb.triggers import Timer, with_timeout
from frames import some, udp
from sriov import PENDING, reset
from users import AREA, BUFFERS, CLOP, FAULT, MISSING, RING, STATUS, TLB, TX, VIRTUAL, Card, User, virtual
from xgmii import received

# The card and its functions take 10 s to begin.
QUICK = ()
# An address that the host does not have: its root complex answers a read of it as an unsupported request.
NOWHERE = 0xA000_0000
# The virtual function, with port, queue and pages number 1; its number at the block.
VF, NUMBER = 5, 8


async def two(dut):
    """Function 0 and a virtual one, each with a port."""
    tb = Card(dut)
    await tb.start()
    first, other = User(tb, 0, 0), await virtual(tb, VF)
    await first.set_up()
    return tb, first, other


async def together(*tasks):
    for task in [cocotb.start_soon(task) for task in tasks]:
        await with_timeout(task.join(), 100, "us")


@cocotb.test()
async def a_reset_of_one_function_leaves_the_other(dut):
    """A function level reset under traffic of both: the function's page, ring, list, queue and stream are off and its
    vector is masked, the other loses nothing, and it begins anew.

    Suite: a_reset_of_one_function_leaves_the_others."""
    tb, first, other = await two(dut)
    await other.listen()
    await together(first.receive(2), other.receive(2))
    traffic = cocotb.start_soon(first.receive(48))
    tb.frames(1, [udp(some(400)) for _ in range(16)])
    for number in range(3):
        other.post(500, number)
    await other.ring(3)
    await Timer(2, "us")
    assert tb.heard[1], "frames are still to come"
    await reset(other.device)
    await tb.until(lambda: NUMBER in tb.block.finished)
    assert not traffic.done(), "function 0 receives all the while"
    # What was in the block has arrived.
    await Timer(1, "us")
    before = len(tb.requests)
    await tb.until(lambda: not tb.heard[1])
    for register, enable in ((other.entry + 0x10, 1), (other.tx + 8, 1), (other.clop + 0x18, 1), (other.queue + 8, 1),
                             (other.port + 0x200, 1 << 31)):
        assert not await other.bar.read_dword(register) & enable, hex(register)
    assert await other.bar.read_dword(STATUS + 8 * VF) == 0, "at rest, not a master"
    assert await other.device.bar_window[2].read_dword(other.vector + 12) == 1, "masked"
    await with_timeout(traffic.join(), 100, "us")
    await first.send(200, 0)
    assert {number for number, _, _ in tb.requests[before:]} == {0}
    again = User(tb, VF, 1)
    await again.set_up()
    await again.receive(2)
    await again.send(100, 0)


@cocotb.test()
async def a_missing_page_is_told_to_its_function(dut):
    """Its payload waits, and is placed when the function enters the page; behind the timeout it is lost, and the next one
    is placed. The other function receives meanwhile, and gets no report.

    Suite: a_missing_page_holds_its_payload, a_page_that_never_comes_costs_its_payload,
    missing_pages_are_told_to_their_function."""
    tb, first, other = await two(dut)
    for user in (first, other):
        await user.bar.write_dword(FAULT + 4 * user.func, 1 | user.own << 8)
    # 400 us: for ever.
    await tb.bar.write_dword(TLB + 0x14, 100_000)

    async def missed(number):
        """A frame for which there is no page: address, function, reason and number of the report."""
        await other.leave()
        payload = some(200)
        tb.frames(1, [udp(payload)])
        record = await other.event()
        assert record[62] == MISSING
        address, func, reason = struct.unpack_from("<QII", record, 16)
        assert VIRTUAL + BUFFERS <= address < VIRTUAL + AREA and (func, reason, record[56]) == (VF, 0, number), record.hex()
        return payload
    held = await missed(0)
    await first.receive(2)
    assert other.record(other.seen) is None, "it waits"
    await other.enter()
    assert await other.buffer() == [held]
    assert await tb.bar.read_qword(TLB + 0x110) == 1 and await tb.bar.read_qword(TLB + 0x100) == 0
    # 4 us.
    await tb.bar.write_dword(TLB + 0x14, 1000)
    await missed(1)
    await Timer(2, "us")
    lost = CLOP + 0x4020 + 32 * 0x40
    assert await other.bar.read_qword(lost) == 0
    await Timer(4, "us")
    assert await other.bar.read_qword(lost) == 1
    assert await tb.bar.read_qword(TLB + 0x110) == 2 and await tb.bar.read_qword(TLB + 0x100) == 1
    await other.enter()
    await together(first.receive(2), other.receive(1))


@cocotb.test()
async def reads_that_fail_cost_their_packet_or_stop_the_ring(dut):
    """A packet that the host cannot read: it does not leave, its event says so, and the next one leaves. Descriptors that
    it cannot read: the ring stops, until it is enabled again. The other function sends meanwhile.

    Suite: reads_that_fail_cost_their_packet, a_ring_whose_descriptors_cannot_be_read_stops."""
    tb, first, other = await two(dut)
    failed, said = TX + 0x418 + 0x20, tb.said[1]
    said.clear()
    other.post(300, 0, NOWHERE - other.base)
    await other.ring(1)
    assert await other.sent() == (1, 2)
    assert await other.bar.read_qword(failed) == await tb.counter("rd_unsupported") == 1
    assert not received(said)
    await together(first.send(300, 0), other.send(300, 1))
    assert len(received(said)) == 1, "and no other"
    said.clear()
    await other.begin_ring(NOWHERE)
    await other.ring(1)
    assert (await other.sent())[1] == 3
    assert await tb.counter("rd_unsupported") == 2
    await other.ring(2)
    await first.send(100, 1)
    assert await other.bar.read_dword(other.tx + 0x14) & 3 == 3, "idle, in error"
    assert not received(said) and other.record(other.seen) is None
    await other.begin_ring(other.base + RING)
    await other.send(100, 0)
    assert await other.bar.read_dword(other.tx + 0x14) & 3 == 1
    assert await other.bar.read_qword(failed) == 1 and await tb.bar.read_qword(failed - 0x20) == 0


@cocotb.test()
async def a_masked_interrupt_comes_when_it_is_unmasked(dut):
    """Once, although it was raised twice; that of the other function comes at once.

    Suite: a_masked_vector_keeps_its_interrupt."""
    tb, first, other = await two(dut)
    for user in (first, other):
        await user.listen()
    table = other.device.bar_window[2]
    await table.write_dword(other.vector + 12, 1)
    for times in (1, 2):
        for user in (first, other):
            await user.arm()
        await together(first.receive(1), other.receive(1))
        await tb.until(lambda times=times: first.interrupts == times)
        assert await table.read_dword(PENDING) == 1 << other.own
    await Timer(1, "us")
    assert other.interrupts == 0
    await table.write_dword(other.vector + 12, 0)
    await tb.until(lambda: other.interrupts)
    await Timer(1, "us")
    assert await table.read_dword(PENDING) == 0 and (first.interrupts, other.interrupts) == (2, 1)
