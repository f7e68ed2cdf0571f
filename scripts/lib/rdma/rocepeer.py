"""An independent peer for `pollux rdma play`: writes both ends of a conversation from the specification,
the peer's frames as a capture and what must come of them, and judges what came."""

import json
import struct
import subprocess
import zlib

from lib.needs import Failure
from lib.rdma import packets
from lib.rdma.captures import frames
from lib.rdma.packets import (ACK, ACKED, BACKWARD, CNP, PSNS, RC, READ, RESPONSE_FIRST, RESPONSE_LAST, RESPONSE_MIDDLE,
                              RESPONSE_ONLY, SEND_FIRST, SEND_LAST, SEND_LAST_IMM, SEND_MIDDLE, SEND_ONLY,
                              SEND_ONLY_IMM, UC, WITH_RETH, WRITE_FIRST, WRITE_LAST, WRITE_LAST_IMM,
                              WRITE_MIDDLE, WRITE_ONLY, WRITE_ONLY_IMM, Host, Wrong, aeth, bth, reth)
from lib.rxe.tee import Pcap

US, THEM = Host("02:00:00:00:00:01", "10.0.0.1"), Host("02:00:00:00:00:02", "10.0.0.2")
STRANGER = Host("02:00:00:00:00:02", "10.0.0.3")

# FIRST, MIDDLE, LAST, LAST with immediate, ONLY, ONLY with immediate.
SENDS = (SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM)
WRITES = (WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM)
ANSWERS = {ACK, RESPONSE_FIRST, RESPONSE_MIDDLE, RESPONSE_LAST, RESPONSE_ONLY}

START = 10**9


def pattern(length, salt=0):
    """Bytes that tell their place."""
    return bytes((n * 7 + n // 256 * 13 + salt) & 0xff for n in range(length))


def check(what, ok):
    if not ok:
        raise Failure(what)


class Region:
    """Memory of the endpoint under test; `expected` is what it must hold at the end."""

    def __init__(self, key, address, contents, access):
        self.key, self.address, self.contents, self.access = key, address, contents, access
        self.expected = bytearray(contents)


class Play:
    """A conversation."""

    def __init__(self):
        self.now, self.frames, self.regions, self.qps, self.posts = START, [], [], [], []
        self.completions, self.dropped, self.missed, self.notified = [], {}, 0, 0

    def region(self, length=8192, access=("read", "write"), key=None, address=None, contents=None):
        place = len(self.regions) + 1
        key = 0x11223300 + place if key is None else key
        address = place << 20 if address is None else address
        contents = bytes(length) if contents is None else contents
        self.regions.append(Region(key, address, contents, access))
        return self.regions[-1]

    def qp(self, **options):
        self.qps.append(Qp(self, len(self.qps), options))
        return self.qps[-1]

    def wait(self, us):
        self.now += us * 1000

    def frame(self, frame):
        """The peer sends."""
        self.frames.append((self.now, frame))
        self.wait(10)

    def tick(self, us=0):
        """A packet that is not for the endpoint: time goes on."""
        self.wait(us)
        udp = struct.pack(">HHHH", 9, 9, 8 + 18, 0) + bytes(18)
        ip = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0)
                       + THEM.ip_bytes() + US.ip_bytes())
        struct.pack_into(">H", ip, 10, packets.checksum(bytes(ip)))
        self.frame(US.mac_bytes() + THEM.mac_bytes() + b"\x08\x00" + bytes(ip) + udp)

    def complete(self, qp, side, op, status="ok", **more):
        """What the program is told, in order for each queue pair."""
        self.completions.append({"qp": qp.number, "side": side, "op": op, "status": status, **more})

    def drop(self, cause, count=1):
        self.dropped[cause] = self.dropped.get(cause, 0) + count

    def toml(self, folder):
        lines = [f'ip = "{US.ip}"', f'mac = "{US.mac}"']
        for region in self.regions:
            file = folder / f"{region.key:08x}.in"
            file.write_bytes(region.contents)
            lines += ["[[region]]", f"key = {region.key:#x}", f"address = {region.address:#x}",
                      f"bytes = {len(region.contents)}", f"access = {json.dumps(region.access)}",
                      f'file = "{file}"']
        for qp in self.qps:
            lines += ["[[qp]]", *(f"{key} = {json.dumps(value)}" for key, value in qp.config().items())]
        for post in self.posts:
            lines += ["[[post]]", *(f"{key} = {json.dumps(value)}" for key, value in post.items())]
        return "\n".join(lines) + "\n"

    def judge(self, program, folder):
        """Has the endpoint under test play it, and judges."""
        config, into, out, memory, report = (
            folder / name for name in ("play.toml", "in.pcap", "out.pcapng", "memory", "report.json"))
        memory.mkdir()
        config.write_text(self.toml(folder), encoding="utf8")
        capture = Pcap(into)
        for time, frame in self.frames:
            capture.add(frame, time)
        capture.close()
        done = subprocess.run([program, "rdma", "play", "--config", config, "--port", f"pcap:rx={into},tx={out}",
                               "--memory-out", memory, "--report", report],
                              capture_output=True, text=True, timeout=60, check=False)
        check(f"exit status {done.returncode}: {done.stderr.strip()[-300:]}", done.returncode == 0)
        self.judge_packets(out)
        for region in self.regions:
            held = (memory / f"{region.key:08x}.bin").read_bytes()
            differ = next((n for n, (a, b) in enumerate(zip(held, region.expected)) if a != b), None)
            check(f"memory of {region.key:08x}: {len(held)} B, first difference at {differ}",
                  held == region.expected)
        self.judge_report(json.loads(report.read_text(encoding="utf8")))

    def judge_packets(self, out):
        sent = []
        for _, frame in frames(out):
            try:
                packet = packets.read(frame, US, THEM)
            except Wrong as wrong:
                raise Failure(f"sent: {wrong}") from wrong
            if packet is not None:
                sent.append(packet)
        for qp in self.qps:
            own = [packet for packet in sent if packet.qp == qp.peer]
            notified = [packet for packet in own if packet.operation == CNP]
            check(f"congestion notifications: {notified}, not {qp.notifications}", len(notified) == qp.notifications
                  and all((packet.data, packet.marks, packet.ack) == (bytes(16), BACKWARD, False) for packet in notified))
            own = [packet for packet in own if packet.operation != CNP]
            check(f"congestion marks of {own}", not any(packet.marks for packet in own))
            check(f"service of {own}", all(packet.service == qp.service for packet in own))
            qp.judge_answers([packet for packet in own if packet.operation in ANSWERS])
            qp.judge_requests([packet for packet in own if packet.operation not in ANSWERS])
        others = [packet for packet in sent if packet.qp not in [qp.peer for qp in self.qps]]
        check(f"packets to unknown queue pairs: {others}", not others)

    def judge_report(self, report):
        for qp in self.qps:
            if qp.is_free:
                continue

            def of(all_of, number=qp.number):
                return [entry for entry in all_of if entry["qp"] == number]
            found, expected = of(report["completions"]), of(self.completions)
            # What a failure flushes is another's to judge, unless a case names it.
            if not any(entry["status"] == "flushed" for entry in expected):
                found = [entry for entry in found if entry["status"] != "flushed"]
            check(f"completions of {qp.number:#x}: {found}, not {expected}", len(found) == len(expected)
                  and all(got.get(key) == value for got, wanted in zip(found, expected)
                          for key, value in wanted.items()))
        ledger = report["ledger"]
        check(f"ledger: {ledger}", ledger["from_wire"] == len(self.frames)
              == ledger["delivered"] + sum(ledger["dropped"].values()))
        for cause, count in self.dropped.items():
            check(f"{cause}: {ledger['dropped'].get(cause, 0)}, not {count}",
                  ledger["dropped"].get(cause, 0) == count)
        for count in ("missed", "notified"):
            found, wanted = report["rdma"][count], getattr(self, count)
            check(f"{count}: {found}, not {wanted}", found == wanted)


class Qp:
    """A queue pair of the endpoint under test, seen from its peer's."""

    def __init__(self, play, place, options):
        self.play, self.options = play, options
        self.number, self.peer = 0x110 + place, 0x220 + place
        self.kind, self.mtu = options.get("kind", "rc"), options.get("mtu", 256)
        self.service = RC if self.kind == "rc" else UC
        # Next sequence numbers of the peer, and of the endpoint; messages that the peer has completed.
        self.psn, self.sends = options.get("recv_psn", 100), options.get("send_psn", 5000)
        self.first_send, self.msn = self.sends, 0
        # What must come: answers, requests by number, and the order of those.
        self.answers, self.requests, self.order = [], {}, []
        # Whether the endpoint may ask again, or fail.
        self.is_free = False
        # Congestion notifications that it has to send.
        self.notifications = 0
        # How often it may repeat its last ACK.
        self.spare_acks = 0

    def config(self):
        return {"number": self.number, "kind": self.kind, "peer": self.peer, "peer_ip": THEM.ip,
                "peer_mac": THEM.mac, "recv_psn": self.options.get("recv_psn", 100),
                "send_psn": self.first_send, "mtu": self.mtu, "receives": self.options.get("receives", 0),
                "receive_bytes": self.options.get("receive_bytes", 1024),
                **{key: value for key, value in self.options.items()
                   if key in ("timeout", "retry", "rnr_retry", "rnr_timer")}}

    # The peer sends.

    def packet(self, operation, psn, data=b"", *, extended=b"", ack=False, service=None, qp=None, source=THEM,
               pad=None, pkey=0xffff, version=0, migrated=True, **wrong):
        pad = -len(data) % 4 if pad is None else pad
        header = bth((self.service if service is None else service) | operation,
                     self.number if qp is None else qp, psn, ack, pad, pkey, version, migrated)
        self.play.frame(packets.frame(source, US, header + extended, data + bytes(pad), **wrong))

    def request(self, operations, data, head=b"", immediate=None, ack=True, only=None):
        """The packets of a message from the next number on, or `only` those at some places. `head` is
        the RETH of the first."""
        first, middle, last, last_imm, single, single_imm = operations
        parts = [data[at:at + self.mtu] for at in range(0, len(data), self.mtu)] or [b""]
        tail = b"" if immediate is None else struct.pack(">I", immediate)
        for place, part in enumerate(parts):
            ends = place == len(parts) - 1
            if len(parts) == 1:
                operation = single_imm if tail else single
            else:
                operation = first if place == 0 else (last_imm if tail else last) if ends else middle
            extended = (head if operation in WITH_RETH else b"") + (tail if ends else b"")
            if only is None or place in only:
                self.packet(operation, self.psn + place, part, extended=extended, ack=ack and ends)
        return len(parts)

    def write(self, region, at, data, immediate=None, ack=True):
        """A WRITE that is done."""
        head = reth(region.address + at, region.key, len(data))
        self.psn += self.request(WRITES, data, head, immediate, ack)
        region.expected[at:at + len(data)] = data
        if immediate is not None:
            self.play.complete(self, "received", "put", bytes=len(data), immediate=immediate)
        self.done(ack)

    def send(self, data, immediate=None, ack=True):
        """A SEND that is received."""
        self.psn += self.request(SENDS, data, immediate=immediate, ack=ack)
        self.play.complete(self, "received", "send", bytes=len(data), immediate=immediate, crc32=zlib.crc32(data))
        self.done(ack)

    def done(self, ack=True):
        """A message is complete with the packet before."""
        self.msn += 1
        if ack and self.kind == "rc":
            self.expect(ACKED, self.psn - 1)

    def read(self, region, at, length):
        """A READ that is answered."""
        self.packet(READ, self.psn, extended=reth(region.address + at, region.key, length), ack=True)
        self.msn += 1
        self.expect_responses(self.psn, bytes(region.expected[at:at + length]))
        self.psn += max(1, -(-length // self.mtu))

    def expect(self, syndrome, psn):
        self.answers.append((ACK, psn % PSNS, syndrome, self.msn % PSNS, b""))

    def expect_responses(self, psn, data):
        parts = [data[at:at + self.mtu] for at in range(0, len(data), self.mtu)] or [b""]
        for place, part in enumerate(parts):
            if len(parts) == 1:
                operation = RESPONSE_ONLY
            else:
                operation = {0: RESPONSE_FIRST, len(parts) - 1: RESPONSE_LAST}.get(place, RESPONSE_MIDDLE)
            syndrome, msn = (None, None) if operation == RESPONSE_MIDDLE else (ACKED, self.msn % PSNS)
            self.answers.append((operation, (psn + place) % PSNS, syndrome, msn, part))

    # The peer answers.

    def acknowledge(self, psn, msn, syndrome=ACKED):
        self.packet(ACK, psn, extended=aeth(syndrome, msn))

    def respond(self, psn, msn, data, only=None):
        """The packets of a response to a READ, or `only` those at some places."""
        parts = [data[at:at + self.mtu] for at in range(0, len(data), self.mtu)] or [b""]
        for place, part in enumerate(parts):
            if len(parts) == 1:
                operation = RESPONSE_ONLY
            else:
                operation = {0: RESPONSE_FIRST, len(parts) - 1: RESPONSE_LAST}.get(place, RESPONSE_MIDDLE)
            if only is None or place in only:
                extended = b"" if operation == RESPONSE_MIDDLE else aeth(ACKED, msn)
                self.packet(operation, psn + place, part, extended=extended)

    # The endpoint posts.

    def post(self, op, region, at, length, remote=0x5000, key=0x77, immediate=None):
        """A request of the endpoint; its packets are expected, once each, in order. Their numbers."""
        self.play.posts.append({"qp": self.number, "op": op, "region": region.key, "at": at, "bytes": length,
                                "remote": remote, "key": key,
                                **({} if immediate is None else {"immediate": immediate})})
        data = b"" if op == "get" else bytes(region.contents[at:at + length])
        numbers = []
        for place in range(max(1, -(-length // self.mtu))):
            numbers.append((self.sends + place) % PSNS)
            if op != "get":
                self.expect_request(op, numbers[-1], data, place, remote, key, immediate)
        if op == "get":
            self.requests[numbers[0]] = (READ, remote, key, length, None, b"")
        self.sends += len(numbers)
        self.order += numbers[:1] if op == "get" else numbers
        return numbers

    def expect_request(self, op, psn, data, place, remote, key, immediate):
        count = max(1, -(-len(data) // self.mtu))
        first, middle, last, last_imm, single, single_imm = WRITES if op == "put" else SENDS
        ends = place == count - 1
        if count == 1:
            operation = single if immediate is None else single_imm
        else:
            operation = first if place == 0 else middle if not ends else last if immediate is None else last_imm
        head = (remote, key, len(data)) if operation in WITH_RETH else (None, None, None)
        part = data[place * self.mtu:(place + 1) * self.mtu]
        self.requests[psn] = (operation, *head, immediate if ends else None, part)

    # Verdicts.

    def judge_answers(self, sent):
        """Each is also the ACK of all requests before. Credits, in the low bits of a syndrome, are the
        endpoint's own."""
        rest, spare, last = list(self.answers), self.spare_acks, None
        for packet in sent:
            got = (packet.operation, packet.psn, packet.syndrome, packet.msn, packet.data)
            if packet.operation == ACK and packet.syndrome >> 5 == 0:
                got = (*got[:2], ACKED, *got[3:])
            elif packet.syndrome is not None and packet.syndrome >> 5 == 0:
                got = (*got[:2], ACKED, *got[3:])
            if got == last and spare:
                spare -= 1
                continue
            last = got
            while rest and rest[0] != got and rest[0][0] == ACK and rest[0][2] == ACKED:
                rest.pop(0)
            check(f"answer {got[:4]} of {len(packet.data)} B, not {rest[0][:4] if rest else 'none'}",
                  rest and rest[0] == got)
            rest.pop(0)
        check(f"answers that are missing: {[answer[:4] for answer in rest]}", not rest)

    def judge_requests(self, sent):
        for packet in sent:
            got = (packet.operation, packet.address, packet.key, packet.length, packet.immediate, packet.data)
            wanted = self.requests.get(packet.psn)
            check(f"request {packet.psn}: {got[:5]}, not {wanted[:5] if wanted else 'none'}", got == wanted)
        order = [packet.psn for packet in sent]
        check(f"requests: {order}, not {self.order}", order == self.order or self.is_free)
        if sent:
            check("the last request asks for an ACK", self.kind == "uc" or sent[-1].ack
                  or sent[-1].operation == READ)
