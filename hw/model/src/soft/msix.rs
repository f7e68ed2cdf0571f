//! Vectors of MSI-X (PCIe 4.0 sections 6.1.4 and 7.7.2): table and pending bits in their own
//! window. The data of an entry select the vector of the host; the address of interrupts belongs to
//! the host, so the entry's address is stored and not used.

use std::collections::BTreeSet;

use crate::registers::event;

/// The window, and its pending bits.
pub(super) const BAR: u8 = 2;
pub(super) const PENDING: usize = 0x1000;

/// One for each event queue.
const VECTORS: usize = event::QUEUE_BASE.count;

/// Whether a vector belongs to a function, of each.
pub(super) type Own = [bool; VECTORS];

/// An entry, in words: address, its upper half, data, control.
pub(super) const ENTRY: usize = 16;
const DATA: usize = 2;
const CONTROL: usize = 3;
const MASKED: u32 = 1;

/// Bits that an entry stores: an address is aligned to a word.
const KEPT: [u32; 4] = [!3, u32::MAX, u32::MAX, MASKED];

#[derive(Clone)]
pub(super) struct Vectors {
    table: [[u32; 4]; VECTORS],
    pending: BTreeSet<usize>,
}

impl Default for Vectors {
    /// At power-on all are masked.
    fn default() -> Self {
        Self {
            table: [[0, 0, 0, MASKED]; VECTORS],
            pending: BTreeSet::new(),
        }
    }
}

impl Vectors {
    /// The value of a word of the window; `own`: vectors whose pending bits are visible.
    pub(super) fn get(&self, at: usize, own: &Own) -> u32 {
        if let Some(entry) = self.table.get(at / ENTRY) {
            return entry[at % ENTRY / 4];
        }
        let Some(first) = at.checked_sub(PENDING).map(|into| into / 4 * 32) else {
            return 0;
        };
        let seen = self.pending.range(first..first + 32);
        let seen = seen.filter(|&&vector| own.get(vector) == Some(&true));
        seen.fold(0, |bits, vector| bits | 1 << (vector - first))
    }

    /// The host writes a word; single bytes have no effect.
    pub(super) fn set(&mut self, at: usize, value: u32, bytes: u32) {
        if let Some(entry) = self.table.get_mut(at / ENTRY)
            && bytes == u32::MAX
        {
            let word = at % ENTRY / 4;
            entry[word] = value & KEPT[word];
        }
    }

    /// Of the first so many, those of a function: n is the host's n, and is not masked.
    pub(super) fn program(&mut self, own: &Own, vectors: u16) {
        for ((vector, entry), own) in (0..u32::from(vectors)).zip(&mut self.table).zip(own) {
            if *own {
                (entry[DATA], entry[CONTROL]) = (vector, 0);
            }
        }
    }

    /// The owner of these vectors is reset: they are masked, and not pending.
    pub(super) fn mask(&mut self, own: &Own) {
        self.pending
            .retain(|&vector| own.get(vector) == Some(&false));
        for (entry, own) in self.table.iter_mut().zip(own) {
            if *own {
                entry[CONTROL] = MASKED;
            }
        }
    }

    /// An interrupt request: it is pending until it may be sent.
    pub(super) fn ask(&mut self, vector: usize) {
        self.pending.insert(vector);
    }

    /// Takes one that may be sent, as far as the owners of vectors let them: its number, and the
    /// vector to signal to the host.
    pub(super) fn take(&mut self, is_allowed: impl Fn(usize) -> bool) -> Option<(usize, u16)> {
        let entry = |vector: usize| self.table.get(vector);
        let may = |&vector: &usize| {
            let is_masked = entry(vector).is_none_or(|entry| entry[CONTROL] & MASKED != 0);
            !is_masked && is_allowed(vector)
        };
        let vector = self.pending.iter().copied().find(may)?;
        let data = entry(vector)?[DATA] as u16;
        self.pending.remove(&vector);
        Some((vector, data))
    }

    /// A reset by register clears pending interrupts; the table is kept.
    pub(super) fn forget(&mut self) {
        self.pending.clear();
    }
}
