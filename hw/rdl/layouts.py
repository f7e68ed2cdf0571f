"""The table of layouts, and the files generated from it."""

import dataclasses
import pathlib
import re
import tomllib

HERE = pathlib.Path(__file__).parent
SOURCE = "hw/rdl/layouts.toml"
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


@dataclasses.dataclass
class Field:
    """A field; `at` and `size` are bytes in memory and bits in a signal."""

    name: str
    at: int
    size: int
    type: str
    text: str


@dataclasses.dataclass
class Layout:
    name: str
    size: int
    text: str
    fields: list
    base: int = 0
    kind: int = 0
    rust: str = ""
    constants: tuple = ()

    @property
    def constant(self):
        """TxSent -> TX_SENT."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).upper()


def load(path=HERE / "layouts.toml"):
    """Layouts in memory, and of signals. Ends the program with a message if they have gaps."""
    table = tomllib.loads(path.read_text())
    memory = [
        Layout(
            name=row["name"],
            size=row["bytes"],
            text=row["text"],
            fields=[Field(n, at, size_of(kind), kind, text) for n, at, kind, text in row["fields"]],
            base=row.get("base", 0),
            kind=row.get("kind", 0),
            rust=row["rust"],
            constants=tuple(row.get("constants", ())),
        )
        for row in table["memory"]
    ]
    signals = [
        Layout(
            name=row["name"],
            size=row["bits"],
            text=row["text"],
            fields=[Field(n, at, bits, "", text) for n, at, bits, text in row["fields"]],
        )
        for row in table["signal"]
    ]
    loose = {row["name"] for row in table["signal"] if row.get("overlaps")}
    for layout in memory + signals:
        if layout.name not in loose:
            check(layout)
    return memory, signals


def size_of(kind):
    array = re.fullmatch(r"\[(\w+); (\d+)\]", kind)
    return SIZES[array[1]] * int(array[2]) if array else SIZES[kind]


def check(layout):
    at = layout.base
    for field in layout.fields:
        if field.at != at:
            raise SystemExit(f"{SOURCE}: {layout.name}.{field.name} is at {field.at}, not at {at}")
        at += field.size
    if at != layout.base + layout.size:
        raise SystemExit(f"{SOURCE}: the fields of {layout.name} end at {at}")


# SystemVerilog


def package(memory, signals):
    lines = [
        f"// Made by scripts/regen from {SOURCE}: do not edit.",
        "// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1",
        "//",
        "// Layouts in memory and of sideband signals: of each the bits, of each field the lowest bit (_AT)",
        "// and how many there are (_W).",
        "package layouts_pkg;",
        "    /* verilator lint_off UNUSEDPARAM */",
    ]
    for layout in memory + signals:
        scale = 8 if layout.rust else 1
        name = layout.constant
        lines += ["", f"    // {first_sentence(layout.text)}", f"    localparam {name}_W = {layout.size * scale};"]
        if layout.kind:
            lines.append(f"    localparam {name}_KIND = {layout.kind};")
        for field in layout.fields:
            own = f"{name}_{field.name.upper()}"
            lines.append(f"    localparam {own}_AT = {field.at * scale}, {own}_W = {field.size * scale};")
        for constant, value, text in layout.constants:
            lines.append(f"    localparam {name}_{constant} = {value};  // {text}")
    return "\n".join(lines + ["", "    /* verilator lint_on UNUSEDPARAM */", "endpackage", ""])


def checks(memory):
    """A module that does not elaborate where fields overlap or leave a gap."""
    lines = [
        f"// Made by scripts/regen from {SOURCE}: do not edit.",
        "// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1",
        "//",
        "// Does not elaborate where fields in memory overlap, leave a hole, or end elsewhere than they should.",
        "module plx_layouts_check;",
        "    generate",
    ]
    for layout in memory:
        ends = [f"{layout.base * 8}"] + [f"{own(layout, f)}_AT + {own(layout, f)}_W" for f in layout.fields]
        starts = [f"{own(layout, f)}_AT" for f in layout.fields] + [f"{layout.base * 8} + {SV}{layout.constant}_W"]
        for end, start in zip(ends, starts):
            lines.append(f"        if ({start} != {end}) {layout.name}_has_a_hole layout_error ();")
    return "\n".join(lines + ["    endgenerate", "endmodule", ""])


SV = "layouts_pkg::"


def own(layout, field):
    return f"{SV}{layout.constant}_{field.name.upper()}"


def first_sentence(text):
    return re.split(r"(?<=\.) |(?<=\.)$", text)[0]


# Rust

RUST_HEADER = f"// Made by scripts/regen from {SOURCE}: do not edit.\n"


def event_rust(memory):
    """Field offsets of hand-written types, for the assertions beside them."""
    lines = [RUST_HEADER, "//! Offsets and sizes of what hardware fills in as well; types here are held to them.", ""]
    for layout in (layout for layout in memory if layout.rust == "event"):
        name = layout.constant
        lines += [f"/// Bytes of a `{layout.name}`.", f"pub(super) const {name}_SIZE: usize = {layout.size};"]
        if layout.kind:
            lines += [f"/// Kind of the event `{layout.name}`.", f"pub(super) const {name}_KIND: u8 = {layout.kind};"]
        for field in layout.fields:
            own = f"{name}_{field.name.upper()}"
            lines += [
                f"/// Offset of `{field.name}` in it.",
                f"pub(super) const {own}: usize = {field.at - layout.base};",
            ]
        lines.append("")
    return "\n".join(lines)


def model_rust(memory):
    """Offsets of all fields, for the software card; in events from the record's first byte."""
    lines = [RUST_HEADER, "//! Offsets in what the card reads and writes in memory. `hw/docs/layouts.md` has them as tables.", ""]
    lines += ['#![allow(missing_docs, reason = "the descriptions are in hw/docs/layouts.md")]', ""]
    for layout in memory:
        name = layout.constant
        lines.append(f"pub const {name}_SIZE: usize = {layout.size};")
        if layout.kind:
            lines.append(f"pub const {name}_KIND: u8 = {layout.kind};")
        lines += [f"pub const {name}_{field.name.upper()}: usize = {field.at};" for field in layout.fields]
        lines += [f"pub const {name}_{constant}: u16 = {value:#x};" for constant, value, _ in layout.constants]
        lines.append("")
    return "\n".join(lines)


ENDIAN = {"u8": "u8", "u16": "U16", "u32": "U32", "u64": "U64"}


def card_rust(memory):
    """Types of records that only the card has."""
    return types_rust(memory, "card", "Descriptors and events of the card.", "crate")


def rdma_rust(memory):
    """Types of the events of queue pairs."""
    return types_rust(memory, "rdma", "Events of queue pairs.", "pollux_pmd")


def types_rust(memory, rust, title, pmd):
    layouts = [layout for layout in memory if layout.rust == rust]
    kinds = {kind for layout in layouts for field in layout.fields for kind in re.findall(r"u\d+", field.type)}
    lines = [
        RUST_HEADER,
        f"//! {title} `hw/docs/layouts.md` has them as tables.",
        "",
        f"use zerocopy::little_endian::{{{', '.join(sorted((ENDIAN[k] for k in kinds - {'u8'}), key=lambda k: int(k[1:])))}}};",
        "use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};",
        "",
    ]
    lines += [f"use {pmd}::event::EventKind;", ""]
    for layout in layouts:
        lines += rust_type(layout)
    return "\n".join(lines)


def rust_type(layout):
    lines = [f"/// {line}" for line in wrap(layout.text)]
    lines += [
        "#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]",
        "#[repr(C)]",
        f"pub(super) struct {layout.name} {{",
    ]
    for field in layout.fields:
        text = field.text or field.name.replace("_", " ")
        lines += [f"    /// {line}" for line in wrap(sentence(text))]
        lines.append(f"    pub {field.name}: {rust_kind(field.type)},")
    lines += ["}", ""]
    if layout.kind or layout.constants:
        lines.append(f"impl {layout.name} {{")
        if layout.kind:
            lines += [
                "    /// Kind of the event.",
                f"    pub(super) const KIND: EventKind = EventKind({layout.kind});",
            ]
        for constant, value, text in layout.constants:
            lines += [f"    /// {line}" for line in wrap(sentence(text))]
            lines.append(f"    pub(super) const {constant}: u16 = {value:#x};")
        lines += ["}", ""]
    lines += ["const _: () = {", f"    assert!(size_of::<{layout.name}>() == {layout.size});"]
    for field in layout.fields:
        lines.append(
            f"    assert!(core::mem::offset_of!({layout.name}, {field.name}) == {field.at - layout.base});"
        )
    return lines + ["};", ""]


def rust_kind(kind):
    return re.sub(r"u\d+", lambda m: ENDIAN[m[0]], kind, count=1)


def sentence(text):
    return text[0].upper() + text[1:].rstrip(".") + "."


def wrap(text, width=92):
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return lines + [line]


# Markdown


def markdown(memory, signals):
    lines = [
        f"<!-- Made by scripts/regen from {SOURCE}: do not edit. -->",
        "# Layouts",
        "",
        "Records in host memory, all little-endian, and the bits of signals between modules of the card.",
        "",
        "| kind | event |",
        "| --- | --- |",
    ]
    lines += [f"| {layout.kind} | [{layout.name}](#{layout.name.lower()}) |" for layout in memory if layout.kind]
    for layout in memory:
        lines += ["", f"## {layout.name}", "", layout.text, "", "| offset | type | field | |", "| --- | --- | --- | --- |"]
        lines += [f"| {f.at} | {f.type} | {f.name} | {f.text} |" for f in layout.fields]
        if layout.constants:
            lines += ["", "| flag | value | |", "| --- | --- | --- |"]
            lines += [f"| `{name}` | {value:#x} | {text} |" for name, value, text in layout.constants]
    for layout in signals:
        lines += ["", f"## {layout.name}", "", f"{layout.text} {layout.size} bits.", "", "| bits | field | |", "| --- | --- | --- |"]
        for f in layout.fields:
            bits = f"{f.at + f.size - 1}:{f.at}" if f.size > 1 else f"{f.at}"
            lines.append(f"| {bits} | {f.name} | {f.text} |")
    return "\n".join(lines) + "\n"
