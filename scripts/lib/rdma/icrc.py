#!/usr/bin/env python3
"""Checks the ICRC of every RoCEv2 packet of capture files, with the CRC of zlib.

usage: scripts/lib/rdma/icrc.py FILE...
"""

import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

# pylint: disable=wrong-import-position
from lib.rdma.captures import frames

# The UDP port of RoCEv2.
PORT = 4791
# The EtherTypes of IPv4 and of a VLAN tag.
IPV4, TAG = 0x0800, 0x8100


def icrc(packet):
    """The ICRC of an IPv4 packet without it, as it is on the wire (InfiniBand architecture, volume 1,
    annex A17, "Invariant CRC"): the CRC of Ethernet over 8 bytes of ones and the packet, in which all
    that a router may change is ones: type of service, time to live, both checksums, and the byte of
    the BTH behind the partition key."""
    header = 4 * (packet[0] & 15)
    masked = bytearray(packet)
    for place in (1, 8, 10, 11, header + 6, header + 7, header + 8 + 4):
        masked[place] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


def roce_packet(frame):
    """The IPv4 packet of RoCEv2 in a frame, without padding of Ethernet; None for other frames."""
    (kind,), at = struct.unpack_from(">H", frame, 12), 14
    if kind == TAG:
        (kind,), at = struct.unpack_from(">H", frame, 16), 18
    if kind != IPV4 or len(frame) < at + 20:
        return None
    packet = frame[at:at + struct.unpack_from(">H", frame, at + 2)[0]]
    header = 4 * (packet[0] & 15)
    if packet[9] != 17 or len(packet) < header + 8 + 12 + 4:
        return None
    if struct.unpack_from(">H", packet, header + 2)[0] != PORT:
        return None
    return packet


def wrong(path):
    """The number of RoCEv2 packets of a capture, and the places of those with a wrong ICRC."""
    count, bad = 0, []
    for place, (_, frame) in enumerate(frames(path), 1):
        packet = roce_packet(frame)
        if packet is None:
            continue
        count += 1
        if icrc(packet[:-4]) != packet[-4:]:
            bad.append(place)
    return count, bad


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    status = 0
    for file in sys.argv[1:]:
        count, bad = wrong(file)
        print(f"{file}: {count} packets, {len(bad)} with a wrong ICRC{': frames ' if bad else ''}"
              f"{', '.join(map(str, bad[:10]))}")
        status |= bool(bad) or not count
    return status


if __name__ == "__main__":
    sys.exit(main())
