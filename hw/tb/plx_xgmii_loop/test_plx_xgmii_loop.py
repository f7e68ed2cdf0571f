"""plx_xgmii_loop: connections of transmitters and receivers."""

import random

import cocotb
from cocotb.triggers import FallingEdge

from clocks import Clock

PARAMETERS = [{"PORTS": 1}, {"PORTS": 4}]
IDLES = (int.from_bytes([7] * 8, "little"), 0xFF)


def split(data, control, ports):
    return [(data.value.integer >> 64 * p & (1 << 64) - 1, control.value.integer >> 8 * p & 0xFF) for p in range(ports)]


@cocotb.test()
async def who_hears_whom(dut):
    """The wire, or the other port of the pair; a looped port's wire is idle."""
    ports = dut.PORTS.value
    cocotb.start_soon(Clock(dut.clk, 6400, "ps").start())
    pairs = [[0]] if ports == 1 else [[p, p + 1] for p in range(0, ports, 2)]
    for _ in range(40):
        looped = [p for pair in pairs if random.random() < 0.5 for p in pair]
        dut.cfg_loop.value = sum(1 << p for p in looped)
        for data, control in ((dut.mac_txd, dut.mac_txc), (dut.xgmii_rxd, dut.xgmii_rxc)):
            data.value, control.value = random.getrandbits(64 * ports), random.getrandbits(8 * ports)
        await FallingEdge(dut.clk)
        sent, wire = split(dut.mac_txd, dut.mac_txc, ports), split(dut.xgmii_rxd, dut.xgmii_rxc, ports)
        heard, out = split(dut.mac_rxd, dut.mac_rxc, ports), split(dut.xgmii_txd, dut.xgmii_txc, ports)
        for pair in pairs:
            for p, other in zip(pair, reversed(pair)):
                assert heard[p] == (sent[other] if p in looped else wire[p])
                assert out[p] == (IDLES if p in looped else sent[p])
