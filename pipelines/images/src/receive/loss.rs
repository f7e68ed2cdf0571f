//! What an image lacks: packets of a module, and rows of it.

use std::ops::Range;

/// Rows of a module that a packet is missing of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Number of the module.
    pub module: usize,
    /// Its rows.
    pub rows: Range<usize>,
}

/// Which packets of a module came, in the form of slsReceiver's files: bit `n % 8` of byte `n / 8`
/// for packet `n`, counted over both interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketMask([u8; 64]);

impl PacketMask {
    pub(super) fn new(packets: impl Iterator<Item = usize>) -> Self {
        let mut mask = [0; 64];
        for packet in packets {
            if let Some(byte) = mask.get_mut(packet / 8) {
                *byte |= 1 << (packet % 8);
            }
        }
        Self(mask)
    }

    /// Whether a packet came.
    #[must_use]
    pub fn has(&self, packet: usize) -> bool {
        let byte = self.0.get(packet / 8).copied();
        byte.is_some_and(|byte| byte >> (packet % 8) & 1 == 1)
    }

    /// Number of packets that came.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// The mask.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}
