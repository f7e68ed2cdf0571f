"""Checks by tshark of the frames that the card sends, and of those that it should receive."""

import os
import random
import struct
import subprocess
from collections import defaultdict
from pathlib import Path

from lib.cargo import ROOT
from lib.needs import Failure

# No reassembly: the card has none. Checksums are looked at.
OPTIONS = ["ip.defragment:FALSE", "ip.check_checksum:TRUE", "udp.check_checksum:TRUE"]
# As tshark has them: epan/proto.h.
GOOD, ABSENT = "1", "3"
# Where the card's datagrams go; its generator's go elsewhere.
DATAGRAMS = "45001"
# Longest frame that the card accepts, without FCS.
LONGEST = 9596
# Streams of a port.
STREAMS = 16
# Frames of the generator, and its seed.
FRAMES, SEED = 400, 20


def fields(file, *names):
    """Those fields of each frame, as lists of what tshark says; of several, all."""
    command = ["tshark", "-r", str(file), "-T", "fields", "-E", "separator=|", "-E", "aggregator=,"]
    for option in OPTIONS:
        command += ["-o", option]
    for name in names:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise Failure(f"tshark does not read {file}: {done.stderr.strip()}")
    rows = [line.split("|") for line in done.stdout.splitlines()]
    return [dict(zip(names, row)) for row in rows]


def judge_sent(file, told):
    """Errors of the frames that the card sent; empty if there are none."""
    names = ("frame.len", "eth.type", "ip.checksum.status", "icmp.type", "icmp.checksum.status", "arp.opcode",
             "udp.dstport", "udp.checksum.status", "udp.payload", "_ws.malformed")
    rows = fields(file, *names)
    wrong = [f"{len(rows)} frames of {told['frames']}"] if len(rows) != told["frames"] else []
    payloads, generated, pings, answers = [], [], 0, 0
    for number, row in enumerate(rows, 1):
        ip = row["eth.type"] == "0x0800"
        if row["_ws.malformed"] or ip and row["ip.checksum.status"] != GOOD:
            wrong.append(f"frame {number}: malformed, or a wrong header checksum")
        if row["udp.dstport"]:
            if row["udp.checksum.status"] not in (GOOD, ABSENT):
                wrong.append(f"frame {number}: a wrong UDP checksum")
            found = payloads if row["udp.dstport"] == DATAGRAMS else generated
            found.append((row["udp.payload"].replace(":", ""), row["udp.checksum.status"]))
        if row["icmp.type"]:
            pings += row["icmp.type"] == "0" and row["icmp.checksum.status"] == GOOD
        answers += row["arp.opcode"] == "2"
    if [payload for payload, _ in payloads] != told["payloads"]:
        wrong.append("payloads are not those that were sent")
    half = len(payloads) // 2
    if {status for _, status in payloads[:half]} != {GOOD} or {status for _, status in payloads[half:]} != {ABSENT}:
        wrong.append("the first half was to have checksums, the second none")
    counts = {"generated": len(generated), "pings": pings, "answers": answers}
    return wrong + [f"{counts[name]} {name} of {told[name]}" for name in counts if counts[name] != told[name]]


def wanted(file):
    """Payloads by UDP port that the card has to deliver, and how many frames are no such datagram."""
    names = ("frame.len", "eth.type", "vlan.id", "ip.version", "ip.flags.mf", "ip.frag_offset", "ip.checksum.status",
             "udp.dstport", "udp.checksum.status", "udp.payload")
    payloads, others = defaultdict(list), 0
    for row in fields(file, *names):
        tags = len([tag for tag in row["vlan.id"].split(",") if tag])
        whole = row["ip.flags.mf"] in ("0", "False") and row["ip.frag_offset"] == "0"
        if (int(row["frame.len"]) <= LONGEST and tags <= 1 and row["ip.version"] == "4" and whole
                and row["ip.checksum.status"] == GOOD and row["udp.checksum.status"] in (GOOD, ABSENT)):
            payloads[row["udp.dstport"]].append(row["udp.payload"].replace(":", ""))
        else:
            others += 1
    return payloads, others


def judge_received(file, receive):
    """Errors of the card's output for a recording, and its number of frames and payloads.
    `receive` runs it through the card."""
    payloads, others = wanted(file)
    ports = sorted(payloads, key=lambda udp: -len(payloads[udp]))[:STREAMS]
    told = receive(file, ports)
    found, counters = told["payloads"], told["counters"]
    wrong = [f"port {udp}: {len(found.get(udp, []))} payloads of {len(payloads[udp])}, or others"
             for udp in ports if found.get(udp, []) != payloads[udp]]
    beside = others + sum(len(payloads[udp]) for udp in payloads if udp not in ports)
    lost = sum(count for name, count in counters.items() if name != "rx_frames")
    whole = len(found.get("whole", []))
    if whole + lost + told["refused"] != beside or counters["rx_frames"] != told["offered"]:
        wrong.append(f"{whole} whole frames and {lost} lost of {beside}, {counters['rx_frames']} of {told['offered']}")
    return wrong, told["offered"], sum(len(payloads[udp]) for udp in ports)


def recordings():
    """The captures that there are."""
    data = Path(os.environ.get("POLLUX_DATA", ROOT / "../shared/data"))
    return sorted((data / "pcap").glob("*.pcap"))


def checksum(data):
    """RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def random_frame(rng):
    """A frame of any kind: mostly datagrams, some of which the card has to refuse."""
    payload = rng.randbytes(rng.choice((0, 1, rng.randrange(64), rng.randrange(1400))))
    udp = struct.pack("!4H", rng.randrange(1, 1 << 16), 20_000 + rng.randrange(12), 8 + len(payload), 0)
    source, destination = rng.randbytes(4), bytes((10, 0, 0, 1))
    if rng.random() < 0.8:
        pseudo = source + destination + struct.pack("!BBH", 0, 17, 8 + len(payload))
        total = checksum(pseudo + udp + payload) or 0xffff
        total ^= rng.random() < 0.1
        udp = udp[:6] + struct.pack("!H", total)
    options = b"" if rng.random() < 0.8 else b"\x01" * (4 * rng.randrange(1, 11))
    fragment = rng.choice((0x2000, 0x0010)) if rng.random() < 0.1 else rng.choice((0, 0x4000))
    body = udp + payload
    ip = struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, rng.randrange(256), 20 + len(options) + len(body),
                     rng.randrange(1 << 16), fragment, rng.randrange(1, 256), 17, 0) + source + destination + options
    total = checksum(ip) ^ (rng.random() < 0.05)
    ip = ip[:10] + struct.pack("!H", total) + ip[12:]
    kind, body = (0x0800, ip + body) if rng.random() < 0.9 else (0x88b5, payload)
    tags = b"".join(struct.pack("!HH", 0x8100, rng.randrange(1, 4095)) for _ in range(rng.choice((0, 0, 0, 1, 2))))
    frame = bytes((2, 0, 0, 0, 0, 1)) + b"\x02" + rng.randbytes(5) + tags + struct.pack("!H", kind) + body
    return frame.ljust(60, b"\0")


def write_random(file):
    """A recording of such frames (the format: tcpdump's savefile)."""
    rng = random.Random(SEED)
    with file.open("wb") as out:
        out.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for number in range(FRAMES):
            frame = random_frame(rng)
            out.write(struct.pack("<4I", 0, number, len(frame), len(frame)) + frame)


def judge(rows, run, folder):
    """All of it, as rows. `run` runs the program that has the card, and returns what it prints."""
    file = folder / "sent.pcapng"
    wrong = judge_sent(file, run("sent", file))
    rows.check("tshark on frames that the card sent", not wrong, "; ".join(wrong[:5]))
    made = folder / "random.pcap"
    write_random(made)
    found = recordings()
    if not found:
        rows.add("skipped", "recordings", "none at POLLUX_DATA, which is ../shared/data if it is not set")

    def receive(file, ports):
        return run("received", file, *(word for udp in ports for word in ("--udp", udp)))

    for file in (made, *found):
        wrong, frames, payloads = judge_received(file, receive)
        rows.check(f"tshark on frames that the card received, {file.name}", not wrong,
                   "; ".join(wrong[:5]) or f"{frames} frames, {payloads} payloads")
