"""Captures of fragments, good and bad, made by scapy.

usage: fragments.py FOLDER

Writes NAME.pcap for each case, and cases.json: {NAME: {"datagrams": [bytes of payload, ...],
"dropped": {cause: frames}, "frames": how many}}. Frames are half a millisecond apart.
"""
import json
import random
import sys
from pathlib import Path

from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

LINK = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")


def datagram(length, number=7):
    payload = bytes((n * 37 + number) % 256 for n in range(length))
    return IP(src="10.0.0.1", dst="10.0.0.2", id=number) / UDP(sport=1000, dport=2000) / Raw(payload)


def parts(whole, size=1480):
    return fragment(whole, fragsize=size)


def piece(whole, start, end, more):
    """A fragment of any place, whatever the others are."""
    body = bytes(whole[UDP])[start:end]
    return IP(src=whole.src, dst=whole.dst, id=whole.id, proto=17, frag=start // 8, flags="MF" if more else 0) / Raw(body)


def built(whole):
    """With its lengths and sums filled in."""
    return IP(bytes(whole))


def cases():
    whole = built(datagram(4000))
    first, middle, last = parts(whole)
    yield "in-order", [first, middle, last], [4000], {}
    yield "reversed", [last, middle, first], [4000], {}
    yield "duplicated", [first, first, middle, middle, last], [4000], {"duplicate": 2}
    longest = parts(built(datagram(65507)))
    random.Random(1).shuffle(longest)
    yield "longest", longest, [65507], {}
    several = [part for number in range(20) for part in parts(built(datagram(5000, number)))]
    random.Random(2).shuffle(several)
    yield "several", several, [5000] * 20, {}
    yield "missing", [first, last], [], {"reassembly-timeout": 2}

    # The second one begins and ends inside the first.
    yield ("teardrop", [piece(whole, 0, 1480, True), piece(whole, 24, 48, False), middle, last], [],
           {"reassembly-overlap": 4})
    yield ("overlapping", [first, piece(whole, 1472, 2960, True), last], [], {"reassembly-overlap": 3})
    other = bytes(whole[UDP])[1480:2960][::-1]
    changed = built(IP(src=whole.src, dst=whole.dst, id=whole.id, proto=17, frag=185, flags="MF") / Raw(other))
    yield "other-bytes", [first, middle, changed, last], [], {"reassembly-overlap": 4}
    yield ("two-ends", [first, last, piece(whole, 2960, 3960, False), middle], [], {"reassembly-overlap": 4})
    yield ("zero-length", [first, piece(whole, 1480, 1480, True), middle, piece(whole, 4008, 4008, False), last],
           [4000], {"malformed": 2})
    # From 65528 on, as far as the field goes: a ping of death, by UDP.
    beyond = IP(src=whole.src, dst=whole.dst, id=whole.id, proto=17, frag=0x1fff) / Raw(bytes(1000))
    yield "beyond-65535", [first, middle, beyond], [], {"oversize": 3}
    # RFC 1858: the UDP header is cut in two; as little as a unit of eight bytes is whole.
    yield "tiny-first-cut", [piece(whole, 0, 4, True)], [], {"malformed": 1}
    tiny = [piece(whole, 0, 8, True), piece(whole, 8, 1480, True), middle, last]
    yield "tiny-first", tiny, [4000], {}
    # Neither the table nor the buffers grow: 64 datagrams may be under way.
    begun = [parts(built(datagram(4000, number)))[0] for number in range(1000, 1090)]
    yield ("many-incomplete", begun, [], {"reassembly-timeout": 64, "reassembly-full": 26})
    many = parts(built(datagram(4000)), 40)
    yield "many-fragments", many, [], {"reassembly-full": len(many)}
    wrong = middle.copy()
    wrong[Raw].load = wrong[Raw].load[:-1] + bytes([wrong[Raw].load[-1] ^ 1])
    yield "wrong-checksum", [first, wrong, last], [], {"bad-checksum": 3}


def main():
    folder = Path(sys.argv[1])
    expected = {}
    for name, packets, datagrams, dropped in cases():
        frames = [LINK / packet for packet in packets]
        for n, frame in enumerate(frames):
            frame.time = 1 + n / 2000
        wrpcap(str(folder / f"{name}.pcap"), frames)
        expected[name] = {"datagrams": datagrams, "dropped": dropped, "frames": len(frames)}
    (folder / "cases.json").write_text(json.dumps(expected))


main()
