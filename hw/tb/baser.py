"""10GBASE-R (IEEE 802.3, clause 49) in Python: blocks, their states, the scrambler, and a line with faults.

Codes and kinds of blocks are those of cocotbext-eth; a block is (header, data), and a line is bits in a number,
the first in bit 0. XGMII is (data, control), eight lanes."""

from cocotbext.eth.constants import (BaseRBlockType, BaseRO, BaseRSync, XgmiiCtrl, baser_ctrl_to_xgmii_mapping,
                                     block_type_term_lane_mapping, xgmii_ctrl_to_baser_mapping)

WORD = (1 << 64) - 1
# Low power idle is an error to a PCS without energy-efficient Ethernet.
CODES = {int(c): int(b) for c, b in xgmii_ctrl_to_baser_mapping.items() if c != XgmiiCtrl.LPI}
CHARACTERS = {int(b): int(c) for b, c in baser_ctrl_to_xgmii_mapping.items() if c != XgmiiCtrl.LPI}
SETS = {int(XgmiiCtrl.SEQ_OS): int(BaseRO.SEQ_OS), int(XgmiiCtrl.SIG_OS): int(BaseRO.SIG_OS)}
O_CODES = {code: character for character, code in SETS.items()}
IDLE, START, TERMINATE, ERROR = (int(c) for c in (XgmiiCtrl.IDLE, XgmiiCtrl.START, XgmiiCtrl.TERM, XgmiiCtrl.ERROR))
ENDS = {int(kind): lane for kind, lane in block_type_term_lane_mapping.items()}
# What the halves of other control blocks have: control characters, an ordered set, a start, its data.
HALVES = {int(kind): halves for kind, halves in {
    BaseRBlockType.CTRL: "CC", BaseRBlockType.OS_4: "CO", BaseRBlockType.START_4: "CS", BaseRBlockType.OS_START: "OS",
    BaseRBlockType.OS_04: "OO", BaseRBlockType.START_0: "SD", BaseRBlockType.OS_0: "OC"}.items()}
IDLES = (int.from_bytes([IDLE] * 8, "little"), 0xFF)
ERRORS = (int.from_bytes([ERROR] * 8, "little"), 0xFF)
FAULTS = (0x0100009C0100009C, 0x11)

# Figures 49-16 and 49-17: state of a block by its kind and the state before; all others are errors.
NEXT = {"C": {state: "C" for state in "ICTE"}, "S": {state: "D" for state in "ICT"},
        "D": {state: "D" for state in "DE"}, "T": {state: "T" for state in "DE"}, "E": {}}


def lanes_of(word):
    data, control = word
    return [(data >> 8 * i & 0xFF, control >> i & 1) for i in range(8)]


def word_of(lanes):
    return (sum(character << 8 * i for i, (character, _) in enumerate(lanes)),
            sum(flag << i for i, (_, flag) in enumerate(lanes)))


def halves_of(lanes):
    """A letter for each half of a word, "?" for one that is none of them."""
    def half(four):
        first, flags = four[0][0], [flag for _, flag in four]
        if all(flags) and all(character in CODES for character, _ in four):
            return "C"
        if flags == [1, 0, 0, 0]:
            return "O" if first in SETS else "S" if first == START else "?"
        return "D" if not any(flags) else "?"
    return half(lanes[:4]) + half(lanes[4:])


def encode(word):
    """Kind and block of a word: figure 49-7."""
    lanes = lanes_of(word)
    codes = sum(CODES.get(character, 0) << 7 * i for i, (character, _) in enumerate(lanes)) << 8
    halves = halves_of(lanes)
    if halves == "DD":
        return "D", (int(BaseRSync.DATA), word[0])
    for first, those in HALVES.items():
        if those == halves:
            data = first
            for at, letter in ((0, halves[0]), (4, halves[1])):
                if letter == "C":
                    data |= codes & 0xFFFFFFF << 8 + 7 * at
                else:
                    data |= word[0] & 0xFFFFFF00 << 8 * at
                if letter == "D":
                    data |= word[0] & 0xFF << 8 * at
                if letter == "O":
                    data |= SETS[lanes[at][0]] << 32 + at
            error = halves == "CC" and any(character == ERROR for character, _ in lanes)
            return ("E", ERROR_BLOCK) if error else ("S" if "S" in halves else "C", (int(BaseRSync.CTRL), data))
    for first, at in ENDS.items():
        if (lanes[at] == (TERMINATE, 1) and not any(flag for _, flag in lanes[:at])
                and all(flag and character in CODES for character, flag in lanes[at + 1:])):
            data = first | (word[0] & (1 << 8 * at) - 1) << 8 | codes >> 15 + 7 * at << 15 + 7 * at
            return "T", (int(BaseRSync.CTRL), data)
    return "E", ERROR_BLOCK


ERROR_BLOCK = (int(BaseRSync.CTRL), 0x1E | sum(0x1E << 7 * i for i in range(8)) << 8)
FAULT_BLOCK = encode(FAULTS)[1]

# The sample of the task force (IEEE 802.3ae, R. Walker, "64b/66b coding update", July 2000: walker_1_0700.pdf): words,
# idles and a start, and their scrambled blocks, on a line whose last 58 bits are ones. Literal, so that no figure of
# this file has a part in it.
SAMPLE_WORDS = [(0x0707070707070707, 0xFF), (0xD5555555555555FB, 0x01)]
SAMPLE_BLOCKS = [(0b01, 0x7BFFF0800000001E), (0b01, 0x623016AAAAAD1578)]


def decode(block):
    """Kind and word of a block: figure 49-7."""
    header, data = block
    if header == BaseRSync.DATA:
        return "D", (data, 0)
    if header != BaseRSync.CTRL:
        return "E", ERRORS
    first, lanes = data & 0xFF, []
    codes = [CHARACTERS.get(data >> 8 + 7 * i & 0x7F) for i in range(8)]
    if first in ENDS:
        at = ENDS[first]
        lanes = [(data >> 8 * i + 8 & 0xFF, 0) for i in range(at)] + [(TERMINATE, 1)]
        lanes += [(code, 1) for code in codes[at + 1:]]
        kind = "T"
    elif first in HALVES:
        for at, letter in ((0, HALVES[first][0]), (4, HALVES[first][1])):
            if letter == "C":
                lanes += [(code, 1) for code in codes[at:at + 4]]
                continue
            lanes += {"O": [(O_CODES.get(data >> 32 + at & 15), 1)], "S": [(START, 1)],
                      "D": [(data >> 8 * at & 0xFF, 0)]}[letter]
            lanes += [(data >> 8 * i & 0xFF, 0) for i in range(at + 1, at + 4)]
        kind = "S" if "S" in HALVES[first] else "C"
    if not lanes or None in (character for character, _ in lanes) or first == BaseRBlockType.CTRL and ERROR in codes:
        return "E", ERRORS
    return kind, word_of(lanes)


class Sender:
    """The sending half: words to bits."""

    def __init__(self, line=(1 << 58) - 1):
        self.state, self.line = "I", line

    def block(self, word):
        kind, block = encode(word)
        self.state = NEXT[kind].get(self.state, "E")
        return ERROR_BLOCK if self.state == "E" else block

    def scramble(self, block):
        """Figure 49-8, a bit at a time."""
        header, data = block
        out = 0
        for i in range(64):
            bit = (data >> i ^ self.line >> 38 ^ self.line >> 57) & 1
            self.line = (self.line << 1 | bit) & (1 << 58) - 1
            out |= bit << i
        return header, out

    def bits(self, word):
        header, data = self.scramble(self.block(word))
        return data << 2 | header


class Receiver:
    """The receiving half, behind block lock: blocks to words, each known when the next block is."""

    def __init__(self):
        self.state, self.line, self.last = "I", 0, None

    def descramble(self, block):
        """Figure 49-10, a bit at a time."""
        header, data = block
        out = 0
        for i in range(64):
            bit = data >> i & 1
            out |= ((bit ^ self.line >> 38 ^ self.line >> 57) & 1) << i
            self.line = (self.line << 1 | bit) & (1 << 58) - 1
        return header, out

    def word(self, block):
        """The word of the block before this one, which is not scrambled."""
        now, self.last = self.last, decode(block)
        if now is None:
            return None
        kind, word = now
        self.state = NEXT[kind].get(self.state, "E")
        if self.state == "T" and self.last[0] not in "SC":
            self.state = "E"
        return ERRORS if self.state == "E" else word


def any_word(random):
    """A word of any kind: each legal one, and others, some of them nearly legal."""
    characters = [*CODES, *SETS, START, TERMINATE, int(XgmiiCtrl.LPI), random.getrandbits(8)]

    def control(some=tuple(CODES)):
        return random.choice(some), 1

    def data(count):
        return [(random.choice((random.getrandbits(8), IDLE, TERMINATE, ERROR)), 0) for _ in range(count)]

    def half():
        return random.choice((lambda: [control() for _ in range(4)], lambda: [control(tuple(SETS)), *data(3)],
                              lambda: [(START, 1), *data(3)], lambda: data(4), lambda: [(IDLE, 1)] * 4))()

    def end():
        at = random.randrange(8)
        return [*data(at), (TERMINATE, 1), *(control() for _ in range(7 - at))]

    lanes = random.choice((lambda: half() + half(), end, lambda: data(8), lambda: [control() for _ in range(8)]))()
    if random.random() < 0.2:
        lanes[random.randrange(8)] = (random.choice(characters), random.getrandbits(1))
    return word_of(lanes)


class Line:
    """Bits between two transceivers: those put in come out as blocks, whose boundary slips by a bit when asked to.
    `spoil` may change each block: a fault that lasts."""
    DELAY = 16 * 66

    def __init__(self, offset=0):
        self.bits, self.count, self.spoil = 0, self.DELAY + offset, lambda block: block

    def put(self, bits, count=66):
        self.bits |= bits << self.count
        self.count += count

    def drop(self, count=1):
        """Bits that are lost, or a slip of the boundary."""
        self.bits >>= count
        self.count -= count

    def take(self):
        """The next block."""
        assert self.count >= 66, "the line is empty"
        block = self.spoil(self.bits & (1 << 66) - 1)
        self.drop(66)
        return block & 3, block >> 2
