//! PCI configuration space and its capabilities.

use std::fs;

use super::Function;
use crate::bus::{BusError, Device};

/// A copy of configuration space: 64 bytes (all that sysfs shows to users other than root), 256, or
/// 4096 (PCI Express).
///
/// All queries are answered from the copy, so that a device that changes its answers, or whose
/// lists are circular, cannot do harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSpace(Vec<u32>);

/// Location of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Capability ID (PCI Code and ID Assignment, sections 2 and 3).
    pub id: u16,
    /// Offset in configuration space, in bytes.
    pub at: u16,
}

/// MSI-X: message-signalled interrupts (PCI 3.0 section 6.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsiX {
    /// Entries of its table.
    pub vectors: u16,
    /// BAR of the table, and the offset in it.
    pub table: (u8, u32),
    /// BAR of the pending bits, and the offset in it.
    pub pending: (u8, u32),
}

/// Properties of a PCI Express function (PCI Express 5.0 section 7.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Express {
    /// Maximum payload size of a packet that it supports, in bytes.
    pub max_payload: u16,
    /// Whether it supports function level reset.
    pub function_reset: bool,
}

/// Virtual functions (PCI Express 5.0 section 9.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrIov {
    /// Maximum number.
    pub total: u16,
    /// Current number.
    pub enabled: u16,
    /// Distance of the first one's address from the physical function's.
    pub offset: u16,
    /// Distance between two.
    pub stride: u16,
    /// Device ID of each.
    pub device: u16,
}

/// Length of configuration space, without and with the PCI Express extension.
const CONVENTIONAL: u16 = 256;
const EXTENDED: u16 = 4096;
/// Capabilities are located behind the header (PCI 3.0 section 6.7).
const HEADER: u16 = 0x40;

const MSI_X: u16 = 0x11;
const EXPRESS: u16 = 0x10;
const VENDOR: u16 = 0x09;
const SR_IOV: u16 = 0x10;

impl ConfigSpace {
    /// Reads the configuration space of a device.
    ///
    /// # Errors
    /// The read fails.
    pub fn of<D: Device>(device: &D) -> Result<Self, BusError> {
        let mut words = Vec::new();
        for at in (0..EXTENDED).step_by(4) {
            match device.config(at) {
                Ok(word) => words.push(word),
                Err(BusError::NoConfig { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Self(words))
    }

    /// What sysfs shows of a function's configuration space; empty if it cannot be read.
    #[must_use]
    pub fn look(function: &Function) -> Self {
        let bytes = fs::read(function.folder().join("config")).unwrap_or_default();
        let (words, _) = bytes.as_chunks();
        let words = words.iter().take(usize::from(EXTENDED) / 4);
        Self(words.map(|&word| u32::from_le_bytes(word)).collect())
    }

    /// The 32 bits at `at`, which is a multiple of four.
    #[must_use]
    pub fn word(&self, at: u16) -> Option<u32> {
        let is_word = at.is_multiple_of(4);
        let word = self.0.get(usize::from(at) / 4).copied();
        word.filter(|_| is_word)
    }

    /// The capabilities, in the order of the device's list.
    #[must_use]
    pub fn capabilities(&self) -> Vec<Capability> {
        /// In the command and status word: the list exists (section 6.2.3).
        const HAS_LIST: u32 = 1 << 20;
        if self.word(0x04).is_none_or(|word| word & HAS_LIST == 0) {
            return Vec::new();
        }
        let first = self.word(0x34).unwrap_or_default() as u16;
        self.list(first, HEADER, CONVENTIONAL, |word| {
            (word as u16 & 0xff, (word >> 8) as u16 & 0xff)
        })
    }

    /// The extended capabilities of PCI Express, a list of their own (section 7.6).
    #[must_use]
    pub fn extended_capabilities(&self) -> Vec<Capability> {
        let found = self.list(CONVENTIONAL, CONVENTIONAL, EXTENDED, |word| {
            (word as u16, (word >> 20) as u16)
        });
        // A header of all zeros or all ones means that the list is empty.
        found
            .into_iter()
            .filter(|capability| !matches!(capability.id, 0 | 0xffff))
            .collect()
    }

    /// Walks a list: `read` decodes the ID of a capability and the offset of the next one from its
    /// first word. Ends at an offset outside the list's area, and after as many entries as fit into
    /// it.
    fn list(
        &self,
        first: u16,
        low: u16,
        high: u16,
        read: impl Fn(u32) -> (u16, u16),
    ) -> Vec<Capability> {
        let mut found = Vec::new();
        let mut next = first;
        for _ in 0..(high - low) / 4 {
            // The two lowest bits are reserved.
            let at = next & !3;
            if !(low..high).contains(&at) {
                break;
            }
            let Some(word) = self.word(at) else {
                break;
            };
            let id;
            (id, next) = read(word);
            found.push(Capability { id, at });
        }
        found
    }

    fn find(&self, id: u16) -> Option<u16> {
        let found = self.capabilities();
        found
            .iter()
            .find(|found| found.id == id)
            .map(|found| found.at)
    }

    /// Offsets of the vendor-specific capabilities.
    #[must_use]
    pub fn vendor_capabilities(&self) -> Vec<u16> {
        let vendor = |found: &Capability| (found.id == VENDOR).then_some(found.at);
        self.capabilities().iter().filter_map(vendor).collect()
    }

    /// Its MSI-X capability.
    #[must_use]
    pub fn msi_x(&self) -> Option<MsiX> {
        let at = self.find(MSI_X)?;
        let place = |word: u32| (word as u8 & 7, word & !7);
        Some(MsiX {
            vectors: ((self.word(at)? >> 16) as u16 & 0x7ff) + 1,
            table: place(self.word(at + 4)?),
            pending: place(self.word(at + 8)?),
        })
    }

    /// Its PCI Express properties, if it is a PCI Express function.
    #[must_use]
    pub fn express(&self) -> Option<Express> {
        let capabilities = self.word(self.find(EXPRESS)? + 4)?;
        Some(Express {
            max_payload: 128 << (capabilities & 7),
            function_reset: capabilities >> 28 & 1 == 1,
        })
    }

    /// Its virtual functions, if it supports any.
    #[must_use]
    pub fn sr_iov(&self) -> Option<SrIov> {
        let found = self.extended_capabilities();
        let at = found.iter().find(|found| found.id == SR_IOV)?.at;
        let halves = |at| self.word(at).map(|word| (word as u16, (word >> 16) as u16));
        let (offset, stride) = halves(at + 0x14)?;
        let enabled = halves(at + 0x08)?.0 & 1 == 1;
        Some(SrIov {
            total: halves(at + 0x0c)?.1,
            enabled: if enabled { halves(at + 0x10)?.0 } else { 0 },
            offset,
            stride,
            device: halves(at + 0x18)?.1,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Configuration space of an igb: power management, MSI-X, PCI Express, SR-IOV.
    fn igb() -> ConfigSpace {
        let mut words = vec![0; 1024];
        for (at, word) in [
            (0x00, 0x10c9_8086),
            (0x04, 0x0010_0007),
            (0x34, 0x40),
            (0x40, 0xc823_5001),
            (0x50, 0x0000_7009),
            (0x70, 0x8009_a011),
            (0x74, 0x0000_0003),
            (0x78, 0x0000_2003),
            (0xa0, 0x0002_0010),
            (0xa4, 0x1000_0002),
            (0x100, 0x1402_0001),
            (0x140, 0x1601_0003),
            (0x160, 0x0001_0010),
            (0x168, 0x0000_0001),
            (0x16c, 0x0008_0008),
            (0x170, 0x0000_0002),
            (0x174, 0x0002_0180),
            (0x178, 0x10ca_0000),
        ] {
            words[at / 4] = word;
        }
        ConfigSpace(words)
    }

    #[test]
    fn capabilities_are_found() {
        let config = igb();
        let ids = |list: Vec<Capability>| list.iter().map(|found| found.id).collect::<Vec<_>>();
        assert_eq!(ids(config.capabilities()), [0x01, 0x09, 0x11, 0x10]);
        assert_eq!(ids(config.extended_capabilities()), [0x01, 0x03, 0x10]);
        assert_eq!(config.vendor_capabilities(), [0x50]);
        let msi_x = config.msi_x().unwrap();
        assert_eq!(
            (msi_x.vectors, msi_x.table, msi_x.pending),
            (10, (3, 0), (3, 0x2000))
        );
        let express = config.express().unwrap();
        assert_eq!((express.max_payload, express.function_reset), (512, true));
        let functions = SrIov {
            total: 8,
            enabled: 2,
            offset: 0x180,
            stride: 2,
            device: 0x10ca,
        };
        assert_eq!(config.sr_iov(), Some(functions));
        assert_eq!((config.word(2), config.word(4096)), (None, None));
    }

    #[test]
    fn as_much_is_told_as_was_read() {
        let short = ConfigSpace(igb().0[..16].to_vec());
        assert_eq!(short.word(0), Some(0x10c9_8086));
        assert_eq!((short.capabilities(), short.msi_x()), (Vec::new(), None));
        let conventional = ConfigSpace(igb().0[..64].to_vec());
        assert!(conventional.express().is_some() && conventional.sr_iov().is_none());
        assert!(ConfigSpace(Vec::new()).capabilities().is_empty());
    }

    #[test]
    fn no_list_is_endless() {
        for (at, word) in [
            (0x70, 0x8009_7011), // a loop of one entry
            (0x70, 0x8009_4011), // back to the first
            (0x70, 0x8009_3411), // into the header
            (0x34, 0xff),
            (0x34, 0),
            (0x140, 0x1401_0003),
            (0x140, 0x1001_0003),
            (0x140, 0xffff_ffff),
            (0x140, 0x0ff1_0003),
        ] {
            let mut config = igb();
            config.0[at / 4] = word;
            assert!(config.capabilities().len() <= 48);
            assert!(config.extended_capabilities().len() <= 960);
        }
        let gone = ConfigSpace(vec![u32::MAX; 1024]);
        assert!(gone.extended_capabilities().is_empty() && gone.msi_x().is_none());
        let _ = gone.capabilities();
    }
}
