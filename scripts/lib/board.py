"""The board of hw/syn: elaboration of its top, crossings of clocks, lists of files, Vivado's scripts."""

import json
import re
import shutil
import time
from pathlib import Path

from lib.cargo import ROOT
from lib.crossings import Crossings, Netlist
from lib.gateware import LONG, Row, run
from lib.needs import Failure, need
from lib.venv import environment

SYN, AMD, MUTANTS = ROOT / "hw/syn", ROOT / "hw/syn/amd", ROOT / "hw/syn/mutants.sv"
TOP, PART = "pollux_au50", "xcu50-fsvh2104-2-e"
BOARD, BOXES = SYN / "au50", AMD / "blackboxes.sv"
CORE, LIST, CROSSINGS = ROOT / "hw/pollux.core", BOARD / "files.f", BOARD / "crossings.xdc"
LIB = Path(__file__).resolve().parent


def short(file):
    return str(Path(file).relative_to(ROOT))


class Slang:
    """All files through slang, which refuses what the other front ends let pass, such as use before
    declaration."""
    key = "slang"

    def __init__(self, sources):
        self.files = [*sources.packages, *sources.files, BOXES, AMD / "plx_gty_lane.sv", BOARD / f"{TOP}.sv"]

    def rows(self, folder):
        start, log = time.monotonic(), folder / "slang.log"
        python = environment(folder.parent.parent, "slang")
        log.unlink(missing_ok=True)
        try:
            run(log, [python, LIB / "slang/lint.py", *map(short, self.files)])
        except Failure:
            said = [line for line in log.read_text(encoding="utf-8").splitlines()
                    if re.search(r": (error|warning): ", line)]
            raise Failure(f"slang: {'; '.join(said[:6]) or 'see slang.log'}"
                          f"{f'; and {len(said) - 6} more' if len(said) > 6 else ''}") from None
        return [Row("lint", self.key, f"{len(self.files)} files", time.monotonic() - start)]


class FuseSoc:
    """FuseSoC itself reads the core file: it has Verilator accept the board's top, and makes Vivado's project of all
    of its files."""
    key = "fusesoc"

    def rows(self, folder):
        rows, python = [], environment(folder.parent.parent, "fusesoc")
        for target, only in (("lint", []), ("au50", ["--setup"])):
            start, log, work = time.monotonic(), folder / f"fusesoc-{target}.log", folder / f"fusesoc-{target}"
            log.unlink(missing_ok=True)
            shutil.rmtree(work, ignore_errors=True)
            run(log, [python, "-m", "fusesoc.main", "--cores-root", short(CORE.parent), "run", "--target", target, *only,
                      "--work-root", work, CORE.stem])
            read = next(work.glob("*.tcl" if only else "*.vc")).read_text(encoding="utf-8")
            listed = [Path(line).relative_to("hw") for line in LIST.read_text(encoding="utf-8").splitlines()]
            if missing := [str(file) for file in listed if str(file) not in read]:
                raise Failure(f"{short(CORE)}: FuseSoC's target {target} lacks {', '.join(missing)}")
            rows.append(Row("lint", self.key, target, time.monotonic() - start))
        return rows


def netlist_of(sources, files, top, folder):
    """The netlist of a module of some files, and the modules that it is made from."""
    need("yosys")
    folder.mkdir(exist_ok=True)
    log, tree, flat = (folder / f"{top}.{what}" for what in ("log", "tree.json", "flat.json"))
    log.unlink(missing_ok=True)
    # Without `opt`: registers and memories keep their names. `flatten` copies each cell's place in the sources, which
    # takes longer than all else, and is not used.
    run(log, ["yosys", "-q", "-Q", "-T", "-p",
              f"read_verilog -sv {' '.join(map(short, [*sources.packages, *files]))}; hierarchy -check -top {top} "
              f"{' '.join(f'-libdir {short(folder)}' for folder in [*sources.folders, AMD])}; proc; "
              f"setattr -unset src */w:* */c:*; opt_clean; memory_collect; write_json {tree}; flatten; opt_clean; "
              f"write_json {flat}"], patience=LONG)
    modules = json.loads(tree.read_text(encoding="utf-8"))
    return Netlist(json.loads(flat.read_text(encoding="utf-8")), modules, top), modules["modules"]


def elaborate(sources, folder):
    """The netlist of the top, and its files in the order in which they are read."""
    netlist, modules = netlist_of(sources, [BOXES, BOARD / f"{TOP}.sv"], TOP, folder)
    used = {ROOT / found["attributes"]["src"].split(":")[0] for found in modules.values()} - {BOXES}
    words = set(re.findall(r"\b(\w+_pkg)::", "".join(file.read_text(encoding="utf-8") for file in used)))
    packages = [file for file in sources.packages if file.stem in words]
    return netlist, [*packages, *sorted(used)]


def core(files):
    """The core file of FuseSoC."""
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]

    def listed(some):
        return "\n".join(f"      - {file.relative_to(CORE.parent)}" for file in some)

    rtl, board = [file for file in files if SYN not in file.parents], [file for file in files if SYN in file.parents]
    here = BOARD.relative_to(CORE.parent)
    return f"""\
CAPI=2:
# SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
#
# For FuseSoC. Made by `scripts/gateware syn`, and checked by `scripts/gateware lint`.

name: "::pollux:{version}"
description: "Network card of Pollux: UDP streams of four 10 Gb/s ports into buffers in host memory"

filesets:
  rtl:
    files:
{listed(rtl)}
    file_type: systemVerilogSource

  boxes:
    files:
      - {BOXES.relative_to(CORE.parent)}
    file_type: systemVerilogSource

  au50:
    files:
{listed(board)}
    file_type: systemVerilogSource

  au50_vivado:
    files:
      - {here}/ip.tcl: {{file_type: tclSource}}
      - {here}/pins.xdc: {{file_type: xdc}}
      - {here}/crossings.xdc: {{file_type: xdc}}

targets:
  default:
    description: The card, to depend on
    filesets: [rtl]
    toplevel: plx_card

  lint:
    description: The board's top through Verilator, with the vendor's modules as black boxes
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall, -Wno-SYNCASYNCNET]
    filesets: [rtl, boxes, au50]
    toplevel: {TOP}

  au50:
    description: Bitstream for an Alveo U50
    flow: vivado
    flow_options:
      part: {PART}
    filesets: [rtl, au50, au50_vivado]
    toplevel: {TOP}
"""


def made(files, crossings):
    """Files of hw that are made from the others, and their text."""
    return {LIST: "".join(f"{short(file)}\n" for file in files), CORE: core(files),
            CROSSINGS: crossings.constraints()}


def refresh(sources, folder):
    """Writes these files."""
    netlist, files = elaborate(sources, folder)
    crossings = Crossings(netlist)
    for line in crossings.wrong:
        print(line)
    for file, text in made(files, crossings).items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"{short(file)}: written")
    if crossings.wrong:
        raise Failure(f"{len(crossings.wrong)} crossings are not the library's")


class Board:
    """The board's top, and what belongs to it."""
    key = TOP

    def __init__(self, sources):
        self.sources = sources

    def rows(self, folder):
        need("verilator", "yosys", "tclsh")
        start = time.monotonic()
        netlist, files = elaborate(self.sources, folder.parent / "syn")
        crossings = Crossings(netlist)
        log = folder / f"{self.key}.log"
        log.unlink(missing_ok=True)

        def row(name, check):
            nonlocal start
            try:
                name, why = check() or name, ""
            except Failure as wrong:
                why = str(wrong)
            begun, start = start, time.monotonic()
            return Row("lint", self.key, name, start - begun, why)

        return [row("crossings", lambda: self.known(crossings)),
                row("mutants", lambda: self.mutants(folder.parent / "syn")),
                row("files are current", lambda: self.current(made(files, crossings))),
                row("elaborates", lambda: self.whole(log)),
                row("scripts", lambda: self.scripts(log, netlist, files))]

    def known(self, crossings):
        if crossings.wrong:
            raise Failure("; ".join(crossings.wrong[:6]))
        return f"{sum(crossings.counts.values())} crossings"

    def mutants(self, folder):
        """The check of the crossings finds what is wrong in the modules of mutants.sv, and nothing else."""
        wanted = re.findall(r"^// wrong: ?(.*)\nmodule (\w+)", MUTANTS.read_text(encoding="utf-8"), re.MULTILINE)
        for words, top in wanted:
            found = "; ".join(Crossings(netlist_of(self.sources, [MUTANTS], top, folder)[0]).wrong)
            if found != words:
                raise Failure(f"{top}: {found or 'nothing'} is found, and not {words or 'nothing'}")
        return f"{len(wanted)} mutants"

    def current(self, texts):
        if stale := [short(file) for file, text in texts.items()
                     if not file.exists() or file.read_text(encoding="utf-8") != text]:
            raise Failure(f"not what `scripts/gateware syn` makes: {', '.join(stale)}")

    def whole(self, log):
        """Verilator with the files of the list alone. A reset is used in its clock, and by plx_sync_reset in others."""
        run(log, ["verilator", "--lint-only", "-Wall", "-Wno-SYNCASYNCNET", "--top-module", TOP, short(BOXES), "-f",
                  short(LIST)])

    def scripts(self, log, netlist, files):
        """Vivado's scripts, with stand-ins for its commands: all is read, each port of the top has its own
        pin, and no bitstream is written where a path is too slow or a fifo is not in block RAM."""
        def dry(slack, registers):
            return run(log, ["tclsh", LIB / "vivado/dry.tcl", short(BOARD / "build.tcl"), log.with_suffix(".build"),
                             slack, registers]).splitlines()

        calls = dry("0.1", "0")
        if not calls[-1].startswith("write_bitstream "):
            raise Failure(f"the last command is not write_bitstream, but {calls[-1]}")
        reads = [line.split()[-1] for line in calls if line.startswith(("read_verilog", "read_xdc"))]
        wanted = [*map(short, files), short(BOARD / "pins.xdc"), short(CROSSINGS)]
        if reads != wanted:
            raise Failure(f"read are not the files of {short(LIST)} and the constraints: "
                          f"{', '.join(sorted(set(reads) ^ set(wanted))) or 'another order'}")
        places = [re.fullmatch(r"set_property -dict \{PACKAGE_PIN (\w+)[^}]*\} \{*([^{}]+)\}*", line) for line in calls]
        pins = [found.groups() for found in places if found]
        ports = sorted(netlist.ports)
        if sorted(port for _, port in pins) != ports:
            raise Failure(f"ports of the top, and those with a pin, differ: "
                          f"{', '.join(sorted(set(ports) ^ {port for _, port in pins})) or 'one has several'}")
        if len({pin for pin, _ in pins}) != len(pins):
            raise Failure("two ports have the same pin")
        cores = set(re.findall(r"^create_ip .*-module_name (\w+)", "\n".join(calls), re.MULTILINE))
        if cores != (boxes := {name for name in netlist.boxes if name.startswith("plx_")}):
            raise Failure(f"cores that are made and those of {short(BOXES)} differ: {', '.join(sorted(cores ^ boxes))}")
        for slack, registers, words in (("-0.1", "0", "timing is not met"), ("0.1", "3", "became registers")):
            try:
                dry(slack, registers)
            except Failure as why:
                if words in str(why):
                    continue
                raise
            raise Failure(f"build.tcl writes a bitstream with a slack of {slack} ns and {registers} registers of fifos")
        return f"scripts: {len(calls)} commands, {len(ports)} pins"
