//! Types of a register map.

/// A register of 32 bits, or an array of them. A register of 64 bits is two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name.
    pub name: &'static str,
    /// Its offset in its block, in bytes; of the first, if there are several.
    pub at: usize,
    /// Their number.
    pub count: usize,
    /// Bytes from one to the next.
    pub step: usize,
    /// Values of the known bits after a reset.
    pub reset: u32,
    /// Bits whose reset value the map defines.
    pub known: u32,
    /// Bits that keep what is written.
    pub writable: u32,
    /// Bits that the card sets, and a write of 1 clears.
    pub clears: u32,
}

impl Register {
    /// Offset of number `n` of an array in its block.
    #[must_use]
    pub const fn of(&self, n: usize) -> usize {
        self.at + n * self.step
    }

    /// The index of the register at an offset, if any.
    #[must_use]
    pub fn find(&self, at: usize) -> Option<usize> {
        let from = at.checked_sub(self.at)?;
        (from.is_multiple_of(self.step) && from / self.step < self.count)
            .then_some(from / self.step)
    }
}

/// A block of registers, or an array of them.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: u32,
    /// Its address in BAR 0; of the first, if there are several.
    pub at: usize,
    /// Their number.
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
    /// of tables, whose reset values the map does not define, take effect by words.
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
