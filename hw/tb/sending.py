"""Packets for plx_udp_tx, the output frames, and their check by scapy."""

import random

from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time
from frames import IP_ADDRESS, MAC, PEER, PEER_IP, integer, kept, ones_sum
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

PERIOD = 6400
NONE, GIVEN, SUM = range(3)


def cycle():
    return int(get_sim_time("ps")) // PERIOD


def meta(length, ip=PEER_IP, dport=5000, sport=4000, checksum=0, mode=NONE, raw=0, cookie=0, told=0):
    """TX_META."""
    return (integer(ip) | dport << 32 | sport << 48 | length << 64 | checksum << 80 | mode << 96 | raw << 98
            | cookie << 99 | told << 131)


class Packets:
    """Offers packets: words as fast as they are accepted, and the metadata with the first, or before."""

    def __init__(self, dut):
        self.dut, self.taken, self.open = dut, [], 0
        for signal in ("tx_tvalid", "tx_tdata", "tx_tkeep", "tx_tlast", "meta_tvalid", "meta_tdata"):
            getattr(dut, f"s_axis_{signal}").value = 0

    async def metadata(self, packets):
        dut = self.dut
        for _, word in packets:
            dut.s_axis_meta_tvalid.value, dut.s_axis_meta_tdata.value = 1, word
            await RisingEdge(dut.clk)
            while dut.s_axis_meta_tready.value != 1:
                await RisingEdge(dut.clk)
            dut.s_axis_meta_tvalid.value = 0

    async def words(self, packets, pause=0.0):
        """`pause`: how often a gap follows a packet."""
        dut = self.dut
        for data, _ in packets:
            for at in range(0, max(len(data), 1), 8):
                word = data[at:at + 8]
                dut.s_axis_tx_tvalid.value, dut.s_axis_tx_tlast.value = 1, at + 8 >= len(data)
                dut.s_axis_tx_tdata.value = int.from_bytes(word.ljust(8, b"\xdd"), "little")
                dut.s_axis_tx_tkeep.value = (1 << len(word)) - 1
                await RisingEdge(dut.clk)
                while dut.s_axis_tx_tready.value != 1:
                    await RisingEdge(dut.clk)
                if at == 0:
                    self.taken.append(cycle())
            dut.s_axis_tx_tvalid.value = 0
            while random.random() < pause:
                await RisingEdge(dut.clk)


class Frames:
    """Accepts the frames, and checks that they have no gaps and offers are stable."""

    def __init__(self, dut, busy=0.0):
        self.dut, self.busy, self.frames, self.first, self.last = dut, busy, [], [], []
        dut.m_axis_tx_tready.value = 0

    async def run(self):
        dut, data, offered = self.dut, None, None
        while True:
            dut.m_axis_tx_tready.value = ready = int(random.random() >= self.busy)
            await RisingEdge(dut.clk)
            valid = dut.m_axis_tx_tvalid.value == 1
            assert valid or offered is None, "an offer was taken back"
            assert valid or data is None, "a gap in a frame"
            if not valid:
                continue
            keep, last = dut.m_axis_tx_tkeep.value.integer, dut.m_axis_tx_tlast.value == 1
            count = keep.bit_length()
            assert keep == (1 << count) - 1 and count and (last or count == 8), f"tkeep {keep:08b}"
            word = kept(dut.m_axis_tx_tdata, count), last
            assert offered in (None, word), "an offer changed"
            offered = None if ready else word
            if not ready:
                continue
            if data is None:
                data = b""
                self.first.append(cycle())
            data += word[0]
            if last:
                self.frames.append(data)
                self.last.append(cycle())
                data = None


def judge(frame, payload, ip=PEER_IP, dport=5000, sport=4000, neighbour=PEER, ttl=64, checksum=None):
    """scapy reads the sent packet; checksums are correct. `checksum`: the field, where it is not the sum."""
    ether = Ether(frame)
    assert (ether.dst, ether.src, ether.type) == (neighbour, MAC, 0x0800), ether.summary()
    ipv4, udp = ether[IP], ether[UDP]
    assert (ipv4.src, ipv4.dst, ipv4.ttl, ipv4.ihl, ipv4.len) == (IP_ADDRESS, ip, ttl, 5, 28 + len(payload))
    assert (udp.sport, udp.dport, udp.len) == (sport, dport, 8 + len(payload))
    assert ones_sum(frame[14:34]) == 0xFFFF, "IPv4 header checksum"
    assert frame[42:] == payload, "payload"
    if checksum is not None:
        assert udp.chksum == checksum
        return
    del udp.chksum
    assert bytes(ether) == frame, "UDP checksum"
