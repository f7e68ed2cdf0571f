"""plx_net: announcements, lookups and software that meet in the table of neighbours."""

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from frames import MAC, arp, integer, some
from sending import judge, meta
from test_plx_net import FIXED, KNOWN, TB, asks, is_reply, is_request, place

PARAMETERS = [{"ARP_ENTRIES": 64, "ARP_TICK_BITS": 9, "ECHO_WORDS": 256}]


@cocotb.test()
async def an_announcement_is_stored_in_its_own_set_whenever_it_comes(dut):
    """Also in the cycle in which the one before it, which waited for a flush, is to be stored."""
    tb = await TB(dut).start()
    first, second = "10.0.0.40", "10.0.0.41"
    for late in range(40):
        receiving = cocotb.start_soon(tb.receive(*[arp(op=2, dst=MAC, psrc=ip) for ip in (first, second)]))
        await ClockCycles(dut.clk, late)
        dut.arp_flush.value = 1
        await RisingEdge(dut.clk)
        dut.arp_flush.value = 0
        await receiving
        await tb.quiet()
        for way in range(4):
            assert await tb.register(64 * place(first) + 16 * way) in (0, integer(first)), late


@cocotb.test()
async def a_neighbour_made_static_while_a_packet_waits_gets_it(dut):
    """Not another that announces its address."""
    tb = await TB(dut).start()
    router, static = "10.0.0.60", "02:00:00:00:56:78"
    data = some(100)
    sending = cocotb.start_soon(tb.transmit((data, meta(100, router))))
    await ClockCycles(dut.clk, 60)
    await tb.fix(router, static, way=3)
    await tb.receive(arp(op=2, dst=MAC, psrc=router, hwsrc="02:00:00:00:9a:bc"))
    await sending
    request, frame = await tb.quiet()
    assert is_request(request, router)
    judge(frame, data, router, neighbour=static, checksum=0)
    row = 64 * place(router) + 48
    assert await tb.register(row + 8) == 0x5678 and await tb.register(row + 12) == 0x200 | (KNOWN | FIXED) << 16


@cocotb.test()
async def requests_and_answers_that_have_not_begun_are_withdrawn_in_a_reset(dut):
    """They would leave with the addresses of the next owner, behind a pause of the link."""
    tb = await TB(dut).start()
    tb.sent.busy = 1.0
    await tb.receive(*[arp() for _ in range(3)])
    await ClockCycles(dut.clk, 20)
    await tb.transmit((b"one", meta(3, "10.0.0.99")))
    await ClockCycles(dut.clk, 40)
    dut.discard.value = 1
    await ClockCycles(dut.clk, 40)
    dut.discard.value = 0
    tb.sent.busy = 0.0
    answer, = await tb.quiet()
    assert not asks(answer) and is_reply(answer)
    assert tb.counts["tx_unresolved"] == 0
    # Requests of the next owner leave.
    sending = cocotb.start_soon(tb.transmit((b"two", meta(3, "10.0.0.98"))))
    await ClockCycles(dut.clk, 60)
    await tb.receive(arp(op=2, dst=MAC, psrc="10.0.0.98"))
    await sending
    request, frame = await tb.quiet()
    assert is_request(request, "10.0.0.98")
    judge(frame, b"two", "10.0.0.98", checksum=0)
