//! The words behind the registers.

use crate::map::Register;
use crate::registers::{BLOCKS, card, host, port};

/// Bytes of BAR 0.
pub(super) const WINDOW: usize = 128 << 10;

/// Which register is at a place.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Kind of its block.
    pub(super) kind: u32,
    /// Which of several blocks of the kind.
    pub(super) instance: usize,
    /// The register.
    pub(super) register: &'static Register,
    /// Which of several registers.
    pub(super) n: usize,
}

/// All words of the window, and what they are.
pub(super) struct Store {
    words: Vec<u32>,
    places: Vec<Option<Place>>,
}

impl Store {
    /// All registers as after power.
    pub(super) fn new() -> Self {
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
                            });
                        }
                    }
                }
            }
        }
        let words = vec![0; WINDOW / 4];
        let mut store = Self { words, places };
        store.power();
        store
    }

    /// What is at a place of the window, in bytes.
    pub(super) fn place(&self, at: usize) -> Option<Place> {
        self.places.get(at / 4).copied().flatten()
    }

    /// All as after a reset by register: blocks of the card and of the host bus keep their settings
    /// and counts (hw/docs/operations.md, Start, stop, reset).
    pub(super) fn reset(&mut self) {
        for (i, place) in self.places.iter().enumerate() {
            let (Some(word), Some(place)) = (self.words.get_mut(i), place) else {
                continue;
            };
            if ![card::THIS.kind, host::THIS.kind].contains(&place.kind) {
                *word = place.register.reset;
            }
        }
        self.identify();
    }

    /// All as after power.
    pub(super) fn power(&mut self) {
        for (word, place) in self.words.iter_mut().zip(&self.places) {
            *word = place.map_or(0, |place| place.register.reset);
        }
        self.identify();
    }

    /// How much of everything there is: hw/docs/interfaces.md, Top.
    fn identify(&mut self) {
        self.set(card::HAS.at, 4 | 16 << 8 | 8 << 16 | 4 << 24);
        self.set(card::ENTRIES.at, 128 | 256 << 16);
        self.set(card::SIZES.at, 2048 | 32 << 16 | 1 << 24);
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

    /// The word at a place.
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

    /// What the host writes, as far as it may; the word as it is then.
    pub(super) fn write(&mut self, at: usize, value: u32) -> u32 {
        let Some(place) = self.place(at) else {
            return 0;
        };
        let Register {
            writable, clears, ..
        } = *place.register;
        let kept = self.get(at) & !writable & !(clears & value);
        let word = kept | value & writable;
        self.set(at, word);
        word
    }
}
