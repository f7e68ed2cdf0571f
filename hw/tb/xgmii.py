"""Hand-made words of XGMII: frames with any gap, in any lane, and all kinds of errors."""

import random
import zlib

IDLE, START, TERMINATE, ERROR, SEQUENCE = 0x07, 0xFB, 0xFD, 0xFE, 0x9C
PREAMBLE = bytes([0x55] * 6 + [0xD5])


def with_fcs(data):
    return bytes(data) + zlib.crc32(data).to_bytes(4, "little")


def payload(size):
    return random.getrandbits(8 * size).to_bytes(size, "little") if size else b""


class Wire:
    """The words of a wire: bytes with control flags. A frame starts in lane 0 or 4."""

    def __init__(self):
        self.lanes = []

    def control(self, *characters):
        self.lanes += [(character, 1) for character in characters]

    def data(self, data):
        self.lanes += [(byte, 0) for byte in data]

    def idle(self, count):
        self.control(*[IDLE] * count)

    def align(self, lane=None):
        """Idles to the next column; or to this lane."""
        while len(self.lanes) % (4 if lane is None else 8) != (lane or 0):
            self.idle(1)

    def sequence(self, code):
        """An ordered set: 1 local fault, 2 remote fault (46.3.4)."""
        self.align()
        self.control(SEQUENCE)
        self.data([0, 0, code])

    def frame(self, data, gap=12, lane=None, preamble=PREAMBLE, end=TERMINATE):
        """A frame with FCS; at least `gap` bytes before it, including the end of the last."""
        self.idle(max(gap - 1, 0))
        self.align(lane)
        self.control(START)
        self.data(preamble)
        self.data(data)
        if end is not None:
            self.control(end)

    def words(self):
        """Data and control of each word, with idles at the end."""
        lanes = self.lanes + [(IDLE, 1)] * (-len(self.lanes) % 8)
        for first in range(0, len(lanes), 8):
            word = lanes[first:first + 8]
            yield (int.from_bytes(bytes(lane[0] for lane in word), "little"),
                   sum(lane[1] << place for place, lane in enumerate(word)))


class Received:
    """A frame of the wire: its bytes without preamble, and its properties."""

    def __init__(self, start, data, spoilt, gap):
        self.start, self.data, self.spoilt, self.gap = start, data, spoilt, gap

    def payload(self):
        """The frame without FCS, which must be correct."""
        assert not self.spoilt and self.data == with_fcs(self.data[:-4]), self.data.hex()
        return self.data[:-4]


def received(words):
    """The frames in a list of words; all of what is not a frame must be idle or an ordered set."""
    lanes = [(word >> 8 * lane & 0xFF, control >> lane & 1) for word, control in words for lane in range(8)]
    frames, place, end = [], 0, None
    while place < len(lanes):
        if lanes[place] == (START, 1):
            assert place % 4 == 0, f"a start in lane {place % 8}"
            assert lanes[place + 1:place + 8] == [(byte, 0) for byte in PREAMBLE]
            first = place + 8
            gap, start, place = None if end is None else place - end, place, lanes.index((TERMINATE, 1), first)
            body, end = lanes[first:place], place
            assert all(not control or byte == ERROR for byte, control in body), body
            frames.append(Received(start, bytes(byte for byte, _ in body), any(control for _, control in body), gap))
        elif lanes[place] == (SEQUENCE, 1):
            assert place % 4 == 0 and not any(control for _, control in lanes[place + 1:place + 4])
            place += 3
        else:
            assert lanes[place] == (IDLE, 1), lanes[place]
        place += 1
    return frames
