//! The register map: `hw/docs/registers.md`.

use pollux_card_model::registers::{BLOCKS, card, clop, functions, host, port, timing};
use pollux_card_model::{Block, Register, SimulatedCard, TimingInput};
use pollux_pmd::bus::{Bus, Device};

use super::support::Make;
use crate::{CosimBus, CosimDevice};

const WINDOW: usize = 128 << 10;

/// All registers of the map; of larger arrays only the first and the last.
pub(super) fn all_up_to(
    several: usize,
) -> impl Iterator<Item = (&'static Block, &'static Register, usize)> {
    BLOCKS.iter().flat_map(move |block| {
        (0..block.count).flat_map(move |instance| {
            block.registers.iter().flat_map(move |register| {
                let last = register.count - 1;
                let wanted = move |n: &usize| last < several || *n == 0 || *n == last;
                (0..=last).filter(wanted).map(move |n| {
                    let at = block.at + instance * block.step + register.of(n);
                    (block, register, at)
                })
            })
        })
    })
}

/// All registers of the map, the first and the last of arrays.
fn all() -> impl Iterator<Item = (&'static Block, &'static Register, usize)> {
    all_up_to(1)
}

/// Up to this number the elements are single registers; beyond, rows of a table.
const SEVERAL: usize = 16;

fn bus<C: SimulatedCard>(device: &CosimDevice<C>) -> CosimBus<C> {
    device.bar(0, WINDOW).unwrap()
}

/// Whether a register is the high half of one of 64 bits.
fn is_high(block: &Block, register: &Register) -> bool {
    let mut halves = block
        .registers
        .iter()
        .filter_map(|low| block.high_half(low));
    halves.any(|high| high == register)
}

/// Reads a register; the high half of one of 64 bits after its low half, which latches it.
fn read<C: SimulatedCard>(bus: &CosimBus<C>, block: &Block, register: &Register, at: usize) -> u32 {
    if is_high(block, register) {
        let _ = bus.read32(at - 4);
    }
    bus.read32(at)
}

fn assert_reset<C: SimulatedCard>(bus: &CosimBus<C>, blocks: impl Fn(&Block) -> bool) {
    for (block, register, at) in all_up_to(SEVERAL).filter(|(block, ..)| blocks(block)) {
        let is = read(bus, block, register, at) & register.known;
        let (name, reset) = (register.name, register.reset);
        assert_eq!(is, reset, "{} {name} at {at:#x}", block.name);
    }
}

/// Values that a test may write without an action of the card.
pub(super) fn harmless(block: &Block, register: &Register) -> u32 {
    let is = |of: &Block, what: Register| block.kind == of.kind && register.at == what.at;
    if is(&host::THIS, host::CTRL) || is(&clop::THIS, clop::LIST_CTRL) {
        0
    } else if block.kind == functions::THIS.kind {
        // Other owners than function 0.
        0
    } else if register.name.ends_with("CTRL") && !is(&port::THIS, port::PCS_CTRL) {
        // Without the enable bit.
        register.writable & !3
    } else if block.kind == port::THIS.kind && register.at >= port::ARP_IP.at {
        // An entry is written as a whole.
        0
    } else {
        register.writable
    }
}

/// Reset values, writable bits, read-only bits, and addresses between the registers.
pub fn registers_hold_what_the_map_says<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::new(make());
    let bus = bus(&device);
    assert_reset(&bus, |_| true);
    for pattern in [0x5a5a_5a5a, 0xa5a5_a5a5_u32] {
        for (block, register, at) in all_up_to(SEVERAL) {
            let mask = harmless(block, register);
            if mask == 0 || is_high(block, register) {
                continue;
            }
            // The low half of 64 bits takes effect with the high one.
            let high = block.high_half(register);
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
    for at in [card::THIS.size - 4, 0x800, 0x7000, 0xf000, 0x3ffc] {
        bus.write32(at, u32::MAX);
        assert_eq!(bus.read32(at), 0, "nothing is at {at:#x}");
    }
}

/// A reset of the card: all but the blocks of the card and of the host bus has its initial state.
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
    let kept = [card::THIS.kind, host::THIS.kind, functions::THIS.kind];
    let keeps = |block: &Block| kept.contains(&block.kind);
    assert_reset(&bus, |block| !keeps(block));
    for (block, register, at) in all().filter(|(block, ..)| keeps(block)) {
        let mask = harmless(block, register);
        let is = bus.read32(at) & mask;
        assert_eq!(is, mask, "{} {} at {at:#x}", block.name, register.name);
    }
}

/// PCIe byte enables: a write of a byte changes only that byte. Registers that take effect as a whole
/// are not changed by bytes.
pub fn halves_and_bytes_of_registers_are_honoured<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::new(make());
    let bus = bus(&device);
    let at = card::SCRATCH.at;
    bus.write32(at, 0x1122_3344);
    bus.write8(at + 1, 0x55);
    bus.write16(at + 2, 0x6677);
    assert_eq!(bus.read32(at), 0x6677_5544);
    assert_eq!((bus.read8(at + 3), bus.read16(at)), (0x66, 0x5544));
    for (block, register, at) in all() {
        let mask = harmless(block, register);
        let is_whole = block.takes_effect_as_one(register);
        if mask == 0 || is_whole && is_high(block, register) {
            continue;
        }
        bus.write32(at, 0x5a3c_965a & mask);
        if is_whole {
            bus.write32(at + 4, 0);
        }
        let mut expected = 0x5a3c_965a & mask;
        for byte in 0..4 {
            let value = 0xa5_u8.rotate_left(byte) & (mask >> (8 * byte)) as u8;
            bus.write8(at + byte as usize, value);
            if is_whole {
                bus.write16(at + 4, 0);
            } else {
                let rest = expected & !(0xff << (8 * byte));
                expected = rest | u32::from(value) << (8 * byte);
            }
        }
        let name = register.name;
        let is = bus.read32(at) & mask;
        assert_eq!(is, expected, "{} {name} at {at:#x}", block.name);
    }
}

/// A flag that the card sets is cleared by its own byte, and a bit that starts an action does so
/// only by its own byte.
pub fn bytes_of_flags_and_commands_are_honoured<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::new(make());
    let bus = bus(&device);
    let flags = timing::THIS.at + timing::FLAGS.at;
    device.with(|card, memory| {
        card.pulse(TimingInput::End);
        card.advance(memory, 1_000_000);
    });
    let set = bus.read32(flags);
    assert_ne!(set, 0, "an end of burst outside one");
    bus.write8(flags + 1, 0xff);
    bus.write16(flags + 2, 0xffff);
    assert_eq!(bus.read32(flags), set);
    bus.write8(flags, set as u8);
    assert_eq!(bus.read32(flags), 0);
    // A flush of the ARP cache is bit 8.
    write_neighbour(&bus, 9, [1, 2, 3]);
    let control = port::THIS.at + port::ARP_CTRL.at;
    bus.write8(control, 5);
    assert_eq!(neighbour(&bus, 9), [1, 2, 3]);
    bus.write8(control + 1, 1);
    let mut patience = 1000;
    while neighbour(&bus, 9) != [0; 3] && patience > 0 {
        patience -= 1;
    }
    assert_eq!(neighbour(&bus, 9), [0; 3]);
    assert_eq!(bus.read32(control), 0);
}

/// Words of a neighbour of port 0's ARP cache: address, and both halves of its state.
fn neighbour_at(row: usize) -> [usize; 3] {
    let words = [port::ARP_IP, port::ARP_MAC, port::ARP_MAC_HIGH];
    words.map(|register| port::THIS.at + register.of(row))
}

fn write_neighbour<C: SimulatedCard>(bus: &CosimBus<C>, row: usize, words: [u32; 3]) {
    for (at, word) in neighbour_at(row).into_iter().zip(words) {
        bus.write32(at, word);
    }
}

fn neighbour<C: SimulatedCard>(bus: &CosimBus<C>, row: usize) -> [u32; 3] {
    neighbour_at(row).map(|at| bus.read32(at))
}

/// A neighbour is written as a whole, with its last word; single bytes of it have no effect.
pub fn a_neighbour_is_written_as_a_whole<C: SimulatedCard>(make: Make<'_, C>) {
    // Known, and static.
    const HELD: u32 = 0x6_0000;
    let device = CosimDevice::new(make());
    let bus = bus(&device);
    for row in [0, 77, port::ARP_IP.count - 1] {
        let first = [0x0a00_0001, 0x3344_5566, HELD | 0x1122];
        write_neighbour(&bus, row, first);
        assert_eq!(neighbour(&bus, row), first, "row {row}");
        let [ip, low, high] = neighbour_at(row);
        for at in [ip, low, high] {
            for byte in 0..4 {
                bus.write8(at + byte, 0xff);
            }
            bus.write16(at, 0xffff);
        }
        assert_eq!(neighbour(&bus, row), first, "row {row}: bytes");
        bus.write32(ip, 0x0a00_0002);
        bus.write32(low, 0x99aa_bbcc);
        assert_eq!(neighbour(&bus, row), first, "row {row}: not yet");
        bus.write32(high, HELD | 0x7788);
        let second = [0x0a00_0002, 0x99aa_bbcc, HELD | 0x7788];
        assert_eq!(
            neighbour(&bus, row),
            second,
            "row {row}: with its last word"
        );
    }
}

/// An address without a block reads 0 and takes no write, and each access of it is counted; a reserved
/// register of a block reads 0 as well, and is not.
pub fn accesses_outside_the_blocks_are_counted<C: SimulatedCard>(make: Make<'_, C>) {
    let device = CosimDevice::new(make());
    let bus = bus(&device);
    let refused = || {
        device.with(|card, memory| card.advance(memory, 1_000_000));
        bus.read32(host::THIS.at + host::REFUSED.at)
    };
    let end = |block: &Block| block.at + block.size;
    let before = refused();
    for (at, outside) in [
        (end(&card::THIS), 1),
        (host::THIS.at - 4, 1),
        (end(&functions::THIS), 1),
        (end(&card::THIS) - 4, 0),
    ] {
        let last = refused();
        bus.write32(at, !0);
        assert_eq!(bus.read32(at), 0, "{at:#x}");
        bus.write16(at + 2, 7);
        assert_eq!(refused(), last + 3 * outside, "{at:#x}");
    }
    assert_eq!(refused(), before + 9);
    assert_eq!(
        bus.read32(card::THIS.at + card::MAGIC.at),
        card::MAGIC.reset
    );
}
