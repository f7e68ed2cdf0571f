//! Canary buffers: memory that a confined device must not write.

use std::collections::VecDeque;

use pollux_mempool::{Mbuf, Mempool};

/// Most canary buffers at a time.
const COUNT: usize = 16;

/// Value of each byte of a canary.
const BYTE: u8 = 0xc3;

/// Buffers that are never posted to a device, filled from the first to the last byte. They lie
/// between posted ones in the pool's region.
#[derive(Default)]
pub(super) struct Canaries(VecDeque<Mbuf>);

impl Canaries {
    /// Allocates a buffer, if the pool has one, and frees the oldest.
    pub(super) fn exchange(&mut self, pool: &Mempool) {
        if self.0.len() == COUNT {
            self.0.pop_front();
        }
        self.0.extend(pool.alloc().map(|mut mbuf| {
            let (head, tail) = (mbuf.headroom(), mbuf.tailroom());
            let _ = mbuf.append(tail);
            let _ = mbuf.prepend(head);
            mbuf.data_mut().fill(BYTE);
            mbuf
        }));
    }

    /// Whether all bytes have their value.
    pub(super) fn is_intact(&self) -> bool {
        let is_intact = |mbuf: &Mbuf| mbuf.data().iter().all(|&byte| byte == BYTE);
        self.0.iter().all(is_intact)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ports::pool;

    #[test]
    fn one_byte_beside_a_frame_is_seen() {
        let pool = pool(2, 2048);
        let mut canaries = Canaries::default();
        (0..3).for_each(|_| canaries.exchange(&pool));
        assert_eq!(
            (canaries.0.len(), pool.available()),
            (2, 0),
            "of a pool of two"
        );
        assert!(canaries.is_intact());
        for at in [0, pool.data_room() - 1] {
            let mbuf = &mut canaries.0[0];
            mbuf.data_mut()[at] ^= 1;
            assert!(!canaries.is_intact());
            canaries.0[0].data_mut()[at] ^= 1;
            assert!(canaries.is_intact());
        }
        (0..COUNT).for_each(|_| canaries.exchange(&pool));
        assert_eq!(pool.available() + canaries.0.len(), 2);
        drop(canaries);
        assert_eq!(pool.available(), 2);
    }
}
