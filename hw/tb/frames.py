"""Frames made by scapy, recorded frames, and the required result of a received frame."""

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Raw
from scapy.utils import RawPcapReader

# The port, and its peer.
MAC, IP_ADDRESS = "02:00:4c:4f:4c:01", "10.0.0.1"
PEER, PEER_IP = "02:00:4c:4f:4c:99", "10.0.0.153"
BROADCAST = "ff:ff:ff:ff:ff:ff"
DEFAULT_LIST = 16
PAYLOAD, WHOLE, HITS = range(3)
# Parts of an RFC 791 header of up to 60 bytes: "no operation".
NOP = b"\x01"


def some(size):
    """Random bytes."""
    return random.getrandbits(8 * size).to_bytes(size, "little") if size else b""


def kept(word, count):
    """The first bytes of a stream's word; the others may be anything, also undefined."""
    return int(word.value.binstr[64 - 8 * count:] or "0", 2).to_bytes(count, "little")


def integer(address):
    """A MAC or IPv4 address as a register holds it."""
    parts = [int(part, 16) for part in address.split(":")] if ":" in address else map(int, address.split("."))
    return int.from_bytes(bytes(parts), "big")


def link(dst=MAC, vlan=None):
    ether = Ether(src=PEER, dst=dst)
    return ether / Dot1Q(vlan=vlan) if vlan is not None else ether


def pad(frame):
    """Pads to the shortest frame (IEEE 802.3, 4.4.2), with bytes that must not be output."""
    return bytes(frame) + b"\xee" * max(0, 60 - len(frame))


def udp(payload=b"", dport=5000, sport=4000, dst=MAC, vlan=None, nops=0, ip=None, **fields):
    """A datagram to the port. `nops`: words of IPv4 options; `ip`: fields of IPv4; others are UDP's."""
    ipv4 = IP(**{"src": PEER_IP, "dst": IP_ADDRESS, "ttl": 7, **(ip or {})})
    if nops:
        ipv4.options, ipv4.ihl = NOP * 4 * nops, 5 + nops
    return pad(bytes(link(dst, vlan) / ipv4 / UDP(sport=sport, dport=dport, **fields) / Raw(payload)))


def ping(payload=b"", dst=MAC, vlan=None, ip=None, **fields):
    icmp = ICMP(**{"type": 8, "id": 7, "seq": 9, **fields})
    return pad(bytes(link(dst, vlan) / IP(**{"src": PEER_IP, "dst": IP_ADDRESS, "ttl": 3, **(ip or {})}) / icmp
                     / Raw(payload)))


def arp(op=1, psrc=PEER_IP, pdst=IP_ADDRESS, hwsrc=PEER, dst=BROADCAST, vlan=None, **fields):
    return pad(bytes(link(dst, vlan) / ARP(op=op, psrc=psrc, pdst=pdst, hwsrc=hwsrc, **fields)))


def recorded(count, longest):
    """The first `count` frames of each capture that are not longer than `longest`; none without the data."""
    data = Path(os.environ.get("POLLUX_DATA", Path(__file__).resolve().parents[3] / "shared/data"))
    for file in sorted(data.glob("pcap/*.pcap")):
        reader, taken = RawPcapReader(str(file)), 0
        for frame, _ in reader:
            if taken < count and len(frame) <= longest:
                yield bytes(frame)
                taken += 1
        reader.close()


@dataclass
class Settings:
    """Those of a port."""
    mac: str = MAC
    ip: str = IP_ADDRESS
    promiscuous: int = 0
    multicast: int = 0
    arp: int = 1
    echo: int = 1
    checksum: int = 1
    max_frame: int = 9600
    catch_udp: int = 0
    catch_other: int = 0
    # Of a stream: port and form.
    streams: dict = field(default_factory=lambda: {0: (5000, PAYLOAD), 3: (5003, WHOLE), 15: (5015, HITS)})

    def write(self, dut):
        dut.cfg_mac.value, dut.cfg_ip.value = integer(self.mac), integer(self.ip)
        for name in ("promiscuous", "multicast", "arp", "echo", "checksum", "max_frame", "catch_udp", "catch_other"):
            getattr(dut, f"cfg_{name}").value = getattr(self, name)
        dut.cfg_stream_port.value = sum(port << 16 * i for i, (port, _) in self.streams.items())
        dut.cfg_stream_form.value = sum(form << 2 * i for i, (_, form) in self.streams.items())
        dut.cfg_stream_enable.value = sum(1 << i for i in self.streams)


@dataclass
class Payload:
    """Output for the host: the bytes, and their metadata."""
    data: bytes
    stream: int
    form: int
    source_port: int = 0


def ones_sum(data):
    """The checksum of RFC 1071, straightforward."""
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[i:i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def fate(frame, port):
    """The required result of a frame: a Payload, or a name: of a count, "arp", "echo"."""
    number = lambda at, size=2: int.from_bytes(frame[at:at + size], "big")  # noqa: E731
    whole = lambda sport=0: Payload(frame, DEFAULT_LIST, WHOLE, sport)  # noqa: E731
    tagged = number(12) == 0x8100
    at = 18 if tagged else 14
    kind = number(at - 2)
    # The headers, without the tag, are read in whole words.
    header = frame[at] % 16 * 4 if kind == 0x0800 and len(frame) > at else 0
    if len(frame) <= 8 * tagged + (16 + max(header, 20) // 8 * 8 if kind == 0x0800 else 24):
        return "malformed"
    destination = number(0, 6)
    group = port.multicast and frame[0] & 1
    if not (destination in (integer(port.mac), 0xFFFFFFFFFFFF) or port.promiscuous or group):
        return "address"
    if kind == 0x0806 and port.arp:
        return "arp" if frame[at:at + 6] == b"\0\1\x08\0\6\4" and len(frame) >= 60 else "malformed"
    if kind != 0x0800:
        return whole() if port.catch_other else "unsupported"
    total, protocol, l4 = number(at + 2), frame[at + 9], at + header
    if frame[at] >> 4 != 4 or header < 20 or total < header:
        return "malformed"
    if ones_sum(frame[at:l4]) != 0xFFFF:
        return "checksum"
    if number(at + 6) & 0x3FFF:
        return "fragment"
    target = number(at + 16, 4)
    if not (target in (integer(port.ip), 0xFFFFFFFF) or port.promiscuous or (port.multicast and target >> 28 == 14)):
        return "address"
    if len(frame) < at + total:
        return "malformed"
    if protocol == 17:
        sport, dport, length = number(l4), number(l4 + 2), number(l4 + 4)
        if not 8 <= length <= total - header:
            return "malformed"
        pseudo = frame[at + 12:at + 20] + bytes([0, 17]) + frame[l4 + 4:l4 + 6]
        wrong = port.checksum and number(l4 + 6) and ones_sum(pseudo + frame[l4:l4 + length]) != 0xFFFF
        stream = min((i for i, (number_, _) in port.streams.items() if number_ == dport), default=DEFAULT_LIST)
        if stream == DEFAULT_LIST and not port.catch_udp:
            return "miss"
        form = WHOLE if stream == DEFAULT_LIST else port.streams[stream][1]
        taken = Payload(frame if form == WHOLE else frame[l4 + 8:l4 + length], stream, form, sport)
        return "checksum" if wrong else taken
    if (protocol == 1 and port.echo and number(l4) == 0x0800 and header == 20 and target == integer(port.ip)
            and destination == integer(port.mac) and not frame[6] & 1):
        right = ones_sum(frame[l4:at + total]) == 0xFFFF
        return "malformed" if total < header + 8 else "echo" if right else "checksum"
    return whole() if port.catch_other else "unsupported"
