"""Writes the register map as the tables that drivers use (pmd/src/bus/registers.rs)."""

HEADER = """\
// Made by scripts/regen from hw/rdl: do not edit.

//! The card's registers. Offsets are from the start of a block; where blocks are, the card says.
//! `hw/docs/registers.md` has them with all their words.
"""


def emit(blocks, others=()):
    """The blocks; `others` are in the file of the registers of memory and ports."""
    lines = [HEADER]
    if others:
        names = ", ".join(sorted(block.name for block in others))
        lines.append(f"pub(super) use super::memory_registers::{{{names}}};\n")
    for block in blocks:
        lines += module(block)
    return "\n".join(lines)


def module(block):
    name = block.name
    lines = [
        f"/// {block.title}.",
        f"pub(super) mod {name} {{",
        "    use crate::bus::registers::registers;",
        "",
        "    /// Kind of the block.",
        f"    pub(crate) const KIND: u32 = {block.kind};",
        "    /// Bytes in the block.",
        f"    pub(crate) const SIZE: usize = {block.size:#x};",
        "    registers! {",
        f"        /// {block.title}.",
        "        pub(crate) REGISTERS:",
    ]
    for reg in block.all_regs():
        lines += register(block, reg)
    return lines + ["    }", "}", ""]


def register(block, reg):
    """A 64-bit register is two registers."""
    if reg.width == 32:
        return one(block, reg, reg.name, reg.at, reg.title, 0)
    return one(block, reg, reg.name, reg.at, reg.title, 0) + one(
        block, reg, f"{reg.name}_HIGH", reg.at + 4, f"upper half of {reg.name}", 32
    )


def one(block, reg, name, at, title, base):
    several = f" [{reg.count}; {reg.step:#x}]" if reg.count > 1 else ""
    head = f'        {name} {at:#06x}{several} "{block.name}" "{escape(title)}" {{'
    fields = [constant(name, f, base) for f in reg.fields]
    fields = [field for field in fields if field]
    if not fields:
        return [head + "}"]
    if len(fields) == 1:
        return [f"{head} {fields[0]} }}"]
    return [head] + [f"            {field}," for field in fields] + ["        }"]


def constant(name, field, base):
    """The mask of a field; none for a field that is the whole register."""
    low, high = max(field.low - base, 0), min(field.high - base, 31)
    if low > high or (low, high) == (0, 31):
        return None
    mask = (1 << (high - low + 1)) - 1
    shifted = f"{mask:#_x} << {low}" if low else f"{mask:#_x}"
    own = field.name.upper()
    return f"{name}_{own} = {shifted}"


def escape(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


MODEL_HEADER = """\
// Made by scripts/regen from hw/rdl: do not edit.

//! The register map: for the software card, and for tests of any card. `hw/docs/registers.md` has
//! the descriptions.
#![allow(missing_docs, reason = "the descriptions are in hw/docs/registers.md")]

use crate::map::registers;
"""


def emit_model(blocks):
    """The same map as plain data, with reset values and write access."""
    lines = [MODEL_HEADER, "registers! {"]
    for block in blocks:
        lines.append(
            f"    {block.name} {block.kind} {block.at:#_x} [{block.count}; {block.step:#x}] {block.size:#x} {{"
        )
        for reg in block.all_regs():
            lines.append(model_register(reg, reg.name, reg.at, 0))
            if reg.width == 64:
                lines.append(model_register(reg, f"{reg.name}_HIGH", reg.at + 4, 32))
        lines.append("    }")
    return "\n".join([*lines, "}", ""])


def model_register(reg, name, at, base):
    """Reset value, bits whose reset value is known, bits that keep what is written, bits that a write
    of 1 clears."""
    reset = known = writable = clears = 0
    for field in reg.fields:
        mask = ((1 << field.width) - 1) << field.low >> base & 0xFFFF_FFFF
        reset |= field.reset << field.low >> base & mask
        known |= 0 if field.kind in ("status", "row") else mask
        writable |= mask if field.writable and field.kind in ("config", "store", "row") else 0
        clears |= mask if field.kind == "flag" else 0
    masks = " ".join(f"{word:#_x}" for word in (reset & known, known, writable, clears))
    return f"        {name} {at:#06x} [{reg.count}; {reg.step:#x}] [{masks}]"
