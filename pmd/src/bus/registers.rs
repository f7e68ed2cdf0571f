//! Register tables: one list generates the constants for a driver and the register dump for users.
//!
//! ```
//! # use pollux_pmd::bus::registers::registers;
//! registers! {
//!     /// Registers of the 82574L, by its datasheet.
//!     REGISTERS:
//!     CTRL 0x0000 "10.2.2.1" "device control" {
//!         CTRL_SLU = 1 << 6,
//!         CTRL_SPEED = 3 << 8,
//!     }
//!     RDT 0x2818 [2; 0x100] "10.2.5.9" "receive ring tail" {}
//!     MPC 0x4010 "10.2.7" "rx_missed", clears {}
//! }
//! ```
//!
//! generates the [`Register`]s `CTRL`, `RDT` (two instances, 0x100 bytes apart) and `MPC` (cleared
//! by a read), the masks `CTRL_SLU` and `CTRL_SPEED`, and a slice `REGISTERS` of all registers for
//! a [`Dump`].

use std::fmt;

use super::Bus;

/// A register of 32 bits, or an array of them.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Its name in the datasheet.
    pub name: &'static str,
    /// Offset in its window in bytes; of the first instance, if there are several.
    pub at: usize,
    /// Number of instances.
    pub count: usize,
    /// Bytes from one instance to the next.
    pub step: usize,
    /// The section of the datasheet.
    pub section: &'static str,
    /// Short description.
    pub text: &'static str,
    /// A read changes it, so that only its owner may read it.
    pub clears: bool,
    /// Fields, as far as the driver knows them.
    pub fields: &'static [Field],
}

/// A bit field of a register.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name of its constant: the register's name and its own.
    pub name: &'static str,
    /// Mask of contiguous bits.
    pub mask: u32,
}

impl Register {
    /// Offset of instance `n` in bytes.
    #[must_use]
    #[inline]
    pub const fn of(&self, n: usize) -> usize {
        debug_assert!(n < self.count);
        self.at + n * self.step
    }
}

/// Formats the current contents of the registers of a table, one line each. Omits registers that a
/// read changes.
pub struct Dump<'a, B> {
    /// The window of the registers.
    pub bus: &'a B,
    /// Offset of the table in the window, in bytes.
    pub base: usize,
    /// The registers.
    pub table: &'a [Register],
}

impl<B: Bus> fmt::Display for Dump<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for register in self.table.iter().filter(|register| !register.clears) {
            for n in 0..register.count {
                let (at, name) = (self.base + register.of(n), register.name);
                let name = match register.count {
                    1 => name.into(),
                    _ => format!("{name}{n}"),
                };
                let value = self.bus.read32(at);
                let text = register.text;
                write!(f, "{at:#07x} {name:<8} {value:#010x}  {text}")?;
                for field in register.fields {
                    write_field(f, register, field, value)?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

/// Prints a set bit by its name, a number by name and value. Omits zeros.
fn write_field(
    f: &mut fmt::Formatter<'_>,
    register: &Register,
    field: &Field,
    value: u32,
) -> fmt::Result {
    let number = (value & field.mask) >> field.mask.trailing_zeros().min(31);
    let own = field.name.strip_prefix(register.name).unwrap_or(field.name);
    let own = own.trim_start_matches('_');
    match number {
        0 => Ok(()),
        _ if field.mask.is_power_of_two() => write!(f, " {own}"),
        _ => write!(f, " {own}={number:#x}"),
    }
}

/// Makes the constants and the table of a device's registers: see
/// [`bus::registers`](crate::bus::registers).
#[macro_export]
macro_rules! registers {
    (
        $(#[$doc:meta])* $visible:vis $table:ident:
        $(
            $name:ident $at:literal $([$count:literal; $step:literal])? $section:literal
            $text:literal $(, $clears:ident)? {
                $($field:ident = $mask:expr),* $(,)?
            }
        )*
    ) => {
        $(
            #[doc = concat!($text, " (section ", $section, ").")]
            $visible const $name: $crate::bus::registers::Register =
                $crate::bus::registers::Register {
                    name: stringify!($name),
                    at: $at,
                    count: $crate::registers!(@or 1 $($count)?),
                    step: $crate::registers!(@or 4 $($step)?),
                    section: $section,
                    text: $text,
                    clears: $crate::registers!(@is $($clears)?),
                    fields: &[$($crate::bus::registers::Field {
                        name: stringify!($field),
                        mask: $field,
                    }),*],
                };
            $(
                #[doc = concat!("A part of `", stringify!($name), "`.")]
                $visible const $field: u32 = $mask;
            )*
        )*
        $(#[$doc])*
        $visible const $table: &[$crate::bus::registers::Register] = &[$($name),*];
    };
    (@or $default:literal) => { $default };
    (@or $default:literal $given:literal) => { $given };
    (@is) => { false };
    (@is clears) => { true };
}
pub use registers;

#[cfg(test)]
mod tests {
    use super::*;

    registers! {
        /// Several.
        SOME:
        CTRL 0x0 "1.1" "control" {
            CTRL_UP = 1 << 6,
            CTRL_SPEED = 3 << 8,
            CTRL_RESET = 1 << 26,
        }
        TAIL 0x10 [2; 0x8] "1.2" "tail" {}
        MISSED 0x1c "1.3" "missed frames", clears {}
    }

    /// Registers that contain their own offset.
    #[derive(Clone)]
    struct Places;

    impl Bus for Places {
        fn len(&self) -> usize {
            0x20
        }
        fn read8(&self, at: usize) -> u8 {
            at as u8
        }
        fn read16(&self, at: usize) -> u16 {
            at as u16
        }
        fn read32(&self, at: usize) -> u32 {
            at as u32 | CTRL_UP | CTRL_SPEED
        }
        fn write8(&self, _: usize, _: u8) {}
        fn write16(&self, _: usize, _: u16) {}
        fn write32(&self, _: usize, _: u32) {}
    }

    #[test]
    fn a_table_prints_itself_and_leaves_what_reading_changes() {
        assert_eq!(MISSED.at, 0x1c);
        let dump = Dump {
            bus: &Places,
            base: 0,
            table: SOME,
        };
        assert_eq!(
            dump.to_string(),
            "0x00000 CTRL     0x00000340  control UP SPEED=0x3\n\
             0x00010 TAIL0    0x00000350  tail\n\
             0x00018 TAIL1    0x00000358  tail\n"
        );
        assert_eq!(CTRL_RESET, 1 << 26);
    }
}
