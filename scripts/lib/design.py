"""The hierarchy of the gateware, from RTLIL: which module has which others inside, with which
parameters and clocks."""

import re

# Clocks of the card, with their frequency and the levels that fit.
CLOCKS = {"clk_core": (250.0, 8), "clk_net": (156.25, 12)}


class Module:
    """One module with one set of parameters: `name` is that of its file, `key` that in the text."""

    def __init__(self, key, name):
        self.key, self.name, self.lines = key, name, []
        self.parameters, self.inputs, self.cells = {}, set(), []

    def settings(self):
        return " ".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))


def modules(text):
    """Those of an RTLIL file, by key. A key is a plain name, followed by a number for another set
    of parameters."""
    names, count = {}, {}
    for found in re.findall(r"^module (\S+)$", text, re.MULTILINE):
        name = re.match(r"(?:\$paramod(?:\$\w+)?)?\\(\w+)", found)[1]
        count[name] = count.get(name, 0) + 1
        names[found] = name if count[name] == 1 else f"{name}__{count[name]}"
    every, module, cell = {}, None, None
    for line in text.splitlines(keepends=True):
        words = line.split()
        if words[:1] == ["module"]:
            key = names[words[1]]
            module, line = Module(key, key.split("__")[0]), f"module \\{key}\n"
            every[key] = module
        if module is None:
            continue
        if words[:1] == ["parameter"] and len(words) == 3 and cell is None:
            module.parameters[words[1].lstrip("\\")] = words[2]
        elif words[:1] == ["wire"] and "input" in words:
            module.inputs.add(words[-1].lstrip("\\"))
        elif words[:1] == ["cell"]:
            cell = None
            if words[1] in names:
                cell = (names[words[1]], words[2].lstrip("\\"), {})
                module.cells.append(cell)
                line = f"  cell \\{cell[0]} {words[2]}\n"
        elif words[:1] == ["connect"] and cell and (len(words) == 3 or ":" not in words[-1] and len(words) == 4):
            # Of one bit, the name of all: the clocks of a vector are of one kind.
            cell[2][words[1].lstrip("\\")] = words[2].lstrip("\\")
        elif words == ["end"]:
            if line[0] == "e":
                module.lines.append(line)
                module = None
                continue
            cell = None
        module.lines.append(line)
    return every


def below(every, key):
    """The module and all inside of it, each once."""
    found, todo = [], [key]
    while todo:
        if (at := todo.pop()) not in found:
            found.append(at)
            todo += [inner for inner, _, _ in every[at].cells]
    return found


def clocks(every, top):
    """{key: {port: clock}} of the modules under a top. A top's own clocks are known by their names. A
    port with several clocks has the fastest."""
    def named(port):
        return "clk_net" if "net" in port else "clk_core"

    found = {key: {} for key in below(every, top)}
    found[top] = {port: named(port) for port in every[top].inputs if re.search(r"(^|_)clk(_|$)", port)}
    changed = True
    while changed:
        changed = False
        for at, ports in found.items():
            for inner, _, pins in every[at].cells:
                for port, clock in ((port, ports[net]) for port, net in pins.items() if net in ports):
                    if found[inner].get(port) not in (clock, "clk_core"):
                        found[inner][port], changed = clock, True
    return found
