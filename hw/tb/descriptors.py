"""Descriptors of packets to send, as the driver writes them, and the required result of any list of them."""

import struct
from dataclasses import dataclass

from frames import PEER_IP, integer
from sending import GIVEN, NONE, SUM, meta

FIRST, LAST, EVENT, RAW, CHECKSUM_GIVEN, CHECKSUM_CARD, INLINE = 1, 2, 4, 8, 16, 32, 64
SLOT = 32
SENT, BAD, FAILED, STOPPED, UNRESOLVED = range(5)


@dataclass
class Descriptor:
    """TxDescriptor (hw/docs/layouts.md)."""
    address: int = 0
    length: int = 0
    flags: int = 0
    total: int = 0
    ip: int = integer(PEER_IP)
    dport: int = 5000
    sport: int = 4000
    checksum: int = 0
    cookie: int = 0

    def bytes(self):
        return (struct.pack("<QIHHIHH", self.address, self.length, self.flags, self.total, self.ip, self.dport,
                            self.sport) + self.checksum.to_bytes(2, "big") + bytes(2) + struct.pack("<I", self.cookie))


@dataclass
class Data:
    """A slot of the ring with data of a packet."""
    data: bytes
    flags: int = 0

    def bytes(self):
        return self.data.ljust(SLOT, b"\x55")


def slots(descriptor):
    """Number of slots with data behind a descriptor."""
    if not descriptor.flags & INLINE or not 1 <= descriptor.length <= 2 * SLOT:
        return 0
    return -(-descriptor.length // SLOT)


def pieces(descriptors):
    """For each: its word, whether it is a slot with data, whether it is the last of its packet."""
    left, made = 0, []
    for descriptor in descriptors:
        is_data = left > 0
        left = left - 1 if is_data else slots(descriptor)
        ends = left == 0 and (is_data or bool(descriptor.flags & (LAST | INLINE)))
        made.append((int.from_bytes(descriptor.bytes(), "little"), is_data, ends))
    return made


def inline(data, flags=0, total=None, **fields):
    """A packet whose data are in the ring."""
    total = len(data) if total is None else total
    return [Descriptor(0, len(data), FIRST | LAST | INLINE | flags, total, **fields),
            *(Data(data[at:at + SLOT]) for at in range(0, min(len(data), 2 * SLOT), SLOT) if len(data) <= 2 * SLOT)]


def packet(pieces, flags=0, total=None, **fields):
    """Descriptors of a packet of these segments: (address, length); `flags` and `fields` of the first one."""
    total = sum(length for _, length in pieces) if total is None else total
    made = [Descriptor(address, length, total=total, **fields) for address, length in pieces]
    made[0].flags = FIRST | flags & ~EVENT
    made[-1].flags |= LAST | flags & EVENT
    return made


@dataclass
class Done:
    """Reports of plx_tx_read: `desc`: a descriptor is done; `end`: a packet has ended."""
    desc: bool
    end: bool
    status: int = 0
    length: int = 0


def walk(descriptors, fails, memory, flushed=True):
    """(dones, packets, requests): `fails(n)`: request n does; packets are (data, TX_META)."""
    dones, packets, requests, at, left = [], [], [], None, 0

    def end(desc, bad):
        nonlocal at
        status = BAD if bad else FAILED if at["failed"] else SENT
        dones.append(Done(desc, True, status, at["total"]))
        if status == SENT:
            packets.append((at["data"], at["meta"]))
        at = None

    for descriptor in descriptors:
        if left:
            left -= 1
            at["data"] = (at["data"] + descriptor.bytes())[:at["total"]]
            if left:
                dones.append(Done(True, False))
            else:
                end(True, at["wrong"])
            continue
        flag, left = descriptor.flags, slots(descriptor)
        if flag & FIRST:
            if at:
                end(False, True)
            raw, sums = bool(flag & RAW), flag & (CHECKSUM_GIVEN | CHECKSUM_CARD)
            total = descriptor.total
            wrong = (sums == CHECKSUM_GIVEN | CHECKSUM_CARD or raw and sums
                     or (not 14 <= total <= 9596 if raw else total > 9000))
            mode = {0: NONE, CHECKSUM_GIVEN: GIVEN, CHECKSUM_CARD: SUM}.get(sums, NONE)
            word = descriptor.ip | meta(total, "0.0.0.0", descriptor.dport, descriptor.sport, descriptor.checksum,
                                        mode, raw, descriptor.cookie, 1)
            at = dict(total=total, data=b"", bytes=0, wrong=wrong, failed=False, meta=word)
        at = at or dict(total=0, data=b"", bytes=0, wrong=True, failed=False, meta=0)
        at["bytes"] += descriptor.length
        at["wrong"] = at["wrong"] or at["bytes"] > at["total"] or descriptor.length == 0 and at["total"] != 0
        at["wrong"] = at["wrong"] or flag & INLINE and (not flag & FIRST or not flag & LAST or not left
                                                        or at["bytes"] != at["total"])
        bad = at["wrong"] or flag & LAST and at["bytes"] != at["total"]
        if not bad and descriptor.length and not flag & INLINE:
            at["failed"] = fails(len(requests)) or at["failed"]
            requests.append((descriptor.address, descriptor.length))
            at["data"] += memory(descriptor.address, descriptor.length)
        if not left and flag & (LAST | INLINE):
            end(True, bad)
        else:
            dones.append(Done(True, False))
    if at and flushed:
        end(False, True)
    return dones, packets, requests
