//! Vectors of MSI-X (PCIe 4.0 sections 6.1.4 and 7.7.2): table and pending bits in their own
//! window. The data of an entry select the vector of the host; the address of interrupts belongs to
//! the host, so the entry's address is stored and not used.

/// The window, and its pending bits.
pub(super) const BAR: u8 = 2;
pub(super) const PENDING: usize = 0x800;

/// One for each event queue.
const VECTORS: usize = 8;

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
    pending: u32,
}

impl Default for Vectors {
    /// At power-on all are masked.
    fn default() -> Self {
        Self {
            table: [[0, 0, 0, MASKED]; VECTORS],
            pending: 0,
        }
    }
}

impl Vectors {
    /// The value of a word of the window; `own`: vectors whose pending bits are visible.
    pub(super) fn get(&self, at: usize, own: u32) -> u32 {
        match (at, self.table.get(at / ENTRY)) {
            (PENDING, _) => self.pending & own,
            (_, Some(entry)) => entry[at % ENTRY / 4],
            _ => 0,
        }
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

    /// Of these vectors, n is the host's n, and is not masked.
    pub(super) fn program(&mut self, own: u32) {
        for (vector, entry) in (0..).zip(&mut self.table) {
            if own >> vector & 1 == 1 {
                (entry[DATA], entry[CONTROL]) = (vector, 0);
            }
        }
    }

    /// The owner of these vectors is reset: they are masked, and not pending.
    pub(super) fn mask(&mut self, own: u32) {
        self.pending &= !own;
        for (vector, entry) in self.table.iter_mut().enumerate() {
            if own >> vector & 1 == 1 {
                entry[CONTROL] = MASKED;
            }
        }
    }

    /// An interrupt request: it is pending until it may be sent.
    pub(super) fn ask(&mut self, vector: usize) {
        self.pending |= 1 << vector;
    }

    /// Takes one that may be sent, as far as the owners of vectors let them: its number, and the
    /// vector to signal to the host.
    pub(super) fn take(&mut self, allowed: &[bool]) -> Option<(usize, u16)> {
        let may = |&(vector, entry): &(usize, &[u32; 4])| {
            let is_allowed = allowed.get(vector).copied().unwrap_or(false);
            is_allowed && self.pending >> vector & 1 == 1 && entry[CONTROL] & MASKED == 0
        };
        let (vector, entry) = self.table.iter().enumerate().find(may)?;
        let data = entry[DATA] as u16;
        self.pending &= !(1 << vector);
        Some((vector, data))
    }

    /// A reset by register clears pending interrupts; the table is kept.
    pub(super) fn forget(&mut self) {
        self.pending = 0;
    }
}
