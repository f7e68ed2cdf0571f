"""The RICH hit container and its expanded form, from docs/formats/rich-hits.md."""

import re
import struct
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/formats/rich-hits.md"
GOOD, MALFORMED, BAD_VERSION = 0, 2, 3


def examples():
    """(container, expanded) of the worked example."""
    blocks = re.findall(r"```hex\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    compressed, expanded = (bytes.fromhex(re.sub(r"#[^\n]*", "", block)) for block in blocks)
    return compressed, expanded


def code(gap):
    return bytes([gap]) if gap < 128 else bytes([gap & 127 | 128, gap >> 7])


def container(events, first=1_000_000, source=0x1C, sub=2, sequence=7, version=1):
    """Of events (slot after the first, [(index, fine time)])."""
    body, last = b"", -1
    for number, (slot, hits) in enumerate(events):
        body += code(slot - last - 1 if number else 0) + bytes([len(hits)])
        previous = -1
        for index, _ in hits:
            body += code(index - previous - 1)
            previous = index
        body += bytes(time for _, time in hits)
        last = slot
    return struct.pack("<4sBBBBIHHQ", b"PXRH", version, source, sub, 0, sequence, len(events), len(body), first) + body


class Refused(Exception):
    pass


def read_code(data, at):
    if at + 1 > len(data) or data[at] & 128 and at + 2 > len(data):
        raise Refused
    if not data[at] & 128:
        return data[at], at + 1
    if data[at + 1] & 128:
        raise Refused
    return data[at] & 127 | data[at + 1] << 7, at + 2


def expand(data):
    """(outcome, expanded form), by the rules of the page."""
    if len(data) < 24 or data[:4] != b"PXRH":
        return MALFORMED, None
    if data[4] != 1:
        return BAD_VERSION, None
    count, length, first = struct.unpack_from("<HHQ", data, 12)
    if data[7] or length != len(data) - 24:
        return MALFORMED, None
    out, at, slot = data[:4] + b"\x81" + data[5:24], 24, -1
    try:
        for number in range(count):
            gap, at = read_code(data, at)
            if number == 0 and gap:
                raise Refused
            slot += gap + 1
            if at >= len(data):
                raise Refused
            hits, at, index, indices = data[at], at + 1, -1, []
            for _ in range(hits):
                gap, at = read_code(data, at)
                index += gap + 1
                indices.append(index)
            if index > 1951 or at + hits > len(data):
                raise Refused
            event = struct.pack("<IHH", slot, hits, 0) + struct.pack(f"<{hits}H", *indices) + data[at:at + hits]
            at += hits
            out += event + bytes(-len(event) % 8)
    except Refused:
        return MALFORMED, None
    if at != len(data) or count and first + slot >= 1 << 64:
        return MALFORMED, None
    return GOOD, out
