"""Writes register blocks as SystemVerilog, in the subset that Verilator, Icarus and Yosys accept."""

HEADER = """\
// Made by scripts/regen from hw/rdl/{name}.rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// {title}: registers.
//
// cfg_* are settings, sts_* are read values, set_* sets a flag, flag_* is a flag, pulse_* and wr_* are
// high for one cycle after a write; arrays of fields are concatenated. Other modules hold the tables:
// win_* is a request until ready, in the same cycle or later.
"""


def emit(block):
    bits = block.address_bits
    lines = [HEADER.format(name=block.name, title=block.title) + f"module plx_{block.name}_regs ("]
    lines += [
        "    // Clock and reset.",
        "    input  logic clk,",
        "    input  logic rst,",
        "    // Register accesses.",
    ]
    lines += axil_ports(bits)
    if is_shared(block):
        lines.append("    input  logic [2:0] s_axil_func,")
    ports = [port for reg in block.regs for port in reg_ports(reg)]
    if ports:
        lines += ["    // Fields."] + ports
    if block.windows:
        lines += ["    // Tables."] + window_ports(block)
    lines[-1] = lines[-1].rstrip(",")
    lines += [");", ""]
    lines += access(block)
    for reg in block.regs:
        lines += storage(reg, bits)
    lines += readback(block)
    lines += ["endmodule", ""]
    return "\n".join(lines)


def is_shared(block):
    """Whether functions of the card have rows of it with settings of 64 bits, whose halves must not mix."""
    return any(reg.count > 1 and reg.width == 64 and any(f.kind == "config" for f in reg.fields) for reg in block.regs)


def axil_ports(bits):
    def one(direction, width, name):
        size = f"[{width - 1}:0] " if width > 1 else ""
        return f"    {direction:6} logic {size}s_axil_{name},"

    return [
        one("input", bits, "awaddr"),
        one("input", 1, "awvalid"),
        one("output", 1, "awready"),
        one("input", 32, "wdata"),
        one("input", 4, "wstrb"),
        one("input", 1, "wvalid"),
        one("output", 1, "wready"),
        one("output", 2, "bresp"),
        one("output", 1, "bvalid"),
        one("input", 1, "bready"),
        one("input", bits, "araddr"),
        one("input", 1, "arvalid"),
        one("output", 1, "arready"),
        one("output", 32, "rdata"),
        one("output", 2, "rresp"),
        one("output", 1, "rvalid"),
        one("input", 1, "rready"),
    ]


SLAVE = (
    ["clk", "rst"]
    + [f"s_axil_{end}" for end in "awaddr awvalid awready wdata wstrb wvalid wready bresp bvalid bready".split()]
    + [f"s_axil_{end}" for end in "araddr arvalid arready rdata rresp rvalid rready".split()]
    + ["acc_valid", "acc_write", "acc_addr", "acc_wdata", "acc_wstrb", "acc_ready", "acc_rdata"]
)

PREFIX = {"config": "cfg", "store": "store", "pulse": "pulse", "status": "sts", "flag": "set"}


def signal(reg, field):
    name = reg.name.lower()
    return name if field.name == "value" else f"{name}_{field.name}"


def reg_ports(reg):
    ports = []
    for field in reg.fields:
        if field.kind in ("const", "store"):
            continue
        width = field.width * reg.count
        size = f"[{width - 1}:0] " if width > 1 else ""
        direction = "input " if field.kind in ("status", "flag") else "output"
        ports.append(f"    {direction} logic {size}{PREFIX[field.kind]}_{signal(reg, field)},")
        if field.kind == "flag":
            ports.append(f"    output logic {size}{held(field)}_{signal(reg, field)},")
    if reg.notify:
        size = f"[{reg.count - 1}:0] " if reg.count > 1 else ""
        ports.append(f"    output logic {size}wr_{reg.name.lower()},")
    return ports


def window_ports(block):
    ports = [
        "    output logic win_write,",
        f"    output logic [{block.address_bits - 1}:0] win_addr,",
        "    output logic [31:0] win_wdata,",
        "    output logic [3:0] win_wstrb,",
    ]
    for window in block.windows:
        ports += [
            f"    output logic win_{window.name}_valid,",
            f"    input  logic win_{window.name}_ready,",
            f"    input  logic [31:0] win_{window.name}_rdata,",
        ]
    return ports


def access(block):
    """One access at a time, by word address."""
    bits = block.address_bits
    lines = [
        "    logic acc_valid, acc_write, acc_ready, done;",
        f"    logic [{bits - 1}:0] acc_addr;",
        "    logic [31:0] acc_wdata, acc_rdata, rdata, high, hold;",
        *(["    logic [31:0] highs [0:7];", "    logic [31:0] holds [0:7];"] if is_shared(block) else []),
        "    logic [3:0] acc_wstrb;",
        "",
        f"    plx_axil_slave #(.ADDR_W({bits})) slave (",
        *(f"        .{name}({name})," for name in SLAVE[:-1]),
        f"        .{SLAVE[-1]}({SLAVE[-1]})",
        "    );",
        "",
        f"    wire [{bits - 3}:0] word = acc_addr[{bits - 1}:2];",
        "    wire [31:0] mask = {{8{acc_wstrb[3]}}, {8{acc_wstrb[2]}}, {8{acc_wstrb[1]}}, {8{acc_wstrb[0]}}};",
        "    wire [31:0] keep = ~mask;",
        "    wire [31:0] put = acc_wdata & mask;",
    ]
    for window in block.windows:
        low = (window.size - 1).bit_length()
        number = window.at >> low
        test = f"acc_addr[{bits - 1}:{low}] == {bits - low}'d{number}"
        lines.append(f"    wire in_{window.name} = {test};")
    here = " && ".join(["acc_valid", "!done"] + [f"!in_{window.name}" for window in block.windows])
    lines += [
        f"    wire here = {here};",
        "    wire write = here && acc_write;",
        "    wire whole = write && &acc_wstrb;",
        "    wire unused = &{1'b0, acc_addr[1:0], keep, put, hold, high, write, whole};",
    ]
    if block.windows:
        lines += [
            "    assign win_write = acc_write;",
            "    assign win_addr = acc_addr;",
            "    assign win_wdata = acc_wdata;",
            "    assign win_wstrb = acc_wstrb;",
        ]
    ready, data = "done", "rdata"
    for window in block.windows:
        lines.append(f"    assign win_{window.name}_valid = acc_valid && in_{window.name};")
        ready += f" || (in_{window.name} && win_{window.name}_ready)"
        data = f"in_{window.name} ? win_{window.name}_rdata : {data}"
    lines += [
        f"    assign acc_ready = {ready};",
        f"    assign acc_rdata = {data};",
        "",
        "    // 64 bits: the low half waits for the high one. Bytes alone do nothing.",
    ]
    if is_shared(block):
        lines += [
            "    // Of each function: another one may access the block between the halves.",
            "    assign hold = holds[s_axil_func];",
            "    assign high = highs[s_axil_func];",
            "    always_ff @(posedge clk) if (whole) holds[s_axil_func] <= acc_wdata;",
            "",
        ]
    else:
        lines += ["    always_ff @(posedge clk) if (whole) hold <= acc_wdata;", ""]
    return lines


def part(name, field, count, n, low=0, width=None):
    """Bits from `low` on of field number n of `count` adjacent fields."""
    width = field.width - low if width is None else width
    if field.width * count == 1:
        return name
    if width == field.width * count:
        return name
    at = n * field.width + low
    return f"{name}[{at + width - 1}:{at}]" if width > 1 else f"{name}[{at}]"


def literal(width, value):
    return f"{width}'h{value:x}"


def storage(reg, bits):
    """The process that stores host writes."""
    kept = [f for f in reg.fields if f.kind in ("config", "store", "flag", "pulse")]
    lines = []
    for field in kept:
        if field.kind == "store":
            lines.append(f"    logic [{field.width - 1}:0] {held(field)}_{signal(reg, field)};")
    if not kept:
        return lines
    lines.append("    always_ff @(posedge clk) begin")
    for field in kept:
        for n, at in enumerate(reg.places()):
            lines += written(reg, field, n, at, bits)
    if reg.notify:
        for n, at in enumerate(reg.places()):
            hit, last = ("whole", at + 4) if reg.width == 64 else ("write", at)
            name = f"wr_{reg.name.lower()}" + (f"[{n}]" if reg.count > 1 else "")
            lines.append(f"        {name} <= !rst && {hit} && word == {literal(bits - 2, last >> 2)};")
    lines += ["    end", ""]
    return lines


def held(field):
    """The name of a field's storage: a flag's port only sets it."""
    return "flag" if field.kind == "flag" else PREFIX[field.kind]


def written(reg, field, n, at, bits):
    name = part(f"{held(field)}_{signal(reg, field)}", field, reg.count, n)
    reset = literal(field.width, field.reset)
    span = f"[{field.high}:{field.low}]" if field.width > 1 else f"[{field.low}]"
    hit = f"write && word == {literal(bits - 2, at >> 2)}"
    if field.kind == "pulse":
        return [f"        {name} <= !rst && {hit} && put{span};"]
    lines = [f"        if (rst) {name} <= {reset};"]
    if field.kind == "flag":
        new = part(f"set_{signal(reg, field)}", field, reg.count, n)
        lines.append(f"        else {name} <= ({name} & ~({{{field.width}{{{hit}}}}} & put{span})) | {new};")
    elif reg.width == 64:
        hit = f"whole && word == {literal(bits - 2, (at + 4) >> 2)}"
        top = field.width - 33
        lines.append(f"        else if ({hit}) {name} <= {{acc_wdata[{top}:0], hold}};")
    elif field.width == 32:
        lines.append(f"        else if ({hit}) {name} <= ({name} & keep) | put;")
    else:
        lines.append(f"        else if ({hit}) {name} <= ({name} & keep{span}) | put{span};")
    return lines


def readback(block):
    """One case for each word."""
    bits = block.address_bits
    kept_high = "highs[s_axil_func]" if is_shared(block) else "high"
    lines = [
        "    always_ff @(posedge clk) begin",
        "        done <= !rst && here;",
        "        case (word)",
    ]
    for reg in block.regs:
        for n, at in enumerate(reg.places()):
            place = literal(bits - 2, at >> 2)
            if reg.width == 32:
                lines.append(f"            {place}: rdata <= {value(reg, n, 0)};")
                continue
            lines += [
                f"            {place}: begin",
                f"                rdata <= {value(reg, n, 0)};",
                f"                if (here) {kept_high} <= {value(reg, n, 32)};",
                "            end",
                f"            {literal(bits - 2, (at + 4) >> 2)}: rdata <= high;",
            ]
    lines += ["            default: rdata <= 32'd0;", "        endcase"]
    if not any(reg.width == 64 for reg in block.regs):
        lines.append("        high <= 32'd0;")
    lines += ["    end", ""]
    return lines


def value(reg, n, low):
    """32 bits of a register from bit `low` on, as a concatenation."""
    pieces, at = [], low
    for field in sorted(reg.fields, key=lambda f: f.low):
        first, last = max(field.low, low), min(field.high, low + 31)
        if first > last:
            continue
        if first > at:
            pieces.append(f"{first - at}'d0")
        pieces.append(bits_of(reg, field, n, first - field.low, last - first + 1))
        at = last + 1
    if at < low + 32:
        pieces.append(f"{low + 32 - at}'d0")
    return pieces[0] if len(pieces) == 1 else "{" + ", ".join(reversed(pieces)) + "}"


def bits_of(reg, field, n, low, width):
    if field.kind == "const":
        return literal(width, (field.reset >> low) & ((1 << width) - 1))
    if field.kind == "pulse":
        return f"{width}'d0"
    return part(f"{held(field)}_{signal(reg, field)}", field, reg.count, n, low, width)


PACKAGE = """\
// Made by scripts/regen from hw/rdl: do not edit.
// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Where blocks are (_AT, _STEP), how many address bits they have (_ADDR_W); and for tables where a
// register is in its row (_ROW, bytes) and a field in that (_LSB, _W).
package regs_pkg;
    /* verilator lint_off UNUSEDPARAM */
"""


def package(blocks):
    lines = [PACKAGE]
    for block in blocks:
        name = block.name.upper()
        step = f", {name}_STEP = {block.step}" if block.count > 1 else ""
        lines.append(f"    // {block.title}.")
        lines.append(f"    localparam {name}_AT = {block.at}{step}, {name}_ADDR_W = {block.address_bits};")
        for window in block.windows:
            for reg in window.regs:
                lines += row_constants(f"{name}_{reg.name}", reg, window)
        lines.append("")
    return "\n".join(lines + ["    /* verilator lint_on UNUSEDPARAM */", "endpackage", ""])


def row_constants(name, reg, window):
    lines = [f"    localparam {name}_ROW = {reg.at - window.at};"]
    for field in reg.fields:
        if field.width < reg.width:
            own = f"{name}_{field.name.upper()}"
            lines.append(f"    localparam {own}_LSB = {field.low}, {own}_W = {field.width};")
    return lines
