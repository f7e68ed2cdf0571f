"""The host's side of the hif streams: memory that is written and read, and a host that accesses registers.

The rules of the card are asserted (hw/docs/interfaces.md, "Host bus: hif"); the permitted behaviour of
the host is random: delay, split and reordered completions, errors, no completion.
"""

import random

# Fields of a header: lowest bit, width.
FIELDS = {
    "address": (0, 64), "lower": (0, 7), "bytes": (7, 12), "offset": (0, 32), "requester": (32, 16),
    "length": (64, 10), "first_be": (74, 4), "last_be": (78, 4), "bar": (82, 3), "write": (85, 1),
    "status": (86, 3), "poisoned": (89, 1), "tag": (90, 10), "func": (100, 8), "attributes": (108, 3),
    "class": (111, 3),
}
SUCCESS, UNSUPPORTED, RETRY, ABORT = 0, 1, 2, 4


def header(**fields):
    return sum((value & ((1 << FIELDS[name][1]) - 1)) << FIELDS[name][0] for name, value in fields.items())


def field(word, name):
    low, width = FIELDS[name]
    return word >> low & ((1 << width) - 1)


def enabled(first_be, last_be, dws):
    """The enabled bytes of a request's DWs."""
    bits = [first_be] + [15] * max(dws - 2, 0) + [last_be] * (dws > 1)
    return [be >> byte & 1 == 1 for be in bits for byte in range(4)]


def beats(head, data=b""):
    """A TLP as (sop, eop, header, data)."""
    count = max((len(data) + 31) // 32, 1)
    return [(index == 0, index == count - 1, head if index == 0 else random.getrandbits(128),
             int.from_bytes(data[32 * index:32 * index + 32], "little")) for index in range(count)]


class Sink:
    """Accepts TLPs of a stream with data, and passes each to `take(header, data)`."""

    def __init__(self, dut, name, take):
        self.signals = {part: getattr(dut, f"{name}_{part}")
                        for part in ("valid", "ready", "sop", "eop", "header", "data")}
        self.take, self.stall, self.head, self.data, self.offer = take, 0.0, None, b"", None
        self.signals["ready"].value = 0

    def drive(self):
        self.signals["ready"].value = random.random() >= self.stall

    def look(self):
        if not int(self.signals["valid"].value):
            assert self.offer is None, "an offer was taken back"
            assert self.head is None, "a gap within a TLP"
            return
        sop, eop, data = (int(self.signals[part].value) for part in ("sop", "eop", "data"))
        head = int(self.signals["header"].value) if sop else None
        assert self.offer in (None, (sop, eop, data, head)), "an offer was changed"
        self.offer = (sop, eop, data, head)
        if not int(self.signals["ready"].value):
            return
        self.offer = None
        assert sop == (self.head is None), "start of a TLP"
        if sop:
            self.head, self.data = head, b""
        self.data += data.to_bytes(32, "little")
        if eop:
            head, self.head = self.head, None
            self.take(head, self.data)


class Source:
    """Offers TLPs, each without a gap."""

    def __init__(self, dut, name):
        self.signals = {part: getattr(dut, f"{name}_{part}")
                        for part in ("valid", "ready", "sop", "eop", "header", "data")}
        self.queue, self.idle, self.offered = [], 0.0, False
        for part in ("valid", "sop", "eop", "header", "data"):
            self.signals[part].value = 0

    def send(self, head, data=b""):
        self.queue += beats(head, data)

    def drive(self):
        if self.queue and not self.offered:
            self.offered = not self.queue[0][0] or random.random() >= self.idle
        self.signals["valid"].value = self.offered
        if self.offered:
            for part, value in zip(("sop", "eop", "header", "data"), self.queue[0]):
                self.signals[part].value = value

    def look(self):
        if self.offered and int(self.signals["ready"].value):
            self.queue.pop(0)
            self.offered = False


class Writes(Sink):
    """hif_wr_req, to memory. `log` has (address, data) of each in order: the enabled bytes."""

    def __init__(self, dut, max_payload):
        super().__init__(dut, "hif_wr_req", self.write)
        self.max_payload, self.log, self.memory = max_payload, [], {}

    def write(self, head, data):
        address, dws = field(head, "address"), field(head, "length") or 1024
        assert address % 4 == 0 and address % 4096 + 4 * dws <= 4096, "across 4 KiB"
        assert 4 * dws <= self.max_payload, "more than the maximum payload"
        assert len(data) == (4 * dws + 31) // 32 * 32, "beats are not those of the length"
        assert not any(data[4 * dws:]), "something behind the last DW"
        first, last = field(head, "first_be"), field(head, "last_be")
        # PCIe 4.0, 2.2.5; the card enables bytes in one piece.
        assert first and bool(last) == (dws > 1)
        bits = enabled(first, last, dws)
        begin, end = bits.index(True), len(bits) - bits[::-1].index(True)
        assert all(bits[begin:end]), "gaps between the enabled bytes"
        known = ("address", "length", "first_be", "last_be", "func")
        assert head == header(**{name: field(head, name) for name in known}), "fields that are 0"
        self.log.append((address + begin, data[begin:end], field(head, "func")))
        self.memory.update(enumerate(data[begin:end], address + begin))


class Reads:
    """hif_rd_req, answered on hif_rx_cpl: late, split, reordered across tags; or by what `fault` says of
    each request, at any of its completions."""

    def __init__(self, dut, max_read):
        self.dut, self.max_read = dut, max_read
        self.source = Source(dut, "hif_rx_cpl")
        # Outstanding completions of each tag: (header, data).
        self.coming, self.ready_at, self.cycle = {}, {}, 0
        self.asked, self.delay, self.fault, self.lost = 0, 10, lambda: None, []
        # Start of each request, and the error of its completion.
        self.faults = []
        dut.hif_rd_req_ready.value = 0

    @staticmethod
    def memory(address, length):
        return bytes((byte * 7 ^ byte >> 8 ^ byte >> 16) & 0xFF for byte in range(address, address + length))

    def drive(self):
        self.cycle += 1
        self.dut.hif_rd_req_ready.value = random.random() < 0.8
        ripe = [tag for tag in self.coming if self.ready_at[tag] <= self.cycle]
        if ripe and not self.source.queue:
            tag = random.choice(ripe)
            self.source.send(*self.coming[tag].pop(0))
            if not self.coming[tag]:
                del self.coming[tag]
        self.source.drive()

    def look(self):
        self.source.look()
        if not (int(self.dut.hif_rd_req_valid.value) and int(self.dut.hif_rd_req_ready.value)):
            return
        head = int(self.dut.hif_rd_req_header.value)
        address, dws, tag = field(head, "address"), field(head, "length") or 1024, field(head, "tag")
        assert address % 4 == 0 and address % 4096 + 4 * dws <= 4096, "across 4 KiB"
        assert 4 * dws <= self.max_read, "more than the maximum read request"
        assert tag not in self.coming, "a tag that is open"
        assert (field(head, "last_be") != 0) == (dws > 1) and field(head, "first_be")
        self.asked += 1
        fault = self.fault()
        self.faults.append((address, fault))
        if fault == "lost":
            self.lost.append(head)
        else:
            self.answer(head, fault)

    def answer(self, head, fault=None, func=None):
        """Completions of a read: for its function, or, against the rules, for another one."""
        address, dws, tag = field(head, "address"), field(head, "length") or 1024, field(head, "tag")
        func = field(head, "func") if func is None else func
        on = enabled(field(head, "first_be"), field(head, "last_be"), dws)
        left, at, end = sum(on), address + on.index(True), address + 4 * dws
        self.ready_at[tag], answers = self.cycle + random.randrange(self.delay), []
        # As many are as they should be, before one that is not.
        good = random.choice((0, 0, 1, 3))
        while left:
            borders = [border for border in range((at // 64 + 1) * 64, end, 64)] + [end]
            border = random.choice(borders)
            fails = len(answers) == good or len(answers) < good and border == end
            if fails and fault in (UNSUPPORTED, RETRY, ABORT):
                answers.append((header(lower=at, bytes=left, status=fault, tag=tag, func=func), b""))
                break
            data = self.memory(at & ~3, border - (at & ~3))
            answers.append((header(lower=at, bytes=left, length=len(data) // 4, tag=tag, func=func,
                                   poisoned=fails and fault == "poisoned"), data))
            left, at = left - min(left, border - at), border
        self.coming.setdefault(tag, []).extend(answers)
