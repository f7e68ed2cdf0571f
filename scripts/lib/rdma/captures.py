"""Frames of capture files: pcap (pcap-savefile(5)) and pcapng (draft-ietf-opsawg-pcapng), of Ethernet."""

import struct
from pathlib import Path

SECTION, INTERFACE, ENHANCED = 0x0a0d0d0a, 1, 6


def frames(path):
    """(time in nanoseconds, bytes) of each frame."""
    data = Path(path).read_bytes()
    if data[:4] == struct.pack("<I", SECTION):
        return list(of_pcapng(data))
    return list(of_pcap(data))


def of_pcap(data):
    scale = {0xa1b2c3d4: 1000, 0xa1b23c4d: 1}[struct.unpack_from("<I", data)[0]]
    at = 24
    while at < len(data):
        seconds, part, length, _ = struct.unpack_from("<IIII", data, at)
        yield seconds * 10**9 + part * scale, data[at + 16:at + 16 + length]
        at += 16 + length


def of_pcapng(data):
    """Little-endian sections. The unit of time is an option of each interface (if_tsresol, 9)."""
    at, units = 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body = data[at + 8:at + length - 4]
        if kind == SECTION:
            units = []
        elif kind == INTERFACE:
            units.append(unit(body[8:]))
        elif kind == ENHANCED:
            interface, high, low, captured = struct.unpack_from("<IIII", body)
            yield (high << 32 | low) * 10**9 // units[interface], body[20:20 + captured]
        at += length


def unit(options):
    """Ticks of a second."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == 9:
            value = options[at + 4]
            return 1 << (value & 0x7f) if value & 0x80 else 10**value
        at += 4 + (length + 3 & ~3)
    return 10**6
