"""pcie_host: the link is retrained under traffic, and nothing is lost.

The model has no link states. `Link` has what the shim sees of Recovery: the ports pass no TLP, and no DLLP, so no credit
comes back; the block takes nothing on RQ and CC, and delivers nothing on RC and CQ.
"""

import random
from functools import partial

import cocotb
from cocotb.triggers import Event, RisingEdge, with_timeout
from pcie import SCRATCH
from traffic import both, counted, ready

QUICK = ()
# Cycles until the block and its ports rest: what was on the wire has arrived, and the queue for the wire is full.
REST = 24


class Link:
    """Both directions of the link, and the four streams of the block."""

    def __init__(self, tb):
        self.tb, self.up = tb, Event()
        self.up.set()
        block, end = tb.block, tb.block.upstream_port
        for port in (end, end.other):
            port.handle_tx = partial(self.pass_on, port.handle_tx)
        self.streams = {"m_axis_rq": block.rq_sink, "m_axis_cc": block.cc_sink, "s_axis_rc": block.rc_source,
                        "s_axis_cq": block.cq_source}

    async def pass_on(self, send, packet):
        await self.up.wait()
        await send(packet)

    def signal(self, stream, name):
        return getattr(self.tb.dut, f"{stream}_{name}").value

    def offers(self, stream):
        return self.signal(stream, "tvalid") == 1

    def inside(self, stream):
        """A word is offered that is not the last of its TLP."""
        return self.offers(stream) and self.signal(stream, "tlast") == 0

    def offered(self):
        """What the card offers to the block: of each stream, its word or none."""
        return [[self.signal(stream, name).binstr for name in ("tdata", "tkeep", "tuser", "tlast")]
                if self.offers(stream) else None for stream in ("m_axis_rq", "m_axis_cc")]

    async def retrain(self, cycles):
        """Holds everything for so many cycles, and lets it go, the link and the streams in any order."""
        tb, credits = self.tb, self.tb.dut.cfg_fc_nph
        self.up.clear()
        for side in self.streams.values():
            side.pause = True
        await tb.settle(REST)
        offered, available = self.offered(), int(credits.value)
        for _ in range(cycles):
            await RisingEdge(tb.dut.clk)
            for stream in self.streams:
                assert not (self.offers(stream) and self.signal(stream, "tready") == 1), stream
        assert int(credits.value) == available
        for before, now in zip(offered, self.offered()):
            assert before in (None, now), "an offer is taken back"
        sides = [self.up, *self.streams.values()]
        for side in random.sample(sides, len(sides)):
            if side is self.up:
                side.set()
            else:
                side.pause = False
            await tb.settle(random.randrange(3))


async def registers(tb, stop):
    """Writes and reads of registers, one after the other; gives their number."""
    count = 0
    while not stop():
        at, value = SCRATCH + 4 * random.randrange(64), random.getrandbits(32)
        await tb.bar.write_dword(at, value)
        assert await tb.bar.read_dword(at) == value
        count += 1
    return count


@cocotb.test()
async def nothing_is_lost_while_the_link_is_retrained(dut):
    """For 1 to 4 us, while a TLP is on each of the streams, or at any time, with reads open and a register access under
    way: all reads, writes and register accesses complete, once, with their data; credits and tags are free again."""
    tb = await ready(dut)
    tb.counts, link = {}, Link(tb)
    traffic = cocotb.start_soon(both(tb, 120))
    accesses = cocotb.start_soon(registers(tb, traffic.done))
    moments = [lambda: link.inside("m_axis_rq"), lambda: link.inside("s_axis_rc"), lambda: link.offers("m_axis_cc"),
               lambda: link.offers("s_axis_cq"), lambda: True]
    open_reads = lambda: sum(request is not None for request in tb.block.active_request)
    for moment in 2 * moments:
        await tb.settle(random.randrange(10, 100))
        while not (moment() and open_reads()):
            await RisingEdge(dut.clk)
        await link.retrain(random.randrange(250, 1000))
    assert not traffic.done()
    await traffic
    assert await with_timeout(accesses, 50, "us") > 10
    await both(tb, 20)
    await counted(tb)
    assert await tb.counter("reads") == len(tb.requests.reads)
    assert await tb.counter("writes") == len(tb.requests.writes)
    assert not open_reads() and int(dut.shim.rq.pending.value) == 0
    assert not any(int(count.value) for count in (dut.refused, dut.dropped, dut.discontinued, dut.unmastered, dut.lost))
