//! The register map: `hw/docs/registers.md`.

use pollux_card_model::registers::{BLOCKS, card, clop, host, port};
use pollux_card_model::{Block, Register, SimulatedCard};
use pollux_pmd::bus::{Bus, Device};

use super::Make;
use crate::{CosimBus, CosimDevice};

const WINDOW: usize = 128 << 10;

/// All registers of the map, the first and the last of several.
fn all() -> impl Iterator<Item = (&'static Block, &'static Register, usize)> {
    BLOCKS.iter().flat_map(|block| {
        (0..block.count).flat_map(move |instance| {
            block.registers.iter().flat_map(move |register| {
                let ends = [0, register.count - 1];
                let ends = ends.into_iter().take(register.count.min(2));
                ends.map(move |n| {
                    let at = block.at + instance * block.step + register.of(n);
                    (block, register, at)
                })
            })
        })
    })
}

fn bus<C: SimulatedCard>(device: &CosimDevice<C>) -> CosimBus<C> {
    device.bar(0, WINDOW).unwrap()
}

/// Whether a register is the high half of one of 64 bits.
fn is_high(block: &Block, register: &Register) -> bool {
    let low = register.name.strip_suffix("_HIGH");
    low.is_some_and(|low| block.registers.iter().any(|other| other.name == low))
}

/// The high half of a register of 64 bits.
fn high_half(block: &Block, register: &Register) -> Option<&'static Register> {
    let name = format!("{}_HIGH", register.name);
    block.registers.iter().find(|other| other.name == name)
}

/// Reads a register; the high half of one of 64 bits behind its low half, which keeps it.
fn read<C: SimulatedCard>(bus: &CosimBus<C>, block: &Block, register: &Register, at: usize) -> u32 {
    if is_high(block, register) {
        let _ = bus.read32(at - 4);
    }
    bus.read32(at)
}

fn assert_reset<C: SimulatedCard>(bus: &CosimBus<C>, blocks: impl Fn(&Block) -> bool) {
    for (block, register, at) in all().filter(|(block, ..)| blocks(block)) {
        let is = read(bus, block, register, at) & register.known;
        let (name, reset) = (register.name, register.reset);
        assert_eq!(is, reset, "{} {name} at {at:#x}", block.name);
    }
}

/// What a test may write without having the card do something.
fn harmless(block: &Block, register: &Register) -> u32 {
    let is = |of: &Block, what: Register| block.kind == of.kind && register.at == what.at;
    if is(&host::THIS, host::CTRL) || is(&clop::THIS, clop::LIST_CTRL) {
        0
    } else if register.name.ends_with("CTRL") {
        // Without what enables it.
        register.writable & !3
    } else if block.kind == port::THIS.kind && register.at >= port::ARP_IP.at {
        // An entry is written as a whole.
        0
    } else {
        register.writable
    }
}

/// Reset values, what the host may write, what it may not, and what is between the registers.
pub fn registers_hold_what_the_map_says<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::new(make());
    let bus = bus(&device);
    assert_reset(&bus, |_| true);
    for pattern in [0x5a5a_5a5a, 0xa5a5_a5a5_u32] {
        for (block, register, at) in all() {
            let mask = harmless(block, register);
            if mask == 0 || is_high(block, register) {
                continue;
            }
            // The low half of 64 bits takes effect with the high one.
            let high = high_half(block, register);
            let high = high.map(|high| (high, !pattern & harmless(block, high)));
            bus.write32(at, pattern & mask);
            if let Some((_, value)) = high {
                bus.write32(at + 4, value);
            }
            let name = register.name;
            let is = bus.read32(at) & mask;
            assert_eq!(is, pattern & mask, "{} {name} at {at:#x}", block.name);
            if let Some((high, value)) = high {
                let is = bus.read32(at + 4) & harmless(block, high);
                assert_eq!(is, value, "{} {} at {:#x}", block.name, high.name, at + 4);
            }
        }
    }
    for at in [card::THIS.size - 4, 0x800, 0x7000, 0xf000, WINDOW - 4] {
        bus.write32(at, u32::MAX);
        assert_eq!(bus.read32(at), 0, "nothing is at {at:#x}");
    }
}

/// A reset of the card: all but the blocks of the card and of the host bus is as in the beginning.
pub fn a_reset_forgets_what_was_written<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::new(make());
    let bus = bus(&device);
    for (block, register, at) in all() {
        let mask = harmless(block, register);
        if mask != 0 {
            bus.write32(at, mask);
        }
    }
    bus.write32(card::CTRL.at, 1);
    let mut patience = 10_000;
    while bus.read32(card::STATUS.at) & 1 == 1 {
        device.with(|card, memory| card.advance(memory, 1_000_000));
        patience -= 1;
        assert!(patience > 0, "the reset goes on for ever");
    }
    let keeps = |block: &Block| [card::THIS.kind, host::THIS.kind].contains(&block.kind);
    assert_reset(&bus, |block| !keeps(block));
    for (block, register, at) in all().filter(|(block, ..)| keeps(block)) {
        let mask = harmless(block, register);
        let is = bus.read32(at) & mask;
        assert_eq!(is, mask, "{} {} at {at:#x}", block.name, register.name);
    }
}

/// PCIe gives byte enables: a write of a byte changes that one.
pub fn halves_and_bytes_of_registers_are_honoured<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::new(make());
    let bus = bus(&device);
    let at = card::SCRATCH.at;
    bus.write32(at, 0x1122_3344);
    bus.write8(at + 1, 0x55);
    bus.write16(at + 2, 0x6677);
    assert_eq!(bus.read32(at), 0x6677_5544);
    assert_eq!((bus.read8(at + 3), bus.read16(at)), (0x66, 0x5544));
}
