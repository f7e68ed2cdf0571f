//! Base address registers (BARs) of a function, as sysfs shows them.

use super::Function;
use super::sysfs::text;

/// A BAR of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Its number; a 64-bit BAR takes the next number too.
    pub index: u8,
    /// Start address on the bus.
    pub start: u64,
    /// Size in bytes.
    pub len: u64,
    /// Its kind.
    pub kind: BarKind,
}

/// Kinds of BARs (PCI 3.0 section 6.2.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// I/O ports, which special instructions access: not usable by a program.
    Ports,
    /// Memory.
    Memory {
        /// The address has 64 bits.
        wide: bool,
        /// Reads have no side effect, and writes may be merged.
        prefetchable: bool,
    },
}

/// The kernel's flags of BARs (linux/ioport.h).
const PORTS: u64 = 0x100;
const MEMORY: u64 = 0x200;
const PREFETCHABLE: u64 = 0x2000;
const WIDE: u64 = 0x0010_0000;

impl Function {
    /// The BARs of the function.
    #[must_use]
    pub fn bars(&self) -> Vec<Bar> {
        let table = text(&self.folder().join("resource")).unwrap_or_default();
        // The ROM and the windows of a bridge follow these.
        let lines = table.lines().take(6);
        (0..)
            .zip(lines)
            .filter_map(|(index, line)| bar(index, line))
            .collect()
    }
}

/// Parses a line of the table: first and last address, and flags.
fn bar(index: u8, line: &str) -> Option<Bar> {
    let mut numbers = line.split_whitespace().map(|word| {
        let digits = word.strip_prefix("0x")?;
        u64::from_str_radix(digits, 16).ok()
    });
    let (start, last, flags) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let kind = match flags {
        flags if flags & PORTS != 0 => BarKind::Ports,
        flags if flags & MEMORY != 0 => BarKind::Memory {
            wide: flags & WIDE != 0,
            prefetchable: flags & PREFETCHABLE != 0,
        },
        _ => return None,
    };
    let len = last.checked_sub(start)?.checked_add(1)?;
    Some(Bar {
        index,
        start,
        len,
        kind,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;
    use crate::bus::pci::Sysfs;

    const TABLE: &str = "\
0x00000000febc0000 0x00000000febdffff 0x0000000000040200
0x000000000000c000 0x000000000000c01f 0x0000000000040101
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000008000000000 0x0000008000000fff 0x000000000014220c
junk
0x0000000000000005 0x0000000000000000 0x0000000000040200
0x00000000feb80000 0x00000000febbffff 0x0000000000046200
";

    #[test]
    fn windows_are_told() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("bus/pci/devices/0000:03:00.0");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("resource"), TABLE).unwrap();
        let sysfs = Sysfs::at(tree.path());
        let function = sysfs.function("03:00.0".parse().unwrap()).unwrap();
        let memory = |wide, prefetchable| BarKind::Memory { wide, prefetchable };
        let found: Vec<_> = function
            .bars()
            .iter()
            .map(|b| (b.index, b.len, b.kind))
            .collect();
        assert_eq!(
            found,
            [
                (0, 0x2_0000, memory(false, false)),
                (1, 32, BarKind::Ports),
                (3, 4096, memory(true, true)),
            ]
        );
        assert_eq!(function.bars()[2].start, 1 << 39);
    }
}
