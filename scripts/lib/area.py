"""Estimates of the card's FPGA resources: modules, results of Yosys, hw/docs/area.md."""

import re

# Modules of the card with its parameters as they are, and how many of each there are; wiring is not listed.
PARTS = {
    "Ports (4)": (4, ("mac_rx", "mac_tx", "link_fault", "pause", "net", "rx_fifo", "decompress", "place", "tx_read",
                      "tx_fifo", "generator", "port_regs", "axil_cdc")),
    "Memory": (1, ("clop", "tlb", "event_writer", "event_irq", "tx_ring", "rd_mux", "clop_regs", "tlb_regs",
                   "event_regs", "tx_regs")),
    "Host bus": (1, ("csr", "wr_mux", "dma_wr", "dma_rd", "msix", "card_regs", "host_regs")),
    "Timing": (1, ("timing_block",)),
}
# Banks of counters, by how many they hold.
COUNTERS = {"Ports (4)": (4, 24, 14), "Memory": (1, 16, 14), "Host bus": (1, 10, 1)}

# Of a family: what its logic is called; how it is synthesised; cells that are logic and registers; bits of
# memory of a cell.
FAMILIES = {
    "intel": ("Intel ALUT", "synth_intel_alm -family arriav -top {top}", r"MISTRAL_ALUT", r"MISTRAL_FF$",
              {"MISTRAL_M10K": 10240, "MISTRAL_MLAB": 32}),
    "xilinx": ("AMD LUT", "synth_xilinx -family xcup -flatten -noiopad -top {top}", r"LUT[1-6]$", r"FD[RSCP]E$",
               {"RAMB36E2": 36864, "RAMB18E2": 18432, "RAM32M16": 512, "RAM64M8": 512, "RAM32X1D": 32, "RAM64X1D": 64}),
}

# Where there is no figure.
NONE = "–"

TEXT = f"""\
<!-- Made by scripts/gateware area: do not edit. -->
# Area

Estimates by Yosys {{version}}: each module alone, with the card's parameters, without the logic between modules, timing,
placement and routing. They show which modules are large and which grow, not the results of a vendor's tool.

- Intel: `synth_intel_alm -family arriav`. Memories whose reads can stall, such as those of fifos, are built from
  small blocks with logic around them; a vendor's tool would use M20K.
- AMD: `synth_xilinx -family xcup`.
- Memory is that of the used blocks. The synthesis of a module with {NONE} did not finish within its half hour.

{{table}}

NaNet-10, as reported by its authors from the vendor's synthesis for a Stratix V:

| block | ALUT | registers | MB |
| --- | --- | --- | --- |
| whole | 83 611 | 132 194 | 1.17 |
| 10GbE I/O, 4 ports | 40 503 | 84 935 | 0.007 |
| network interface | 31 033 | 34 389 | 0.825 |
| router | 7 954 | 7 957 | 0.338 |
| PCIe | 3 902 | 4 449 | |

It includes the vendor's MACs and an interface to PCIe; the card includes MACs, and neither PCS nor PCIe.
"""


def modules():
    """All that is synthesised: name, and parameters."""
    for _, names in PARTS.values():
        for name in names:
            yield name, {}
    for _, count, width in COUNTERS.values():
        yield f"counters-{count}", {"COUNT": count, "AMOUNT_W": width}


def script(module, parameters, family, files, libraries, stat):
    """The script for Yosys."""
    top = module.split("-")[0]
    settings = "".join(f" -chparam {name} {value}" for name, value in parameters.items())
    return (f"read_verilog -sv {files}; hierarchy -check -top {top}{settings} {libraries}; "
            f"{FAMILIES[family][1].format(top=top)}; tee -o {stat} stat")


def measured(stat, family):
    """Logic, registers and bits of memory, from the output of `stat`."""
    _, _, logic, registers, memories = FAMILIES[family]
    cells = {cell: int(count) for cell, count in re.findall(r"^ +([A-Z]\w+) +(\d+)$", stat, re.MULTILINE)}
    return [sum(count for cell, count in cells.items() if re.match(logic, cell)),
            sum(count for cell, count in cells.items() if re.match(registers, cell)),
            sum(cells.get(cell, 0) * bits for cell, bits in memories.items())]


def recorded(page):
    """Figures that the page has, in {family: {module: figures}}: a module is synthesised once."""
    families = [family for family, (name, *_) in FAMILIES.items() if name in page]
    results, group = {family: {} for family in families}, ""
    for line in page.splitlines():
        if found := re.match(r"\| \*\*(.+)\*\* \|", line):
            group = found[1]
        elif found := re.match(r"\| `(\w+)` \| each \| (.*) \|$", line):
            name = f"counters-{COUNTERS[group][1]}" if found[1] == "counters" else found[1]
            cells = found[2].replace("\N{NO-BREAK SPACE}", "").replace(" ", "").split("|")
            for family, at in zip(families, range(0, len(cells), 3)):
                if NONE not in cells[at:at + 3]:
                    logic, registers, kbit = map(int, cells[at:at + 3])
                    results[family][name] = [logic, registers, kbit * 1024]
    return results


def cells_of(figures):
    """Thousands apart, memory in kbit."""
    return " | ".join(f"{one[0]:,} | {one[1]:,} | {round(one[2] / 1024)}".replace(",", " ") if one else
                      f"{NONE} | {NONE} | {NONE}" for one in figures)


def added(total, times, one):
    """A sum, which there is if there are all of its parts."""
    return [left + times * right for left, right in zip(total, one)] if total and one else None


def page(results, version):
    """The page, of {family: {module: figures}}."""
    families = [family for family in FAMILIES if results.get(family)]
    rows, whole = [], [[0] * 3 for _ in families]
    for group, (times, names) in PARTS.items():
        counters = [f"counters-{COUNTERS[group][1]}"] if group in COUNTERS else []
        total, inner = [[0] * 3 for _ in families], []
        for name in (*names, *counters):
            figures = [results[family].get(name) for family in families]
            inner.append(f"| `{name.split('-')[0]}` | each | {cells_of(figures)} |")
            total = [added(sum_, times, one) for sum_, one in zip(total, figures)]
        rows += [f"| **{group}** | all | {cells_of(total)} |", *inner]
        whole = [added(sum_, 1, one) for sum_, one in zip(whole, total)]
    heads = " | ".join(f"{FAMILIES[family][0]} | registers | kbit" for family in families)
    table = [f"| module | | {heads} |", "| --- | --- |" + " --- |" * 3 * len(families),
             f"| **The card** | all | {cells_of(whole)} |", *rows]
    return TEXT.format(version=version, table="\n".join(table))
