"""The parts of the register map that tests of hw/cosim observe."""

import re
from collections import defaultdict
from pathlib import Path

# Values that no test of the whole card can observe, with the reason.
UNSEEN = {
    "Port: `TX_ABORTED`":
        "packets are whole before they are sent; its bench sees it, `mac_tx/a_gap_in_the_input_spoils_the_frame`",
    "Port: `PCS_STATUS` `hi_ber`":
        "the lines have no noise; its bench sees it, `nic_lanes/each_lane_counts_what_is_wrong_with_it`",
    "Port: `PCS_UNDERFLOW`":
        "received clocks run; its bench sees it, `nic_lanes/each_lane_counts_what_its_elastic_buffer_does`",
    "Port: `PCS_TX_ERRORS`":
        "the MAC sends no illegal words; its bench sees it, `nic_lanes/each_lane_counts_what_is_wrong_with_it`",
}

# Modules of the tests on the card from its RTL.
RTL = ("bring_up::", "clocks::", "pcs::", "verilated::")


class Field:
    """What the card tells in a register, or what the host has it do: of 64 bits, the low half."""

    def __init__(self, block, register, name, access, mask):
        self.register, self.access, self.mask = register, access, mask
        self.name = f"{block}: `{register}`" + (f" `{name}`" if name else "")


def fields(page):
    """Those of hw/docs/registers.md that no test of all registers can know: not settings, nor what is always the same.
    By kind and offset of their register."""
    found, block, kind, register, at = defaultdict(list), "", 0, "", 0
    for line in page.splitlines():
        if line.startswith("## "):
            block = line[3:]
        if not (row := re.match(r"\| (.*?) \| `(\w+)` \| (\S*) ?\| ?(\S*) ?\| (\S*) ?\|", line)):
            continue
        place, name, bits, access, reset = row.groups()
        if place.strip():
            at, register, name = int(re.match(r"`(0x\w+)`", place)[1], 16), name, ""
        if name == "kind" and at == 0:
            kind = int(reset)
        if bits and (access in ("w", "rc") or access == "r" and not reset):
            high, _, low = bits.partition("-")
            mask = (1 << min(int(high), 31) + 1) - (1 << int(low or high))
            found[kind, at].append(Field(block, register, name, access, mask))
    return found


def by_field(page, folder):
    """Each field, and the tests on the card from its RTL that have seen it set, or have set it. A test with a host that
    does its worst, and with one that does not, is one."""
    tests, wanted = defaultdict(set), fields(page)
    for file in (file for file in Path(folder).iterdir() if file.name.startswith(RTL)):
        for line in file.read_text(encoding="utf-8").splitlines():
            kind, at, read, written = (int(word, 0) for word in line.split())
            for field in wanted.get((kind, at), ()):
                if field.mask & (written if field.access == "w" else read):
                    tests[field].add(file.name.rpartition("::")[2])
    return {field.name: sorted(tests[field]) for register in wanted.values() for field in register}


def unseen(found):
    """Fields that no test has seen, without those that none can."""
    return [name for name, tests in found.items() if not tests and name not in UNSEEN]


def table(found):
    rows = ["| field | seen by |", "| --- | --- |"]
    for name, tests in found.items():
        more = f" and {len(tests) - 3} more" if len(tests) > 3 else ""
        words = ", ".join(f"`{test}`" for test in tests[:3]) + more
        rows.append(f"| {name} | {words or UNSEEN.get(name, 'no test')} |")
    return "\n".join(rows)
