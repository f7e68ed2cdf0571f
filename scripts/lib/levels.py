"""Logic levels and area of the gateware: modules mapped by Yosys, hw/docs/depth.md."""

import gzip
import hashlib
import json
import re
from itertools import chain

from lib import design, netlist
from lib.design import CLOCKS
from lib.needs import Failure

# The card with its PCIe shim and PCS; modules that are wiring, and are joined from the others as mapped.
TOP, JOINED = "plx_nic", ("plx_nic", "plx_card", "plx_port", "plx_memory", "plx_host_bus", "plx_net",
                        "plx_timing_block", "plx_evb_ring", "plx_evb_sched", "plx_evb_engine")
# Of a family: what its logic is called; how it is mapped.
FAMILIES = {"xcup": ("AMD UltraScale+", "synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {top}"),
            "arriav": ("Intel Arria V", "synth_intel_alm -family arriav -noiopad -noclkbuf -top {top}")}
# NaNet-10 on a Stratix V, as reported by its authors: ALUTs, registers, MB of memory; our modules of that purpose.
NANET = (("whole", 83_611, 132_194, 1.17, {"plx_nic": 1}),
         ("10GbE I/O, 4 ports", 40_503, 84_935, 0.007, {"plx_port": 4, "plx_pcs": 4}),
         ("network interface", 31_033, 34_389, 0.825, {"plx_memory": 1, "plx_host_bus": 1}),
         ("router", 7_954, 7_957, 0.338, {}),
         ("PCIe", 3_902, 4_449, None, {"plx_pcie_us": 1}))
# To be raised when levels are counted in another way: all rows are stale then.
COUNTING = 1
KEYS = ("module", "family", "clock", "mhz", "levels", "from", "to", "luts", "ffs", "bram", "dsp")


class Gateware:
    """The modules of hw/rtl as the card has them, and those outside of the card as they are alone."""

    def __init__(self, rtlil, files):
        self.every = design.modules(rtlil.read_text(encoding="utf-8"))
        self.texts = {file.stem: re.sub(r"\s+", " ", re.sub(r"//[^\n]*", "", file.read_text(encoding="utf-8")))
                      for file in files}
        inside = set(design.below(self.every, TOP))
        known = {self.every[key].name for key in inside}
        spare = {key for key, module in self.every.items() if module.name not in known}
        used = {inner for key in spare for inner, _, _ in self.every[key].cells}
        # A module without parameters of its own choosing: what nothing instantiates.
        self.tops = [TOP, *sorted(key for key in spare if key not in used)]
        self.clocks = {}
        for top in self.tops:
            for key, ports in design.clocks(self.every, top).items():
                self.clocks.setdefault(key, ports)
        self.parts, self.modules = set(), {}
        for top in self.tops:
            self.parts |= set(self.parts_of(top))
        for key in chain.from_iterable(design.below(self.every, top) for top in self.tops):
            # With the sizes that the card has, if it is in the card.
            if key in inside or self.every[key].name not in known:
                self.modules.setdefault(self.every[key].name, set()).add(key)
        for name, keys in self.modules.items():
            if mapped := keys & self.parts:
                self.modules[name] = mapped
            else:
                # Inside others only: the largest.
                self.modules[name] = {max(sorted(keys), key=self.size)}
        self.hashes = {}

    def size(self, key):
        return sum(int(value) for value in self.every[key].parameters.values() if value.isdigit())

    def parts_of(self, key):
        """What a module is joined from: itself first."""
        inner = [part for child, _, _ in self.every[key].cells for part in self.parts_of(child)]
        return [key, *(inner if self.every[key].name in JOINED else [])]

    def inside(self, key):
        """The modules that are mapped together with one."""
        return [key] if self.every[key].name in JOINED else design.below(self.every, key)

    def constants(self, name):
        """What a module uses of packages: numbers, or else all of the package."""
        for package, one in sorted(set(re.findall(r"\b(\w+_pkg)::(\w+)", self.texts[name]))):
            value = re.search(rf"\b{one} = (\d+)[,;]", self.texts[package])
            yield f"{package}::{one} = {value[1]}" if value else self.texts[package]

    def hash(self, key, family):
        """Of a part as mapped: sources without comments, parameters, mapping."""
        if (key, family) not in self.hashes:
            words = [str(COUNTING), FAMILIES[family][1]]
            for name, settings in sorted({(self.every[at].name, self.every[at].settings()) for at in self.inside(key)}):
                words += [name, settings, self.texts[name], *self.constants(name)]
            self.hashes[key, family] = hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]
        return self.hashes[key, family]

    def digest(self, name, family):
        """Of a row: that of its parts."""
        parts = sorted({self.hash(part, family) for key in self.modules[name] for part in self.parts_of(key)})
        return parts[0] if len(parts) == 1 else hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]

    def script(self, key, family, folder):
        """Files for Yosys: its input is written, its script and its output are returned."""
        children = sorted({inner for inner, _, _ in self.every[key].cells}) if self.every[key].name in JOINED else []
        source, made = folder / f"{key}.{family}.il", folder / f"{key}.{family}.json"
        source.write_text("".join("".join(self.every[at].lines) for at in [*self.inside(key), *children]),
                          encoding="utf-8")
        box = f"blackbox {' '.join(children)}; " if children else ""
        return (f"read_rtlil {source}; {box}hierarchy -top {key}; {FAMILIES[family][1].format(top=key)}; "
                f"write_json {made}"), source, made

    def kept(self, key, family, folder):
        """The file of a part as mapped, which there may be. One that is joined names the parts inside it, whose
        numbers depend on the rest of the design."""
        children = " ".join(inner for inner, _, _ in self.every[key].cells) if self.every[key].name in JOINED else ""
        number = hashlib.sha256(children.encode()).hexdigest()[:4]
        return folder / f"{key}.{family}.{self.hash(key, family)}{number if children else ''}.gz"

    def keep(self, key, family, folder, made):
        """Keeps what is needed of Yosys' output."""
        modules, small = json.loads(made.read_text(encoding="utf-8"))["modules"], {}
        for name in (key, *{inner for inner, _, _ in self.every[key].cells} & set(modules)):
            module = modules[name]
            small[name] = {"ports": module["ports"], "cells": {}, "netnames": {}}
            if name == key:
                small[name]["cells"] = {cell: {word: one[word] for word in
                                               ("type", "connections", "port_directions", "parameters")
                                               if word in one and (word != "parameters" or "DSP" in one["type"])}
                                        for cell, one in module["cells"].items()}
                small[name]["netnames"] = {net: {"hide_name": one["hide_name"], "bits": one["bits"]}
                                           for net, one in module["netnames"].items()}
        for old in folder.glob(f"{key}.{family}.*.gz"):
            old.unlink()
        kept = self.kept(key, family, folder)
        with gzip.open(kept.with_suffix(".part"), "wt", compresslevel=1) as file:
            json.dump({"modules": small}, file)
        kept.with_suffix(".part").rename(kept)
        made.unlink()

    def rows(self, name, family, folder):
        """The rows of a module, one for each clock: of several sizes in the card, the worst of each figure."""
        graphs, paths, counts, sources = {}, {}, {}, self.digest(name, family)
        for key in sorted(self.modules[name]):
            for part in self.parts_of(key):
                if part not in graphs:
                    with gzip.open(self.kept(part, family, folder), "rt") as file:
                        graphs[part] = netlist.read(json.load(file), part)
            graph = netlist.join(key, graphs) if self.every[key].name in JOINED else graphs[key]
            clocks = self.clocks[key]
            main = min(clocks.values(), default="clk_core")
            found = netlist.longest(graph, clocks, main) or {main: (0, "", "")}
            for clock, path in found.items():
                paths[clock] = max(path, paths.get(clock, path), key=lambda one: one[0])
            for what, amount in graph.counts.items():
                counts[what] = max(amount, counts.get(what, 0))
        return [{"module": name, "family": family, "clock": clock, "mhz": CLOCKS[clock][0], "levels": levels,
                 "limit": CLOCKS[clock][1], "from": start, "to": end, **counts, "sources": sources}
                for clock, (levels, start, end) in sorted(paths.items())]


def recorded(page):
    """The rows of the page."""
    rows = []
    for line in page.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if len(cells) == 13 and cells[1] in FAMILIES:
            mhz, bar = CLOCKS[cells[2]]
            numbers = [float(cell.replace("\N{NO-BREAK SPACE}", "")) for cell in cells[7:12]]
            rows.append({"module": cells[0], "family": cells[1], "clock": cells[2], "mhz": mhz,
                         "levels": int(cells[3]), "limit": bar, "from": cells[5], "to": cells[6],
                         **{key: int(one) if one == int(one) else one
                            for key, one in zip(("luts", "ffs", "bram", "kbit", "dsp"), numbers)}, "sources": cells[12]})
    return rows


def wrong(gateware, rows):
    """What is wrong with the page's rows."""
    there = {(row["module"], row["family"]) for row in rows}
    said = [f"there is no module {name}" for name in sorted({name for name, _ in there} - set(gateware.modules))]
    said += [f"{name} has no row of {family}" for name in sorted(gateware.modules) for family in FAMILIES
             if (name, family) not in there]
    for row in rows:
        if row["module"] in gateware.modules:
            if row["sources"] != gateware.digest(row["module"], row["family"]):
                said.append(f"{row['module']} has changed since its row of {row['family']}")
            if row["levels"] > row["limit"]:
                said.append(f"{row['module']} ({row['family']}, {row['clock']}) has {row['levels']} levels, and may have "
                            f"{row['limit']}: {row['from']} to {row['to']}")
    return said


def number(value):
    """A number with its thousands apart."""
    return f"{value:,g}".replace(",", "\N{NO-BREAK SPACE}") if value < 1e6 else str(value)


def figures(row):
    """The cells of a row."""
    return [f"`{row['module']}`", row["family"], row["clock"], str(row["levels"]), str(row["limit"]), f"`{row['from']}`",
            f"`{row['to']}`", *(number(row[key]) for key in ("luts", "ffs", "bram", "kbit", "dsp")), f"`{row['sources']}`"]


def areas(rows):
    """The table of NaNet-10's area beside that of our modules, for Intel's family."""
    own = {row["module"]: row for row in rows if row["family"] == "arriav"}
    yield "| block of NaNet-10 | ALUT | registers | MB | Pollux | ALUT | registers | MB |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for block, *theirs, modules in NANET:
        here = [(count, own[name]) for name, count in modules.items() if name in own]
        names = ", ".join(f"{f'{count} x ' if count > 1 else ''}`{name}`" for name, count in modules.items())
        sums = [sum(count * row[key] for count, row in here) for key in ("luts", "ffs", "kbit")]
        cells = [*theirs, names, *((*sums[:2], round(sums[2] / 8192, 3)) if here else ("", "", ""))]
        yield f"| {block} | {' | '.join(one if isinstance(one, str) else '' if one is None else number(one) for one in cells)} |"


def between(text, start, end, lines):
    """A text with other lines between two of its lines."""
    head, first, rest = text.partition(f"<!-- {start} -->\n")
    _, last, tail = rest.partition(f"<!-- {end} -->\n")
    if not first or not last:
        raise Failure(f"hw/docs/depth.md has no lines `<!-- {start} -->` and `<!-- {end} -->`")
    return head + first + "\n".join(lines) + "\n" + last + tail


def page(template, rows):
    """The page with its generated parts made anew."""
    head, mark, _ = between(template, "area", "end", areas(rows)).partition("<!-- rows -->\n")
    if not mark:
        raise Failure("hw/docs/depth.md has no line `<!-- rows -->`")
    lines = ["| module | family | clock | levels | limit | from | to | LUT | FF | block RAM | kbit | DSP | sources |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    order = {TOP: ""}
    rows = sorted(rows, key=lambda row: (order.get(row["module"], row["module"]), list(FAMILIES).index(row["family"]),
                                         row["clock"]))
    lines += [f"| {' | '.join(figures(row))} |" for row in rows]
    return head + "<!-- rows -->\n" + "\n".join(lines).strip() + "\n"
