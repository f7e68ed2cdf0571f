"""The register map as plain objects, from SystemRDL."""

import dataclasses
import pathlib

from systemrdl import RDLCompiler
from systemrdl.node import FieldNode, RegNode
from systemrdl.rdltypes import AccessType, OnWriteType

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass
class Field:
    """Bits of a register. `kind` is its access:

    const   constant
    config  the host writes it, the card reads it
    store   the host writes and reads it
    pulse   the host writes it; one cycle to the card
    status  the card writes it
    flag    the card sets it, the host clears it
    row     in a table, which a module of the card holds
    """

    name: str
    low: int
    width: int
    kind: str
    reset: int
    writable: bool
    text: str

    @property
    def high(self):
        return self.low + self.width - 1


@dataclasses.dataclass
class Reg:
    """A register, or an array of them; `at` and `step` are in bytes, from the start of its block."""

    name: str
    at: int
    count: int
    step: int
    width: int
    title: str
    text: str
    notify: bool
    fields: list

    def places(self):
        return [self.at + n * self.step for n in range(self.count)]


@dataclasses.dataclass
class Window:
    """A table that a module of the card holds."""

    name: str
    at: int
    size: int
    regs: list


@dataclasses.dataclass
class Block:
    """A block of registers."""

    name: str
    title: str
    text: str
    at: int
    count: int
    step: int
    size: int
    regs: list
    windows: list

    @property
    def address_bits(self):
        return (self.size - 1).bit_length()

    @property
    def kind(self):
        return self.regs[0].fields[0].reset

    def all_regs(self):
        return self.regs + [reg for window in self.windows for reg in window.regs]


def load(name):
    """Reads a map. Ends the program with a message if it is invalid."""
    compiler = RDLCompiler()
    compiler.compile_file(str(HERE / f"{name}.rdl"))
    top = compiler.elaborate().top
    children = list(top.children())
    blocks = [block(node) for node in children]
    if not is_chain(blocks):
        raise SystemExit("the blocks do not name each other in order (NEXT)")
    return top.get_property("name"), top.get_property("desc"), blocks


def is_chain(blocks):
    """Whether each block names its successor. The card reports the last kind, of which there are
    several."""
    firsts = [block.regs[1].fields[0].reset for block in blocks[:-1]]
    return firsts == [block.at for block in blocks[1:]]


def block(node):
    at, count, step = placement(node)
    found = Block(
        name=node.inst_name,
        title=node.get_property("name"),
        text=node.get_property("desc") or "",
        at=at,
        count=count,
        step=step,
        size=0,
        regs=[],
        windows=[],
    )
    for child in node.children():
        at, count, step = placement(child)
        if isinstance(child, RegNode):
            found.regs.append(reg(child, child.inst_name, at, count, step))
            end = at + count * step
        else:
            prefix = "" if child.inst_name == "COUNTERS" else f"{child.inst_name}_"
            inner = [
                reg(r, prefix + r.inst_name, at + r.raw_address_offset, count, step)
                for r in child.children()
            ]
            if child.external:
                for field in (field for r in inner for field in r.fields):
                    field.kind = "row"
                size = 1 << (count * step - 1).bit_length()
                if at % size:
                    raise SystemExit(f"{child.get_path()}: a table must begin at a multiple of its size")
                found.windows.append(Window(child.inst_name.lower(), at, size, inner))
                end = at + size
            else:
                found.regs.extend(inner)
                end = at + count * step
        found.size = max(found.size, 1 << (end - 1).bit_length())
    names = [r.name for r in found.all_regs()]
    if len(set(names)) != len(names):
        raise SystemExit(f"{node.get_path()}: two registers of one name")
    return found


def placement(node):
    """Offset, number, and distance of a node's instances."""
    if not node.is_array:
        return node.raw_address_offset, 1, node.size
    (count,) = node.array_dimensions
    return node.raw_address_offset, count, node.array_stride


def reg(node, name, at, count, step):
    fields = [field(f) for f in node.children() if isinstance(f, FieldNode)]
    if node.get_property("accesswidth") != 32:
        raise SystemExit(f"{node.get_path()}: accesswidth must be 32")
    return Reg(
        name=name,
        at=at,
        count=count,
        step=step if count > 1 else node.get_property("regwidth") // 8,
        width=node.get_property("regwidth"),
        title=node.get_property("name"),
        text=node.get_property("desc") or "",
        notify=any(f.get_property("swmod") for f in node.fields()),
        fields=fields,
    )


def field(node):
    sw, hw = node.get_property("sw"), node.get_property("hw")
    if node.get_property("singlepulse"):
        kind = "pulse"
    elif node.get_property("onwrite") == OnWriteType.woclr:
        kind = "flag"
    elif sw == AccessType.r and hw == AccessType.w:
        kind = "status"
    elif sw == AccessType.r:
        kind = "const"
    else:
        kind = "store" if hw == AccessType.na else "config"
    return Field(
        name=node.inst_name,
        low=node.low,
        width=node.width,
        kind=kind,
        reset=node.get_property("reset") or 0,
        writable=sw != AccessType.r,
        text=node.get_property("desc") or "",
    )
