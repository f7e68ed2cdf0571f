//! The header of a TLP on the host bus (`hw/docs/layouts.md`, HIF).

/// A header, as four words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header(u128);

/// A field: its lowest bit, and how many it has.
type Field = (u32, u32);

/// Of a request to memory, bytes.
pub(crate) const ADDRESS: Field = (0, 64);
/// Of a register access: bytes into its BAR.
pub(crate) const OFFSET: Field = (0, 32);
/// Of a completion: the lower bits of its first byte's address.
pub(crate) const LOWER_ADDRESS: Field = (0, 7);
/// Of a completion: bytes left with this one, 0 is 4096.
pub(crate) const BYTE_COUNT: Field = (7, 12);
/// Of a register access and its completion.
pub(crate) const REQUESTER: Field = (32, 16);
/// DWs, 0 is 1024.
pub(crate) const LENGTH: Field = (64, 10);
pub(crate) const FIRST_BE: Field = (74, 4);
pub(crate) const LAST_BE: Field = (78, 4);
pub(crate) const BAR: Field = (82, 3);
pub(crate) const WRITE: Field = (85, 1);
pub(crate) const STATUS: Field = (86, 3);
pub(crate) const POISONED: Field = (89, 1);
pub(crate) const TAG: Field = (90, 10);
pub(crate) const FUNC: Field = (100, 8);

/// Status of a completion (PCIe 4.0, table 2-36).
pub(crate) const SUCCESSFUL: u64 = 0;
pub(crate) const UNSUPPORTED: u64 = 1;
pub(crate) const ABORTED: u64 = 4;

impl Header {
    pub(crate) fn from_words(words: [u32; 4]) -> Self {
        let join = |whole: u128, &word: &u32| whole << 32 | u128::from(word);
        Self(words.iter().rev().fold(0, join))
    }

    pub(crate) fn words(self) -> [u32; 4] {
        [0, 32, 64, 96].map(|at| (self.0 >> at) as u32)
    }

    pub(crate) fn get(self, (at, width): Field) -> u64 {
        (self.0 >> at & mask(width)) as u64
    }

    /// Sets a field, which was 0, to the bits of the value that fit.
    pub(crate) fn with(self, (at, width): Field, value: u64) -> Self {
        Self(self.0 | (u128::from(value) & mask(width)) << at)
    }

    /// All but these fields.
    pub(crate) fn without(self, fields: &[Field]) -> u128 {
        let clear = |rest: u128, &(at, width): &Field| rest & !(mask(width) << at);
        fields.iter().fold(self.0, clear)
    }

    /// DWs of data, or requested DWs.
    pub(crate) fn dws(self) -> usize {
        match self.get(LENGTH) as usize {
            0 => 1024,
            dws => dws,
        }
    }

    /// The bytes of a request, as offset from its address and length; `None` if they are not
    /// contiguous, which the bus permits (PCIe 4.0, 2.2.5) and no module here uses.
    pub(crate) fn enabled(self) -> Option<(usize, usize)> {
        let (first, last) = (self.get(FIRST_BE) as u8, self.get(LAST_BE) as u8);
        let begin = first.trailing_zeros() as usize;
        if self.dws() == 1 {
            let run = first.checked_shr(begin as u32).unwrap_or(0);
            let whole = run != 0 && run & (run + 1) == 0 && last == 0;
            return whole.then_some((begin, run.count_ones() as usize));
        }
        // The first reaches to the end of its DW, the last begins with its own.
        let whole = matches!(first, 8 | 12 | 14 | 15) && matches!(last, 1 | 3 | 7 | 15);
        let end = 4 * (self.dws() - 1) + last.count_ones() as usize;
        whole.then_some((begin, end - begin))
    }
}

fn mask(width: u32) -> u128 {
    (1 << width) - 1
}
