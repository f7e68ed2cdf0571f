"""net_loop: from the sent payload to the received payload, through both MACs, and through the PCS."""

import random
from collections import Counter

import cocotb
import cycles
from cocotb.triggers import ClockCycles, RisingEdge
from frames import PAYLOAD, Settings, kept, ones_sum, some
from sending import NONE, SUM, Packets, cycle, meta

from clocks import Clock

PARAMETERS = [{}, {"PCS": 1}]
# All neighbours: a port does not answer to itself by ARP.
ALL = "255.255.255.255"


class TB:
    def __init__(self, dut):
        self.dut, self.out, self.first, self.counts = dut, [], [], Counter()
        self.packets = Packets(dut)
        cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
        # Half a cycle apart.
        cocotb.start_soon(Clock(dut.clk_rx_net, 6400, "ps").start(start_high=False))

    async def start(self):
        Settings(streams={1: (5000, PAYLOAD)}).write(self.dut)
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 3)
        self.dut.rst.value = 0
        cocotb.start_soon(self.watch())
        while self.dut.locked.value != 1:
            await RisingEdge(self.dut.clk)
        await ClockCycles(self.dut.clk, 20)
        return self

    async def watch(self):
        dut, data = self.dut, None
        while True:
            await RisingEdge(dut.clk)
            for name in ("sent", "received", "lost"):
                self.counts[name] += getattr(dut, name).value.integer
            if dut.m_axis_payload_tvalid.value == 1:
                if data is None:
                    data = b""
                    self.first.append(cycle())
                count = dut.m_axis_payload_tkeep.value.integer.bit_length()
                data += kept(dut.m_axis_payload_tdata, count)
                if dut.m_axis_payload_tlast.value == 1:
                    assert dut.m_axis_payload_tuser.value == 0
                    self.out.append(data)
                    data = None

    async def pass_on(self, packets):
        offering = cocotb.start_soon(self.packets.metadata(packets))
        await self.packets.words(packets)
        await offering
        await ClockCycles(self.dut.clk, 60)
        sent = [data for data, _ in packets]
        assert self.out == sent
        self.out = []
        assert self.counts == Counter(sent=len(sent), received=len(sent), lost=0)
        self.counts.clear()


@cocotb.test()
async def latency(dut):
    """From the first word of 64 bytes accepted by plx_udp_tx to the first offered by plx_udp_rx."""
    tb = await TB(dut).start()
    for size in (64, 1024):
        tb.packets.taken, tb.first = [], []
        await tb.pass_on([(some(size), meta(size, ALL))])
        cycles.check("udp_loop_pcs" if dut.PCS.value else "udp_loop", tb.first[0] - tb.packets.taken[0])


@cocotb.test()
async def line_rate(dut):
    """The smallest frames without pause, 10.5 cycles each (IEEE 802.3, 4.4.2): none is lost, none is late."""
    tb = await TB(dut).start()
    await tb.pass_on([(some(18), meta(18, ALL)) for _ in range(100)])
    apart = (tb.first[-1] - tb.first[9]) / 90
    assert 10.4 < apart < 10.6, apart


@cocotb.test()
async def what_is_sent_is_received(dut):
    """All lengths, with and without a checksum, through the frame check of both sides."""
    tb = await TB(dut).start()
    packets = []
    for size in (*random.sample(range(100), 20), 0, 1472, 9000):
        data, mode = some(size), random.choice((NONE, SUM))
        packets.append((data, meta(size, ALL, checksum=ones_sum(data), mode=mode)))
    await tb.pass_on(packets)
