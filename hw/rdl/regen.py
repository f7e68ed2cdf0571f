"""Generates all files from hw/rdl. Run by scripts/regen."""

import pathlib
import sys

import emit_markdown
import emit_rust
import emit_sv
import layouts
import model

ROOT = pathlib.Path(__file__).parent.parent.parent
REGISTERS = "hw/rtl/regs"


def outputs():
    title, text, blocks = model.load("pollux_card")
    evb_title, evb_text, evb = model.load("pollux_evb")
    memory, signals = layouts.load()
    made = {f"{REGISTERS}/plx_{block.name}_regs.sv": emit_sv.emit(block) for block in blocks + evb}
    made |= {
        f"{REGISTERS}/regs_pkg.sv": emit_sv.package(blocks),
        "hw/rtl/lib/layouts_pkg.sv": layouts.package(memory, signals),
        "hw/rtl/lib/plx_layouts_check.sv": layouts.checks(memory),
        "hw/docs/registers.md": emit_markdown.emit(title, text, blocks),
        "hw/docs/layouts.md": layouts.markdown(memory, signals),
        "pmd/src/drivers/card/registers.rs": emit_rust.emit(blocks[:4], blocks[4:]),
        "pmd/src/drivers/card/memory_registers.rs": emit_rust.emit(blocks[4:]),
        "hw/model/src/registers.rs": emit_rust.emit_model(blocks),
        "hw/docs/evb-registers.md": emit_markdown.emit(evb_title, evb_text, evb),
        "hw/model/src/evb_registers.rs": emit_rust.emit_model(evb),
        "hw/model/src/layouts.rs": layouts.model_rust(memory),
        "pmd/src/drivers/card/layouts.rs": layouts.card_rust(memory),
        "pmd/src/event/layouts.rs": layouts.event_rust(memory),
        "pmd/rdma/src/layouts.rs": layouts.rdma_rust(memory),
    }
    return made


def main():
    check = sys.argv[1:] == ["--check"]
    made = outputs()
    differ = [name for name, text in made.items() if not same(ROOT / name, text)]
    # A block that is no more.
    left = [f"{REGISTERS}/{path.name}" for path in (ROOT / REGISTERS).glob("*")]
    left = [name for name in left if name not in made]
    for name in differ + left:
        print(f"{name}: {'not what hw/rdl makes' if check else 'written' if name in made else 'removed'}")
    if check:
        return 1 if differ or left else 0
    for name in differ:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(made[name], encoding="utf-8")
    for name in left:
        (ROOT / name).unlink()
    return 0


def same(path, text):
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
