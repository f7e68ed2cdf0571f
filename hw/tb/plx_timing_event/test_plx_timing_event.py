"""plx_timing_event: each edge is a record, in order, in the layout of layouts.toml, and no accepted edge is lost."""

import random
import struct

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

from clocks import Clock

PARAMETERS = [{"DEPTH": 8}]

FIELDS = ("edges", "timestamp_ns", "timestamp_valid", "cycle_ts", "burst", "flags", "clocks", "triggers")
WIDTHS = (4, 64, 1, 32, 32, 5, 64, 64)
# An end is reported before a start of the same cycle.
ORDER = (1, 0, 2, 3)


class TB:
    def __init__(self, dut):
        self.dut, self.expected, self.records, self.taken = dut, [], [], 0
        for name in FIELDS:
            getattr(dut, f"s_event_{name}").value = 0
        dut.s_event_valid.value, dut.cfg_queue.value = 0, 1
        dut.s_room.value, dut.m_event_ready.value, dut.clear.value = 1, 0, 0

    async def start(self):
        dut = self.dut
        dut.rst_net.value = dut.rst_core.value = 1
        cocotb.start_soon(Clock(dut.clk_net, 6400, "ps").start(start_high=False))
        cocotb.start_soon(Clock(dut.clk_core, 4000, "ps").start(start_high=False))
        for _ in range(6):
            await FallingEdge(dut.clk_net)
        dut.rst_net.value = dut.rst_core.value = 0
        cocotb.start_soon(self.take())
        return self

    async def take(self):
        """As plx_event_writer: at any time, one cycle."""
        dut = self.dut
        while True:
            await FallingEdge(dut.clk_core)
            offered = int(dut.m_event_valid.value)
            dut.m_event_ready.value = ready = offered and random.random() < 0.5
            if ready:
                assert int(dut.m_event_queue.value) == 1
                self.records.append(int(dut.m_event_record.value).to_bytes(64, "little"))

    async def tell(self, edges):
        """Edges of one cycle; False if they did not fit."""
        dut, told = self.dut, {name: random.getrandbits(width) for name, width in zip(FIELDS, WIDTHS)}
        told["edges"] = edges
        for name in FIELDS:
            getattr(dut, f"s_event_{name}").value = told[name]
        dut.s_event_valid.value = 1
        await ReadOnly()
        taken = int(dut.s_event_ready.value)
        await FallingEdge(dut.clk_net)
        dut.s_event_valid.value = 0
        for edge in ORDER if taken else ():
            if edges >> edge & 1:
                index = told["burst"] - 1 if edge == 1 and edges & 1 else told["burst"]
                self.expected.append(struct.pack(
                    "<QIIIIQQIIIIIHBB", told["timestamp_ns"], index % 2**32, 0, edge, told["flags"], told["clocks"],
                    told["triggers"], 0, 0, told["cycle_ts"], 0, len(self.expected), 0, 4, told["timestamp_valid"]))
        return taken

    async def finish(self):
        for _ in range(200):
            await FallingEdge(self.dut.clk_net)
        assert self.records == self.expected


@cocotb.test()
async def records_of_all_edges_in_order(dut):
    tb = await TB(dut).start()
    for edges in list(range(1, 16)) * 2:
        while not await tb.tell(edges):
            pass
        for _ in range(random.randrange(30)):
            await FallingEdge(dut.clk_net)
    await tb.finish()


@cocotb.test()
async def without_room_they_wait_and_then_there_is_no_place(dut):
    tb = await TB(dut).start()
    dut.s_room.value = 0
    places = [await tb.tell(5) for _ in range(20)]
    assert sum(places) == 8 and not any(places[8:]) and not tb.records
    dut.s_room.value = 1
    await tb.finish()
