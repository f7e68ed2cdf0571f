//! What is looked at in a frame: the hash that frames are shared out by (section 7.1.1.7), and the
//! checksum. Of a UDP datagram over IPv4 without options, and of nothing else here.

use pollux_pmd::drivers::igb::registers::*;
use pollux_pmd::net::checksum::Checksum;

use super::Chip;

impl Chip {
    /// Whether the PHY was told anything since the last reset.
    #[must_use]
    pub fn was_phy_written(&self) -> bool {
        self.has(MDIC.at, MDIC_WRITE)
    }

    /// The queue of a frame.
    pub(super) fn hashed_queue(&self, frame: &[u8]) -> usize {
        if self.get(MRQC.at) & MRQC_MODE != 2 {
            return 0;
        }
        let hash = self.hash(frame).unwrap_or(0) as usize & 127;
        (self.get(RETA.of(hash / 4)) >> (8 * (hash % 4)) & 15) as usize
    }

    /// RSS hash of a UDP datagram.
    #[must_use]
    pub fn hash(&self, frame: &[u8]) -> Option<u32> {
        let is_udp = frame.get(12..15)? == [8, 0, 0x45] && frame.get(23)? == &17;
        let input = frame.get(26..38).filter(|_| is_udp)?;
        let key: Vec<u8> = (0..10)
            .flat_map(|i| self.get(RSSRK.of(i)).to_le_bytes())
            .collect();
        let mut window = u64::from_be_bytes(key.get(..8)?.try_into().ok()?);
        let mut hash = 0;
        for (byte, next) in input.iter().zip(key.get(8..)?) {
            for bit in (0..8).rev() {
                if byte & 1 << bit != 0 {
                    hash ^= (window >> 32) as u32;
                }
                window <<= 1;
            }
            window |= u64::from(*next);
        }
        Some(hash)
    }

    /// What a descriptor says of a frame (section 7.1.5.2): its RSS type and packet type, and its
    /// hash.
    pub(super) fn described(&self, frame: &[u8]) -> [u32; 2] {
        const HASH_UDP_IPV4: u32 = 7;
        const IPV4_UDP: u32 = 1 << 4 | 1 << 9;
        let is_udp = frame.get(12..15) == Some(&[8, 0, 0x45]) && frame.get(23) == Some(&17);
        let kind = if is_udp { IPV4_UDP } else { 0 };
        let shares = self.get(MRQC.at) & MRQC_MODE == 2 && self.has(RXCSUM.at, RXCSUM_HASH);
        match self.hash(frame).filter(|_| shares) {
            Some(hash) => [kind | HASH_UDP_IPV4, hash],
            None => [kind, 0],
        }
    }

    /// Status bits of a frame's UDP checksum: looked at, and wrong.
    pub(super) fn checked(&self, frame: &[u8]) -> u32 {
        const LOOKED_AT: u32 = 1 << 5;
        const WRONG: u32 = 1 << 29;
        let right = self
            .has(RXCSUM.at, RXCSUM_UDP_TCP)
            .then(|| udp_is_right(frame));
        match right.flatten() {
            None => 0,
            Some(true) => LOOKED_AT,
            Some(false) => LOOKED_AT | WRONG,
        }
    }
}

/// Whether the checksum of a datagram is right; `None` if there is none.
fn udp_is_right(frame: &[u8]) -> Option<bool> {
    let is_udp = frame.get(12..15)? == [8, 0, 0x45] && frame.get(23)? == &17;
    let octets = |at: usize| -> Option<[u8; 4]> { frame.get(at..at + 4)?.try_into().ok() };
    let len = u16::from_be_bytes(frame.get(38..40).filter(|_| is_udp)?.try_into().ok()?);
    let datagram = frame.get(34..34 + usize::from(len))?;
    datagram.get(6..8).filter(|sum| *sum != [0, 0])?;
    let (from, to) = (octets(26)?.into(), octets(30)?.into());
    let mut sum = Checksum::pseudo_v4(from, to, 17, len);
    sum.add(datagram);
    Some(sum.finish() == 0)
}
