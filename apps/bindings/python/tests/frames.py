"""Frames and captures, written byte by byte from the specifications: RFC 791, RFC 768, libpcap's format."""

import struct


def checksum(data):
    """RFC 1071."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[: len(data) & ~1]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp(payload, src_port=4000, dst_port=7502):
    """An Ethernet frame with a UDP datagram from 10.0.0.1 to 10.0.0.2."""
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    length = 8 + len(payload)
    header = struct.pack("!HHH", src_port, dst_port, length)
    pseudo = addresses + struct.pack("!BBH", 0, 17, length)
    total = checksum(pseudo + header + b"\0\0" + payload) or 0xFFFF
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0, 64, 17, 0)
    ip = ip[:10] + struct.pack("!H", checksum(ip + addresses)) + addresses
    return b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + ip + header + struct.pack("!H", total) + payload


def write(path, frames, first_ns=1_700_000_000_000_000_000, step_ns=1000):
    """A classic capture with nanoseconds; returns the path."""
    out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    for n, frame in enumerate(frames):
        seconds, ns = divmod(first_ns + n * step_ns, 1_000_000_000)
        out += struct.pack("<IIII", seconds, ns, len(frame), len(frame)) + frame
    path.write_bytes(out)
    return path
