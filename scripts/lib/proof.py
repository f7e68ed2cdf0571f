"""Proofs of hw/formal: their translation by Yosys, and the queries to z3 and ABC."""

import re

from lib.needs import Failure


class Refuted(Failure):
    """The proof does not hold."""


def translation(settings, mode, folder, model):
    """The Yosys script for a design that has been read."""
    # With several clocks, each as a signal of its edges.
    edges = f"dffunmap; techmap -map {folder / 'edges.v'}; " if "edges" in settings else ""
    if "aiger" in settings:
        # A cover becomes an assertion of its negation.
        kind = f"chformal -assert -remove; techmap -map {folder / 'covers.v'}; " if mode == "cover" else \
            "chformal -cover -remove; "
        return (f"prep -flatten; {kind}memory_map; {edges}async2sync; opt -full; dffunmap; setundef -undriven -anyseq; "
                f"techmap; setundef -anyseq; aigmap; opt_clean; "
                f"tee -q -o {model.with_suffix('.list')} select -list t:$assert; write_aiger -zinit {model}")
    # Words are heavy going for z3, and gates, made few by abc, are not; but for long sums.
    gates = "" if "words" in settings else "techmap; abc -g AND,XOR,MUX; "
    return (f"prep -flatten; memory_map; {edges}async2sync; opt -full; dffunmap; {gates}opt_clean; "
            f"write_smt2 -wires {model}")


def ask_z3(run, mode, depth, model):
    """Lets yosys-smtbmc look."""
    solver = ["yosys-smtbmc", "-s", "z3", "-t", depth, "--dump-vcd", model.with_suffix(".vcd")]
    try:
        run([*solver, "-c", model] if mode == "cover" else [*solver, model])
        if mode == "induction":
            run([*solver, "-i", model])
    except Failure as wrong:
        raise (Refuted if "Status: FAILED" in str(wrong) else Failure)(str(wrong)) from None


def ask_abc(run, mode, depth, model):
    """Lets ABC look: at gates, which it makes fewer first."""
    ways = {
        "bounded": f"scorr; dc2; bmc3 -F {depth}",
        "cover": f"scorr; dc2; bmc3 -a -F {depth}",
        "induction": f"orpos; bmc3 -F {depth}; ind -C 0 -F {depth}",
        "always": f"scorr; dc2; bmc3 -F {depth}; orpos; pdr",
    }
    said = run(["yosys-abc", "-c", f"read_aiger {model}; fold; {ways[mode]}"])
    names = [line.rpartition("/")[2] for line in model.with_suffix(".list").read_text(encoding="utf-8").splitlines()]
    found = {int(number) for number in re.findall(r"Output +(\d+) .*was asserted in frame", said)}
    if mode == "cover":
        if missed := [name for number, name in enumerate(names) if number not in found]:
            raise Refuted(f"not reached: {' '.join(missed)}")
    elif found:
        raise Refuted("does not hold: " + " ".join(names[number] if mode != "induction" else "" for number in found))
    elif mode == "induction" and "Networks are equivalent" not in said:
        raise Refuted("the step of the induction does not hold")
    elif f"No output asserted in {depth} frames" not in said or mode == "always" and "Property proved" not in said:
        raise Failure(" | ".join(said.strip().splitlines()[-4:]))
