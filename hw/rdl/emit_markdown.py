"""Writes the register map as Markdown."""

HEADER = """\
<!-- Made by scripts/regen from hw/rdl: do not edit. -->
# {title}

{text}

Registers are 32 bits wide and little-endian. A register of 64 bits is two of them, the low half first: a read of the low half latches the high half for the read that follows; a write takes effect with the high half, and writes of less than 32 bits do nothing. All other registers accept writes of single bytes. In tables, which modules hold themselves, a write of either half takes effect at once unless the table states otherwise. Reads have no side effects. At addresses without a register, reads return 0 and writes do nothing.

| access | |
| --- | --- |
| rw | the host's setting |
| w | a write of 1 starts an action, once; reads 0 |
| r | set by the card |
| rc | the card sets it, the host clears it by writing 1 |

"""

ACCESS = {
    "const": "r",
    "config": "rw",
    "store": "rw",
    "pulse": "w",
    "status": "r",
    "flag": "rc",
}


def emit(title, text, blocks):
    parts = [HEADER.format(title=title, text=text)]
    rows = [
        f"| {places(b)} | [{b.title}](#{anchor(b.title)}) | {b.kind} | {b.size:#x} | {words(b.text)} |"
        for b in blocks
    ]
    parts.append("\n".join(["| at | block | kind | bytes | |", "| --- | --- | --- | --- | --- |"] + rows))
    parts += [section(block) for block in blocks]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def anchor(title):
    return title.lower().replace(" ", "-")


def places(thing):
    if thing.count == 1:
        return f"`{thing.at:#x}`"
    return f"`{thing.at:#x}` + `{thing.step:#x}` x (0 to {thing.count - 1})"


def section(block):
    lines = [f"## {block.title}", "", block.text, ""]
    lines += table(block.regs)
    for window in block.windows:
        lines += ["", f"Table `{window.name}`, {window.size:#x} bytes at `{window.at:#x}`:", ""]
        lines += table(window.regs)
    return "\n".join(lines)


def table(regs):
    lines = ["| at | register | bits | access | reset | |", "| --- | --- | --- | --- | --- | --- |"]
    for reg in regs:
        about = sentence(reg.title, reg.text)
        plain = len(reg.fields) == 1 and reg.fields[0].name in ("value", "cycles")
        if plain:
            lines.append(row(places(reg), f"`{reg.name}`", reg.fields[0], sentence(about, reg.fields[0].text)))
            continue
        lines.append(f"| {places(reg)} | `{reg.name}` | | | | {about} |")
        for field in reg.fields:
            lines.append(row("", f"`{field.name}`", field, words(field.text)))
    return lines


def row(at, name, field, text):
    bits = f"{field.high}-{field.low}" if field.width > 1 else f"{field.low}"
    writable = field.kind in ("config", "store", "const", "flag")
    reset = number(field.reset) if writable else ""
    return f"| {at} | {name} | {bits} | {access(field)} | {reset} | {text} |"


def access(field):
    if field.kind == "row":
        return "rw" if field.writable else "r"
    return ACCESS[field.kind]


def number(value):
    return str(value) if value < 10 else f"{value:#x}" if value > 0xFFFFFF else str(value)


def sentence(title, text):
    return words(f"{title}. {text}" if text and title else title or text)


def words(text):
    return " ".join(text.split()).replace("|", "\\|")
