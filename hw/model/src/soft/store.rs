//! The words of the registers.

use std::sync::LazyLock;

use crate::map::{Block, Register};
use crate::registers::{BLOCKS, card, event, functions, host, port};
use crate::simulated::{FUNCTIONS, GIT_HASH};

/// Bytes of BAR 0.
pub(super) const WINDOW: usize = 128 << 10;

/// The register at an address.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Kind of its block.
    pub(super) kind: u32,
    /// Which block of the kind.
    pub(super) instance: usize,
    /// The register.
    pub(super) register: &'static Register,
    /// Which element of the array.
    pub(super) n: usize,
    /// When it takes effect.
    effect: Effect,
}

/// When a written word takes effect.
#[derive(Clone, Copy)]
enum Effect {
    /// At once, byte by byte.
    AtOnce,
    /// With a later word. Single bytes have no effect.
    Waits,
    /// With so many earlier words. Single bytes have no effect.
    With(usize),
}

/// Settings of 64 bits take effect with their high half, and an entry of the ARP cache, which is an
/// address and such a setting, likewise.
fn effect(block: &Block, register: &Register) -> Effect {
    let is_high = register.name.ends_with("_HIGH");
    if block.kind == port::THIS.kind && register.at >= port::ARP_IP.at {
        let words = (port::ARP_MAC_HIGH.at - port::ARP_IP.at) / 4;
        return if is_high {
            Effect::With(words)
        } else {
            Effect::Waits
        };
    }
    match (block.takes_effect_as_one(register), is_high) {
        (false, _) => Effect::AtOnce,
        (true, false) => Effect::Waits,
        (true, true) => Effect::With(1),
    }
}

/// All registers, by word of the window.
static PLACES: LazyLock<Vec<Option<Place>>> = LazyLock::new(|| {
    let mut places = vec![None; WINDOW / 4];
    for block in BLOCKS {
        for instance in 0..block.count {
            for register in block.registers {
                for n in 0..register.count {
                    let at = block.at + instance * block.step + register.of(n);
                    if let Some(place) = places.get_mut(at / 4) {
                        *place = Some(Place {
                            kind: block.kind,
                            instance,
                            register,
                            n,
                            effect: effect(block, register),
                        });
                    }
                }
            }
        }
    }
    places
});

/// Power-on values: a card is made and reset often where it is not to be trusted.
static POWERED: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let reset = |place: &Option<Place>| place.map_or(0, |place| place.register.reset);
    let mut store = Store {
        words: PLACES.iter().map(reset).collect(),
        waiting: Vec::new(),
    };
    store.identify();
    store.words
});

/// All words of the window.
pub(super) struct Store {
    words: Vec<u32>,
    /// Written words that wait for another word.
    waiting: Vec<u32>,
}

impl Store {
    /// All registers in power-on state.
    pub(super) fn new() -> Self {
        let (words, waiting) = (POWERED.clone(), vec![0; WINDOW / 4]);
        Self { words, waiting }
    }

    /// The register at a byte address of the window.
    pub(super) fn place(at: usize) -> Option<Place> {
        PLACES.get(at / 4).copied().flatten()
    }

    /// Whether a block of registers is at a byte address of BAR 0.
    pub(super) fn is_in_block(at: usize) -> bool {
        BLOCKS.iter().any(|block| {
            (0..block.count).any(|n| at.wrapping_sub(block.at + n * block.step) < block.size)
        })
    }

    /// State after a reset by register: blocks of the card and of the host bus keep their settings
    /// and counts (hw/docs/operations.md, Start, stop, reset), and that of functions the owners.
    pub(super) fn reset(&mut self) {
        for (i, place) in PLACES.iter().enumerate() {
            let (Some(word), Some(place)) = (self.words.get_mut(i), place) else {
                continue;
            };
            let kept = [card::THIS.kind, host::THIS.kind, functions::THIS.kind];
            let is_fault =
                place.kind == functions::THIS.kind && place.register.at == functions::FAULT_CTRL.at;
            if is_fault || !kept.contains(&place.kind) {
                *word = place.register.reset;
            }
        }
        self.identify();
    }

    /// Power-on state.
    pub(super) fn power(&mut self) {
        self.words.copy_from_slice(&POWERED);
    }

    /// Numbers of all resources: hw/docs/interfaces.md, Top.
    fn identify(&mut self) {
        for (n, word) in GIT_HASH.as_chunks().0.iter().enumerate() {
            self.set(card::GIT_HASH.of(n), u32::from_le_bytes(*word));
        }
        self.set(card::HAS.at, 4 | 16 << 8 | 4 << 24);
        self.set(card::EVENT_QUEUES.at, event::QUEUE_BASE.count as u32);
        self.set(card::ENTRIES.at, 128 | 256 << 16);
        self.set(card::SIZES.at, 2048 | 128 << 16 | (FUNCTIONS as u32) << 24);
        let ports = port::THIS;
        for n in 0..ports.count {
            let at = ports.at + n * ports.step;
            let next = if n + 1 < ports.count {
                at + ports.step
            } else {
                0
            };
            self.set(at, ports.kind | 1 << 16 | (n as u32) << 24);
            self.set(at + port::NEXT.at, next as u32);
        }
    }

    /// The word at an address.
    pub(super) fn get(&self, at: usize) -> u32 {
        self.words.get(at / 4).copied().unwrap_or(0)
    }

    /// Both words of a register of 64 bits.
    pub(super) fn get64(&self, at: usize) -> u64 {
        u64::from(self.get(at + 4)) << 32 | u64::from(self.get(at))
    }

    /// Replaces a word.
    pub(super) fn set(&mut self, at: usize, value: u32) {
        if let Some(word) = self.words.get_mut(at / 4) {
            *word = value;
        }
    }

    /// Replaces both words.
    pub(super) fn set64(&mut self, at: usize, value: u64) {
        self.set(at, value as u32);
        self.set(at + 4, (value >> 32) as u32);
    }

    /// Adds to a counter.
    pub(super) fn count(&mut self, at: usize, n: u64) {
        self.set64(at, self.get64(at).wrapping_add(n));
    }

    /// The host writes some bytes of a word, as far as permitted; returns whether that has an effect.
    pub(super) fn write(&mut self, at: usize, value: u32, bytes: u32) -> bool {
        let Some(Place { effect, .. }) = Self::place(at) else {
            return false;
        };
        if let Effect::AtOnce = effect {
            self.write_bytes(at, value, bytes);
            return true;
        }
        if bytes != u32::MAX {
            return false;
        }
        if let Some(waiting) = self.waiting.get_mut(at / 4) {
            *waiting = value;
        }
        if let Effect::With(before) = effect {
            for at in (at - 4 * before..=at).step_by(4) {
                let waiting = self.waiting.get(at / 4).copied().unwrap_or(0);
                self.write_bytes(at, waiting, u32::MAX);
            }
        }
        true
    }

    fn write_bytes(&mut self, at: usize, value: u32, bytes: u32) {
        let Some(place) = Self::place(at) else {
            return;
        };
        let Register {
            writable, clears, ..
        } = *place.register;
        let (writable, clears) = (writable & bytes, clears & value & bytes);
        let kept = self.get(at) & !writable & !clears;
        self.set(at, kept | value & writable);
    }
}
