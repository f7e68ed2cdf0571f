"""Logic levels of mapped netlists (`write_json` of Yosys): hw/docs/depth.md has the definition."""

import re

from lib.needs import Failure

# Units of a level.
LEVEL = 32
# Cells whose outputs follow all of their inputs, and what they add.
PLAIN = {r"LUT[1-6]|MISTRAL_ALUT[2-6]": LEVEL, r"MUXF[789]": LEVEL // 4, r"INV|MISTRAL_NOT|BUFG": 0,
         r"MISTRAL_MUL\w+": 4 * LEVEL}
# Registers and memories: their clock inputs; address inputs that an output follows at once, as
# {output: inputs}; what an output adds behind the clock edge.
CLOCKED = {
    r"FD[RSCP]E(_1)?": (("C",), {}, 0),
    r"MISTRAL_FF": (("CLK",), {}, 0),
    r"RAMB\d+E2": (("CLKARDCLK", "CLKBWRCLK"), {}, 2 * LEVEL),
    r"MISTRAL_M[12]0K": (("CLK1",), {}, LEVEL),
    r"RAM(32M16|64M8|32M|64M)": (("WCLK",), {r"DO(\w)": r"ADDR\1"}, LEVEL),
    r"RAM\d+X1D": (("WCLK",), {"DPO": "DPRA[0-9]?", "SPO": "A[0-9]?"}, LEVEL),
    r"RAM\d+X1S": (("WCLK",), {"O": "A[0-9]?"}, LEVEL),
    r"SRL\w+": (("CLK",), {"Q": "A[0-9]?"}, LEVEL),
    r"MISTRAL_MLAB": (("CLK1",), {"B1DATA": "B1ADDR"}, LEVEL),
}
# What is counted.
COUNTED = {"luts": {r"LUT[1-6]|MISTRAL_ALUT\w+": 1}, "ffs": {r"FD[RSCP]E(_1)?|MISTRAL_FF": 1},
           "bram": {r"RAMB36E2|MISTRAL_M[12]0K": 1, r"RAMB18E2": 0.5}, "dsp": {r"DSP48E2|MISTRAL_MUL\w+": 1}}
KBIT = {"RAMB36E2": 36, "RAMB18E2": 18, "MISTRAL_M10K": 10, "MISTRAL_M20K": 20, "MISTRAL_MLAB": 1 / 32,
        "RAM32M16": 0.5, "RAM64M8": 0.5, "RAM32X1D": 1 / 32, "RAM64X1D": 1 / 16, "RAM128X1S": 1 / 8}


def of_kind(table, cell):
    """The entry of a table by patterns of cell names."""
    return next((value for pattern, value in table.items() if re.fullmatch(pattern, cell)), None)


class Graph:
    """Nets, by number: which others each follows and by how many units; where paths start (net:
    clock net, units) and end (net, clock net, pin); names of nets."""

    def __init__(self):
        self.follows, self.starts, self.ends, self.names, self.counts = {}, {}, [], {}, {}
        self.inputs, self.outputs, self.blocks = {}, {}, []

    def arc(self, to, source, units):
        if isinstance(source, int) and isinstance(to, int):
            self.follows.setdefault(to, []).append((source, units))

    def count(self, key, amount):
        self.counts[key] = self.counts.get(key, 0) + amount


def read(netlist, top):
    """The graph of a module as mapped. Modules inside that are not mapped with it are its `blocks`."""
    module, graph = netlist["modules"][top], Graph()
    for key in (*COUNTED, "kbit"):
        graph.counts[key] = 0
    for name, net in sorted(module["netnames"].items(), key=lambda item: (item[1]["hide_name"], len(item[0]))):
        for at, bit in enumerate(net["bits"]):
            graph.names.setdefault(bit, name if len(net["bits"]) == 1 else f"{name}[{at}]")
    for name, port in module["ports"].items():
        (graph.inputs if port["direction"] == "input" else graph.outputs)[name] = port["bits"]
    for name, cell in module["cells"].items():
        add(graph, name, cell, netlist["modules"])
    return graph


def add(graph, name, cell, modules):
    """One cell."""
    kind, pins = cell["type"], cell["connections"]
    sides = cell.get("port_directions", {})
    ins = {pin: bits for pin, bits in pins.items() if sides.get(pin) == "input"}
    outs = {pin: bits for pin, bits in pins.items() if sides.get(pin) == "output"}
    for key, table in COUNTED.items():
        graph.count(key, of_kind(table, kind) or 0)
    graph.count("kbit", KBIT.get(kind, 0))
    if (units := of_kind(PLAIN, kind)) is not None:
        for out in outs.values():
            for to in out:
                for bits in ins.values():
                    for bit in bits:
                        graph.arc(to, bit, units)
    elif kind == "CARRY4":
        for at in range(4):
            for pin in ("O", "CO"):
                to = outs[pin][at] if at < len(outs.get(pin, ())) else None
                own = [(bit, LEVEL) for other in ("S", "DI") for bit in pins[other][:at + 1]]
                for bit, units in [*own, (pins["CYINIT"][0], LEVEL), (pins["CI"][0], LEVEL // 8)]:
                    graph.arc(to, bit, units)
    elif kind == "MISTRAL_ALUT_ARITH":
        for pin in ("SO", "CO"):
            for other, bits in ins.items():
                graph.arc(outs.get(pin, [None])[0], bits[0], 1 if other == "CI" else LEVEL)
    elif kind == "DSP48E2":
        multiplier(graph, name, cell["parameters"], pins, ins, outs)
    elif (clocked := of_kind(CLOCKED, kind)) is not None:
        memory(graph, name, clocked, ins, outs)
    elif kind in modules and not kind.startswith("$"):
        graph.blocks.append((name, kind, pins))
    elif kind not in ("VCC", "GND"):
        raise Failure(f"cell {name} is a {kind}, for which there are no levels: scripts/lib/netlist.py")


def memory(graph, name, clocked, ins, outs):
    """A register or memory. Of two clocks the first reads and the second writes, but one may be unused."""
    clocks, at_once, late = clocked
    ports = {bit for bits in graph.inputs.values() for bit in bits}
    used = [ins[pin][0] for pin in clocks if ins[pin][0] in ports] or [ins[clocks[0]][0]]
    reads, writes = used[0], used[-1]
    passing = set()
    for pin, bits in outs.items():
        followed = next((re.sub(old, new, pin) for old, new in at_once.items() if re.fullmatch(old, pin)), None)
        for to in bits:
            if isinstance(to, int):
                graph.starts[to] = (reads, late)
            for other, more in ins.items():
                if followed and re.fullmatch(followed, other):
                    passing.add(other)
                    for bit in more:
                        graph.arc(to, bit, LEVEL)
    shown = next((graph.names[bit] for bits in outs.values() for bit in bits if bit in graph.names), name)
    whose = shown if len(outs) == 1 and len(next(iter(outs.values()))) == 1 else re.sub(r"\[\d+\]$", "", shown)
    for pin, bits in ins.items():
        if pin in clocks or pin in passing and pin != "ADDRH":
            continue
        clock = writes if re.search(r"^DI|WE|ADDRB|ENB", pin) else reads
        end = whose if pin in ("D", "DATAIN") else f"{whose} ({pin})"
        graph.ends += [(bit, clock, end) for bit in bits if isinstance(bit, int)]


def multiplier(graph, name, parameters, pins, ins, outs):
    """A DSP48E2: four levels, or those before and behind its registers."""
    has = {key: int(str(parameters.get(key, "0")), 2) > 0 for key in ("AREG", "MREG", "PREG")}
    for bits in outs.values():
        for to in bits:
            if any(has.values()):
                if isinstance(to, int):
                    graph.starts[to] = (pins["CLK"][0], 0 if has["PREG"] else 2 * LEVEL if has["MREG"] else 4 * LEVEL)
                continue
            for source in (bit for more in ins.values() for bit in more):
                graph.arc(to, source, 4 * LEVEL)
    if any(has.values()):
        for pin, bits in ins.items():
            for bit in bits:
                if pin == "CLK" or not isinstance(bit, int):
                    continue
                inside, before = -1 - len(graph.follows), 0 if has["AREG"] else 2 * LEVEL if has["MREG"] else 4 * LEVEL
                graph.arc(inside, bit, before)
                graph.ends.append((inside, pins["CLK"][0], f"{name} ({pin})"))


def join(top, graphs, ports=True):
    """The graph of a module with all that is in it, from graphs of modules as mapped."""
    whole, fresh = Graph(), [0]

    def place(kind, path, outside):
        """Adds one; `outside` has numbers for its port's nets."""
        part, numbers = graphs[kind], dict(outside)

        def number(bit):
            if not isinstance(bit, int):
                return None
            if bit not in numbers:
                fresh[0] += 1
                numbers[bit] = fresh[0]
                if bit in part.names:
                    whole.names[fresh[0]] = path + part.names[bit]
            return numbers[bit]

        for to, sources in part.follows.items():
            whole.follows.setdefault(number(to), []).extend((number(bit), units) for bit, units in sources)
        for bit, (clock, units) in part.starts.items():
            whole.starts[number(bit)] = (number(clock), units)
        whole.ends += [(number(bit), number(clock), path + pin) for bit, clock, pin in part.ends]
        for key, amount in part.counts.items():
            whole.count(key, amount)
        for name, inner, pins in part.blocks:
            child, given = graphs[inner], {}
            for port, bits in child.inputs.items():
                for bit, ours in zip(bits, pins.get(port, ())):
                    if isinstance(bit, int) and isinstance(ours, int):
                        given[bit] = number(ours)
            its = place(inner, f"{path}{name}.", given)
            for port, bits in child.outputs.items():
                for bit, ours in zip(bits, pins.get(port, ())):
                    whole.arc(number(ours), its(bit), 0)
        return number

    number = place(top, "", {})
    if ports:
        for mine, own in ((whole.inputs, graphs[top].inputs), (whole.outputs, graphs[top].outputs)):
            for name, bits in own.items():
                mine[name] = [number(bit) for bit in bits]
    return whole


def arrivals(graph):
    """Of each net that a path reaches: units of the longest one, and the net before."""
    found = {bit: (0, None) for bits in graph.inputs.values() for bit in bits if isinstance(bit, int)}
    found.update({bit: (units, None) for bit, (_, units) in graph.starts.items()})
    first, done, doing = dict(found), set(), set()
    for root in list(graph.follows):
        todo = [root]
        while todo:
            bit = todo[-1]
            if bit in done:
                todo.pop()
                continue
            sources = graph.follows.get(bit, ())
            if bit not in doing:
                doing.add(bit)
                waits = [source for source, _ in sources if source not in done and source in graph.follows]
                if any(source in doing for source in waits):
                    loop = next(source for source in waits if source in doing)
                    raise Failure(f"a loop without a register through {graph.names.get(loop, loop)}")
                todo += waits
                if waits:
                    continue
            best = first.get(bit)
            for source, units in sources:
                at = found.get(source)
                if at and (best is None or at[0] + units > best[0]):
                    best = (at[0] + units, source)
            if best:
                found[bit] = best
            doing.discard(bit)
            done.add(bit)
            todo.pop()
    return found


def longest(graph, clocks, main):
    """{clock: (levels, start, end)} of a graph; `clocks` has the clock of each of its ports that are
    clocks. Paths between ports count for the `main` one."""
    reached, paths = arrivals(graph), {}
    inside = {bit: clock for port, clock in clocks.items() for bit in graph.inputs.get(port, ())}

    def clock_of(net, what):
        if net not in inside:
            raise Failure(f"{what} has a clock that is no port, or not known: {graph.names.get(net, net)}")
        return inside[net]

    def consider(bit, clock, end):
        if bit not in reached:
            return
        units, before = reached[bit][0], bit
        while reached[before][1] is not None:
            before = reached[before][1]
        start = graph.starts.get(before)
        clock = clock or (clock_of(start[0], graph.names.get(before)) if start else main)
        if units > paths.get(clock, (-1,))[0]:
            paths[clock] = (units, graph.names.get(before, "?"), end)

    for bit, clock, end in graph.ends:
        consider(bit, clock_of(clock, end), end)
    for name, bits in graph.outputs.items():
        for bit in bits:
            if isinstance(bit, int):
                consider(bit, None, name)
    return {clock: (-(-units // LEVEL), start, end) for clock, (units, start, end) in paths.items()}
