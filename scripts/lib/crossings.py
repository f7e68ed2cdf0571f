"""Clock domain crossings of a netlist: every path between two clocks is found, and has to be in one of the
library's crossings, for which Vivado's constraints are made. No logic stands before a synchroniser."""

import re

# Periods in ns of a board's clocks, by the end of the net's name.
PERIODS = {"clk_core": 4.0, "clk_net": 6.4, "clk_rx_net": 6.4, "clk_free": 10.0}
# Modules that hand a Gray-coded number to their plx_sync_bit; queues with a memory between two clocks: in look-up
# tables, or in block RAM, which has an output register in the module, so that no path leads through it.
GRAY = {"plx_fifo_async", "plx_fifo_async_deep", "plx_fifo_level", "plx_timestamp_cdc", "plx_tx_fifo"}
LUT_QUEUES, BLOCK_QUEUES = {"plx_fifo_async", "plx_fifo_level"}, {"plx_fifo_async_deep", "plx_tx_fifo"}
REGISTER = re.compile(r"\$(a|al|s)?dff(c?e)?")
ASYNC = 1
HEAD = """\
# SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
#
# Paths between clocks, each of them bounded. Made by `scripts/gateware syn` from the netlist, and checked
# by `scripts/gateware lint`. A delay of data alone (-datapath_only) is limited to the period of the sender,
# for Gray code, or of the receiver; so is the skew between the bits of Gray code.
"""


class Netlist:
    """A flattened module, and the modules that it was made from, as Yosys writes them (`write_json`)."""

    def __init__(self, flat, tree, top):
        self.top, module = top, flat["modules"][top]
        self.kinds = {name: kind(found, name) for name, found in tree["modules"].items()}
        self.paths = dict(instances(tree["modules"], top, self.kinds))
        self.boxes = {name: {port: net["attributes"].get("clocked_by") for port, net in found["netnames"].items()}
                      for name, found in flat["modules"].items() if name != top}
        self.cells, self.drivers, self.names, self.nets = module["cells"], {}, {}, {}
        self.clocks, self.seen = {}, {}
        self.inputs = {bit for port in module["ports"].values() if port["direction"] == "input"
                       for bit in port["bits"]}
        self.ports = [f"{name}[{bit}]" if len(port["bits"]) > 1 else name for name, port in module["ports"].items()
                      for bit in range(len(port["bits"]))]
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output":
                    self.drivers.update((bit, (name, port)) for bit in bits)
        # Names of registers' outputs, and of clocks.
        named = {bit for cell in self.cells.values() for port, bits in cell["connections"].items()
                 if port in ("Q", "CLK", "WR_CLK") or cell["type"] in self.boxes for bit in bits}
        for name, net in module["netnames"].items():
            if not net["hide_name"]:
                path = tuple(net["attributes"].get("hdlname", name).split(" "))
                self.nets[path] = net["bits"]
                for bit in named.intersection(net["bits"]):
                    self.names.setdefault(bit, []).append(path)

    def owner(self, name):
        """The path of the instance that a cell is in."""
        if words := self.cells[name]["attributes"].get("hdlname"):
            return tuple(words.split(" ")[:-1])
        if name.startswith("$flatten"):
            return tuple(word.lstrip("\\") for word in name.removeprefix("$flatten").split(".$")[0].split(".\\"))
        return self.nested(name)

    def nested(self, name):
        """The same of a cell whose name is not Yosys' own."""
        return next((path for path in self.paths if name.startswith(".".join(path) + ".") and path), ())

    def named(self, name):
        """The names of a cell's registers, without the bits."""
        owner = self.owner(name)
        found = {net[-1] for bit in self.cells[name]["connections"]["Q"] for net in self.names.get(bit, [])
                 if net[:-1] == owner}
        return "/".join([*owner, min(found, key=lambda net: (len(net), net))]) if found else ""

    def clock(self, bit):
        """The name of a clock: the shortest one of its net, with its place in a vector."""
        if bit not in self.clocks:
            *path, name = net = min(self.names[bit], key=lambda net: (len(net), net))
            bits = self.nets[net]
            self.clocks[bit] = (*path, f"{name}[{bits.index(bit)}]" if len(bits) > 1 else name)
        return self.clocks[bit]

    def starts(self, name, port):
        """Where a path through an output begins: the clock's bit; "" if there is no clock, None inside logic."""
        cell = self.cells[name]
        pins = cell["connections"]
        if REGISTER.fullmatch(cell["type"]):
            return pins["CLK"][0]
        if cell["type"] == "$mem_v2":
            return pins["WR_CLK"][0] if pins["WR_CLK"] else ""
        if cell["type"] in self.boxes:
            clocked = self.boxes[cell["type"]].get(port)
            return pins[clocked][0] if clocked else ""
        return None

    def follows(self, name, port):
        """The bits that an output follows at once."""
        cell, begin = self.cells[name], self.starts(name, port)
        if cell["type"] == "$mem_v2":
            return cell["connections"]["RD_ADDR"]
        if begin is not None:
            return []
        return [bit for port, bits in cell["connections"].items() if cell["port_directions"][port] == "input"
                for bit in bits]

    def domains(self, bits):
        """The clocks of what bits follow."""
        todo, found = [self.drivers[bit] for bit in bits if bit in self.drivers], set()
        if self.inputs.intersection(bits):
            found.add("")
        open_now = set()
        while todo:
            key = todo[-1]
            if key in self.seen:
                todo.pop()
                continue
            needed = [self.drivers[bit] for bit in set(self.follows(*key)) if bit in self.drivers]
            missing = [one for one in needed if one not in self.seen and one not in open_now]
            if missing and key not in open_now:
                open_now.add(key)
                todo += missing
                continue
            clocks = set().union(*(self.seen.get(one, ()) for one in needed))
            if (begin := self.starts(*key)) is not None:
                clocks.add(begin)
            if self.inputs.intersection(self.follows(*key)):
                clocks.add("")
            self.seen[key] = frozenset(clocks)
            todo.pop()
        for bit in bits:
            if bit in self.drivers:
                found |= self.seen[self.drivers[bit]]
        return found

    def sources(self, bits):
        """Where the paths to bits begin: {(cell, output): clock}; ("", "") is an input of the top."""
        found, met, todo = {}, set(), list(bits)
        while todo:
            bit = todo.pop()
            if bit in met:
                continue
            met.add(bit)
            if bit in self.inputs:
                found["", ""] = ""
            elif bit in self.drivers:
                key = self.drivers[bit]
                if (begin := self.starts(*key)) is not None:
                    found[key] = begin
                todo += self.follows(*key)
        return found

    def ends(self):
        """(cell, clock, bits) of what takes a value at an edge."""
        for name, cell in self.cells.items():
            pins = cell["connections"]
            if REGISTER.fullmatch(cell["type"]):
                yield name, pins["CLK"][0], pins["D"]
            elif cell["type"] == "$mem_v2" and pins["WR_CLK"]:
                yield name, pins["WR_CLK"][0], [*pins["WR_ADDR"], *pins["WR_DATA"], *pins["WR_EN"]]
            elif cell["type"] in self.boxes:
                for port, clocked in self.boxes[cell["type"]].items():
                    if clocked and cell["port_directions"][port] == "input":
                        yield name, pins[clocked][0], pins[port]


def kind(module, name):
    return module["attributes"].get("hdlname", name).lstrip("\\")


def instances(modules, top, kinds, path=()):
    """(path, name of its module) of the top and all inside."""
    yield path, kinds[top]
    for name, cell in modules[top]["cells"].items():
        if cell["type"] in modules:
            yield from instances(modules, cell["type"], kinds, (*path, name))


class Crossings:
    """The crossings of a netlist. `wrong` are those that are not in one of the library's modules."""

    def __init__(self, netlist):
        self.netlist, self.wrong, self.lines, self.counts = netlist, [], {}, {}
        self.clocks = set()
        for name, clock, bits in netlist.ends():
            if foreign := netlist.domains(bits) - {clock}:
                self.add(name, clock, {key: begin for key, begin in netlist.sources(bits).items() if begin in foreign})
        for name, cell in netlist.cells.items():
            if "ARST" in cell["connections"]:
                self.reset(name, cell["connections"]["ARST"][0])

    def module(self, path):
        return self.netlist.paths.get(path, "")

    def describe(self, key):
        name, port = key
        if not name:
            return "an input of the top"
        return self.netlist.named(name) if "Q" in self.netlist.cells[name]["connections"] else f"{name}.{port}"

    def period(self, clock):
        return PERIODS[re.search(r"\w+(?=(\[\d+\])?$)", self.netlist.clock(clock)[-1])[0]]

    def variable(self, clock):
        """A clock of a constraint."""
        net = self.netlist.clock(clock)
        self.clocks.add("/".join(net))
        return "$" + re.sub(r"\W+", "_", "_".join(net)).strip("_")

    def note(self, sort, key, *lines):
        if key not in self.lines:
            self.counts[sort] = self.counts.get(sort, 0) + 1
        self.lines[key] = lines

    def add(self, name, clock, sources):
        """An end with sources of other clocks."""
        netlist, owner = self.netlist, self.netlist.owner(name)
        here, around = self.module(owner), self.module(owner[:-1])
        for key, begin in list(sources.items()):
            of, memory = (netlist.owner(key[0]), netlist.cells[key[0]]["type"]) if key[0] else ((), "")
            if memory == "$mem_v2" and ((queue := self.module(of)) in LUT_QUEUES
                                        or queue in BLOCK_QUEUES and owner == of):
                del sources[key]
                if queue in LUT_QUEUES:
                    cells = "/".join([*of, "memory"])
                    self.note("memory", cells, f"set_max_delay -datapath_only -from [get_cells {{{cells}_reg*}}] "
                                               f"{self.period(clock)}")
        if not sources:
            return
        to = f"{'/'.join(owner)}/stages"
        if here == "plx_sync_bit" and (found := {self.logic(bit) for bit in netlist.nets[(*owner, "d")]} - {""}):
            self.wrong.append(f"logic ({', '.join(sorted(found))}) before {'/'.join(owner)}")
        if here == "plx_sync_bit" and around in GRAY:
            registers = sorted({self.describe(key) for key in sources})
            given, least = set(map(self.period, sources.values())).pop(), self.period(clock)
            where = f"-from [get_cells {{{' '.join(f'{one}_reg*' for one in registers)}}}] -to [get_cells {{{to}_reg*}}]"
            self.note("Gray code", to, f"set_max_delay -datapath_only {where} {given}",
                      f"set_bus_skew {where} {min(given, least)}")
        elif here == "plx_sync_bit":
            lines = [f"set_max_delay -datapath_only -from {self.variable(begin)} -to [get_cells {{{to}_reg*}}] "
                     f"{self.period(clock)}" for begin in sorted(set(sources.values()) - {""}, key=str)]
            if "" in sources.values():
                lines.append(f"set_false_path -to [get_pins {{{to}_reg[*]/D}}]")
            self.note("levels", to, *lines)
        elif "plx_axil_cdc" in (here, around) and "" not in sources.values():
            # Held while they are read: a handshake by two plx_sync_bit.
            to = netlist.named(name)
            self.note("held", to, *(f"set_max_delay -datapath_only -from {self.variable(begin)} -to "
                                    f"[get_cells {{{to}_reg*}}] {self.period(clock)}"
                                    for begin in sorted(set(sources.values()), key=str)))
        else:
            end = netlist.named(name) if "Q" in netlist.cells[name]["connections"] else name
            self.wrong.append(f"{end or name} ({here}, {self.netlist.clock(clock)[-1]}) follows "
                              f"{', '.join(sorted(map(self.describe, sources))[:3])}")

    def logic(self, bit):
        """The kind of the cell if a bit is no register, pin or core's output, and no inverted one: it may glitch."""
        drivers = self.netlist.drivers
        while bit in drivers and self.netlist.starts(*drivers[bit]) is None:
            cell = self.netlist.cells[drivers[bit][0]]
            if cell["type"] not in ("$not", "$logic_not") or len(cell["connections"]["A"]) != 1:
                return cell["type"]
            bit = cell["connections"]["A"][0]
        return ""

    def reset(self, name, bit):
        """An asynchronous reset is one of plx_sync_reset, without logic before it."""
        owner = self.netlist.owner(name)
        to = "/".join([*owner, "stages"])
        if self.module(owner) != "plx_sync_reset":
            self.wrong.append(f"{self.netlist.named(name)} has an asynchronous reset, and is not in plx_sync_reset")
        if found := self.logic(bit):
            self.wrong.append(f"logic ({found}) before the asynchronous reset of {'/'.join(owner)}")
        self.note("resets", to, f"set_false_path -to [get_pins {{{to}_reg[*]/PRE}}]")

    def constraints(self):
        """The text of the file."""
        words = ", ".join(f"{count} of {sort}" for sort, count in sorted(self.counts.items()))
        heads = [f"set {re.sub(r'[^A-Za-z0-9]+', '_', net).strip('_')} [get_clocks -of_objects [get_nets {{{net}}}]]"
                 for net in sorted(self.clocks)]
        lines = [line for _, some in sorted(self.lines.items()) for line in some]
        return "\n".join([HEAD + f"# {words}.", "", *heads, "", *lines, ""])
