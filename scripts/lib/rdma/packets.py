"""RoCEv2 packets, written and read from the InfiniBand architecture specification (volume 1, chapter 9;
annex A17) alone."""

import struct
from typing import NamedTuple

from lib.rdma.icrc import PORT, icrc, roce_packet

# Operations within a service (9.2.1, table "OpCode field").
(SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM,
 WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM,
 READ, RESPONSE_FIRST, RESPONSE_MIDDLE, RESPONSE_LAST, RESPONSE_ONLY, ACK,
 ATOMIC_ACK, SWAP, ADD) = range(21)
SEND_LAST_INV, SEND_ONLY_INV = 0x16, 0x17
RC, UC = 0x00, 0x20
# Congestion notification packet (annex A17): a service and an operation of its own, 16 bytes of nothing,
# and the backward mark of the BTH.
CNP_SERVICE, CNP, BACKWARD = 0x80, 0x81, 1
# Congestion experienced (RFC 3168).
MARKED = 3

WITH_RETH = {WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM, READ}
WITH_AETH = {RESPONSE_FIRST, RESPONSE_LAST, RESPONSE_ONLY, ACK}
WITH_IMM = {SEND_LAST_IMM, SEND_ONLY_IMM, WRITE_LAST_IMM, WRITE_ONLY_IMM}
WITH_IETH = {SEND_LAST_INV, SEND_ONLY_INV}

# Syndromes (9.7.5.1.2): acknowledged without a credit limit, not ready, and the codes of a NAK.
ACKED, RNR, NAK = 0x1f, 0x20, 0x60
SEQUENCE, INVALID, ACCESS, OPERATION = range(4)

PSNS = 1 << 24


class Host(NamedTuple):
    mac: str
    ip: str

    def mac_bytes(self):
        return bytes.fromhex(self.mac.replace(":", ""))

    def ip_bytes(self):
        return bytes(map(int, self.ip.split(".")))


def checksum(header):
    """RFC 1071."""
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def bth(opcode, qp, psn, ack=False, pad=0, pkey=0xffff, version=0, migrated=True, solicited=False):
    """Base transport header (9.2)."""
    flags = solicited << 7 | migrated << 6 | pad << 4 | version
    return struct.pack(">BBHII", opcode, flags, pkey, qp, ack << 31 | psn % PSNS)


def reth(address, key, length):
    """RDMA extended transport header (9.3.3)."""
    return struct.pack(">QII", address, key, length)


def aeth(syndrome, msn):
    """ACK extended transport header (9.3.5)."""
    return struct.pack(">I", syndrome << 24 | msn % PSNS)


def frame(source, target, headers, data=b"", *, spoil=0, udp_length=0, ecn=0, source_port=49152, short=0):
    """An Ethernet frame of a RoCEv2 packet; `headers` begin with the BTH. `spoil` is added to the ICRC,
    `udp_length` to the length of the datagram; `short` bytes are cut off, and the lengths follow."""
    payload = headers + data
    payload = payload[:len(payload) - short]
    length = 8 + len(payload) + 4
    ip = bytearray(struct.pack(">BBHHHBBH", 0x45, ecn, 20 + length, 0, 0x4000, 64, 17, 0)
                   + source.ip_bytes() + target.ip_bytes())
    struct.pack_into(">H", ip, 10, checksum(bytes(ip)))
    packet = bytes(ip) + struct.pack(">HHHH", source_port, PORT, length + udp_length, 0) + payload
    (crc,) = struct.unpack("<I", icrc(packet))
    packet += struct.pack("<I", (crc + spoil) % (1 << 32))
    return (target.mac_bytes() + source.mac_bytes() + b"\x08\x00" + packet).ljust(60, b"\0")


class Packet(NamedTuple):
    """A packet that was sent. Fields that its operation does not have are None."""
    service: int
    operation: int
    qp: int
    psn: int
    ack: bool
    address: int
    key: int
    length: int
    syndrome: int
    msn: int
    immediate: int
    data: bytes
    # Forward and backward mark of congestion.
    marks: int


class Wrong(Exception):
    """A packet that no endpoint may send."""


def read(sent, source, target):
    """The packet of a frame from one host to the other; None if it is another protocol's."""
    packet = roce_packet(sent)
    if packet is None:
        return None

    def expect(what, ok):
        if not ok:
            raise Wrong(f"{what}: {sent.hex()}")
    expect("MAC addresses", sent[:12] == target.mac_bytes() + source.mac_bytes())
    expect("IP addresses", packet[12:20] == source.ip_bytes() + target.ip_bytes())
    expect("IP header", packet[0] == 0x45 and packet[8] > 0 and checksum(packet[:20]) == 0)
    # A NIC pads short frames, or the endpoint does.
    expect("length of the frame", len(sent) in (14 + len(packet), 60))
    expect("length of the datagram", struct.unpack_from(">H", packet, 24)[0] == len(packet) - 20)
    expect("ICRC", icrc(packet[:-4]) == packet[-4:])
    opcode, flags, pkey, qp, last = struct.unpack_from(">BBHII", packet, 28)
    pad = flags >> 4 & 3
    expect("transport version", flags & 15 == 0)
    expect("MigReq", flags & 0x40)
    expect("partition key", pkey == 0xffff)
    expect("reserved bits", qp >> 24 & 0x3f == 0 and last >> 24 & 0x7f == 0)
    service, operation = opcode & 0xe0, opcode & 0x1f
    at, end = 40, len(packet) - 4 - pad
    address = key = length = syndrome = msn = immediate = None
    if service == CNP_SERVICE:
        operation |= service
    if operation in WITH_RETH:
        address, key, length = struct.unpack_from(">QII", packet, at)
        at += 16
    if operation in WITH_AETH:
        word = struct.unpack_from(">I", packet, at)[0]
        syndrome, msn = word >> 24, word % PSNS
        at += 4
    if operation in WITH_IMM:
        immediate = struct.unpack_from(">I", packet, at)[0]
        at += 4
    expect("headers", at <= end)
    expect("pad", (len(packet) - 4 - at) % 4 == 0 and set(packet[end:-4]) <= {0})
    return Packet(service, operation, qp & 0xffffff, last % PSNS, bool(last >> 31), address, key, length,
                  syndrome, msn, immediate, packet[at:end], qp >> 30)
