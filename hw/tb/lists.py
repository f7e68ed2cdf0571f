"""A model of the lists of docs/formats/clop.md as the card fills them, driven by the card's observed actions."""

from dataclasses import dataclass, field

PLACED, NO_BUFFER, NO_EVENT, OVERSIZE, FAULT, OFF, MALFORMED, BAD_VERSION, BAD = range(9)
FULL, TIMEOUT, FLUSH = range(3)
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


@dataclass
class Payload:
    length: int
    stamp: int
    stamped: bool
    stages: tuple
    sequence: int
    space: int
    arrival: int


@dataclass
class List:
    """One list: settings, and payloads that are committed and not yet announced."""

    base: int
    size: int
    count: int
    bare: bool = False
    queue: int = 0
    func: int = 0
    stride: int = 0
    timeout: int = (1 << 31) - 1
    serial: int = 0
    released: int = 0
    sequence: int = 0
    flush: bool = False
    payloads: list = field(default_factory=list)
    announced: list = field(default_factory=list)

    @property
    def used(self):
        return sum(payload.space for payload in self.payloads)

    @property
    def start(self):
        return self.base + self.serial % self.count * self.size

    def space(self, length):
        return self.stride * 16 if self.bare else (length + 15) // 16 * 16 + 16

    def oversize(self, length):
        return self.space(length) > self.size or self.bare and (length > self.stride * 16 or not self.stride)

    def crowded(self, length, stamp, stamped):
        if not self.payloads:
            return False
        told = next(((payload.stamp) for payload in self.payloads if payload.stamped), None)
        near = told is None or not stamped or -(1 << 31) <= stamp - told < 1 << 31
        return not near or self.used + self.space(length) > self.size

    def select(self, length, stamp, stamped):
        """(outcome, address), after an announcement that the payload caused."""
        if self.oversize(length):
            return OVERSIZE, None
        if self.crowded(length, stamp, stamped):
            return NO_EVENT, None
        if not self.payloads and (self.serial - self.released) & M32 >= self.count:
            return NO_BUFFER, None
        return PLACED, self.start + self.used

    def commit(self, outcome, length, stamp, stamped, stages, now):
        if outcome == PLACED:
            arrival = now - ((now - stages[0]) & M32)
            self.payloads.append(Payload(length, stamp, stamped, stages, self.sequence, self.space(length), arrival))
        if outcome <= FAULT:
            self.sequence = self.sequence + 1 & M32

    def no_more(self):
        return self.used + (self.stride * 16 if self.bare else 16) > self.size

    def announce(self, record, number, now):
        """Checks the record of this list's announcement; returns its payloads."""
        bits = lambda at, width: record >> at & ((1 << width) - 1)
        assert self.payloads, "an empty buffer is announced"
        stamps = [payload.stamp for payload in self.payloads if payload.stamped]
        first, last = self.payloads[0], self.payloads[-1]
        assert bits(496, 8) == 1 and bits(480, 16) == number
        assert bits(504, 8) == bool(stamps) and bits(0, 64) == (stamps[0] if stamps else 0)
        assert bits(64, 32) == self.serial % self.count and bits(96, 32) == self.used
        assert bits(128, 32) == len(self.payloads)
        assert (bits(160, 32), bits(192, 32)) == (first.sequence, last.sequence)
        assert bits(256, 64) == first.arrival and bits(448, 32) == self.serial & M32
        assert tuple(bits(320 + 32 * n, 32) for n in range(3)) == last.stages and bits(416, 32) == 0
        reason = bits(224, 32)
        waited = now - first.arrival
        assert reason in (FULL, TIMEOUT, FLUSH)
        assert reason != TIMEOUT or waited >= self.timeout, "before its time"
        assert reason != FLUSH or self.flush
        payloads, self.payloads = self.payloads, []
        self.announced.append((self.serial, reason, payloads))
        self.serial += 1
        self.flush = False
        return reason, payloads
