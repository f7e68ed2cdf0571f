//! What a register map is made of.

/// A register of 32 bits, or several of a kind. Of one of 64 bits there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name.
    pub name: &'static str,
    /// Where it is in its block, in bytes; the first, if there are several.
    pub at: usize,
    /// How many there are.
    pub count: usize,
    /// Bytes from one to the next.
    pub step: usize,
    /// What the known bits hold after a reset.
    pub reset: u32,
    /// Bits of which the map says what they hold after a reset.
    pub known: u32,
    /// Bits that keep what is written.
    pub writable: u32,
    /// Bits that the card sets, and a write of 1 clears.
    pub clears: u32,
}

impl Register {
    /// Where number `n` of several is in its block.
    #[must_use]
    pub const fn of(&self, n: usize) -> usize {
        self.at + n * self.step
    }

    /// Which of them, if any, is at that place.
    #[must_use]
    pub fn find(&self, at: usize) -> Option<usize> {
        let from = at.checked_sub(self.at)?;
        (from.is_multiple_of(self.step) && from / self.step < self.count)
            .then_some(from / self.step)
    }
}

/// A block of registers, or several of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: u32,
    /// Where it is in BAR 0; the first, if there are several.
    pub at: usize,
    /// How many there are.
    pub count: usize,
    /// Bytes from one to the next.
    pub step: usize,
    /// Bytes in it.
    pub size: usize,
    /// Its registers.
    pub registers: &'static [Register],
}

impl Block {
    /// The high half of a register of 64 bits whose low half this is.
    #[must_use]
    pub fn high_half(&self, low: &Register) -> Option<&'static Register> {
        let is_high = |name: &str| name.strip_suffix("_HIGH") == Some(low.name);
        self.registers.iter().find(|other| is_high(other.name))
    }

    /// Whether a register is a setting of 64 bits, or its high half: it takes effect as a whole. Rows
    /// of tables, of which the map does not say what they hold after a reset, do so by words.
    #[must_use]
    pub fn takes_effect_as_one(&self, register: &Register) -> bool {
        let is_half = self.high_half(register).is_some() || register.name.ends_with("_HIGH");
        is_half && register.writable != 0 && register.known != 0
    }
}

/// Makes a module of constants for each block, and the list of them.
macro_rules! registers {
    ($(
        $block:ident $kind:literal $base:literal [$blocks:literal; $stride:literal] $size:literal {
            $($name:ident $at:literal [$count:literal; $step:literal]
                [$reset:literal $known:literal $writable:literal $clears:literal])*
        }
    )*) => {
        $(
            pub mod $block {
                use crate::map::{Block, Register};

                $(
                    pub const $name: Register = Register {
                        name: stringify!($name),
                        at: $at,
                        count: $count,
                        step: $step,
                        reset: $reset,
                        known: $known,
                        writable: $writable,
                        clears: $clears,
                    };
                )*
                pub const THIS: Block = Block {
                    name: stringify!($block),
                    kind: $kind,
                    at: $base,
                    count: $blocks,
                    step: $stride,
                    size: $size,
                    registers: &[$($name),*],
                };
            }
        )*
        pub const BLOCKS: &[$crate::map::Block] = &[$($block::THIS),*];
    };
}
pub(crate) use registers;
