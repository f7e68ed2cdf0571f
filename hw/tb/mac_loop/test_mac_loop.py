"""Both halves of the MAC, back to back, with the streams of cocotbext-axi at their ends."""

import logging
import random

import cocotb
import cycles
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamMonitor, AxiStreamSource
from xgmii import payload

from clocks import Clock

PERIOD = 6400


class TB:
    def __init__(self, dut):
        self.dut = dut
        self.counts = dict.fromkeys(("sent", "aborted", "received", "symbol"), 0)
        cocotb.start_soon(Clock(dut.clk, PERIOD, "ps").start())

    async def start(self):
        dut = self.dut
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_tx"), dut.clk, dut.rst)
        dut.rst.value = 1
        await ClockCycles(dut.clk, 4)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 8)
        self.monitor = AxiStreamMonitor(AxiStreamBus.from_prefix(dut, "m_axis_rx"), dut.clk)
        for end in (self.source, self.monitor):
            end.log.setLevel(logging.WARNING)
        cocotb.start_soon(self.watch())
        return self

    async def watch(self):
        while True:
            await RisingEdge(self.dut.clk)
            for name in self.counts:
                self.counts[name] += getattr(self.dut, f"inc_{name}").value.integer

    async def send(self, frames):
        """Frames, each marked by its sender: bad or not."""
        for data, bad in frames:
            await self.source.send(AxiStreamFrame(data, tuser=int(bad)))
        await self.source.wait()
        await ClockCycles(self.dut.clk, 24)

    def received(self):
        frames = []
        while not self.monitor.empty():
            frame = self.monitor.recv_nowait()
            frames.append((bytes(frame.tdata), bool(frame.tuser[-1] if isinstance(frame.tuser, list) else frame.tuser)))
        return frames


@cocotb.test()
async def what_is_sent_is_received(dut):
    """All lengths around the padding and of the last word, without a pause between frames."""
    tb = await TB(dut).start()
    sent = [payload(size) for size in (*range(1, 73, 3), *range(58, 76), 1514)]
    random.shuffle(sent)
    await tb.send([(data, False) for data in sent])
    assert tb.received() == [(data + bytes(max(60 - len(data), 0)), False) for data in sent]
    assert tb.counts == {"sent": len(sent), "received": len(sent), "aborted": 0, "symbol": 0}


@cocotb.test()
async def what_is_spoilt_is_bad(dut):
    """A frame that its sender aborted never arrives as good."""
    tb = await TB(dut).start()
    frames = [(payload(random.choice((1, 8, 60, 64, 100, 255))), random.random() < 0.4) for _ in range(60)]
    await tb.send(frames)
    good = [data + bytes(max(60 - len(data), 0)) for data, bad in frames if not bad]
    assert [data for data, bad in tb.received() if not bad] == good
    spoilt = len(frames) - len(good)
    assert tb.counts == {"sent": len(good), "received": len(frames), "aborted": spoilt, "symbol": spoilt}


@cocotb.test()
async def latency(dut):
    """First word in to first word out."""
    tb = await TB(dut).start()
    sending = cocotb.start_soon(tb.send([(payload(64), False)]))
    edges = []
    for valid in (dut.s_axis_tx_tvalid, dut.m_axis_rx_tvalid):
        while valid.value == 0:
            await RisingEdge(dut.clk)
        edges.append(int(get_sim_time("ps")) // PERIOD)
    await sending
    cycles.check("mac_loop", edges[1] - edges[0])
