//! Buffers that are the user's all the time.

use std::collections::VecDeque;

use pollux_mempool::{Mbuf, Mempool};

/// How many, at most.
const COUNT: usize = 16;

/// What each byte of them is.
const BYTE: u8 = 0xc3;

/// Buffers that no device is ever told of, full to their first and last bytes: they lie between
/// those that it is told of.
#[derive(Default)]
pub(super) struct Kept(VecDeque<Mbuf>);

impl Kept {
    /// Takes another, if the pool has one, and gives the oldest back.
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

    /// Whether nobody has written to them.
    pub(super) fn is_whole(&self) -> bool {
        let is_ours = |mbuf: &Mbuf| mbuf.data().iter().all(|&byte| byte == BYTE);
        self.0.iter().all(is_ours)
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
        let mut kept = Kept::default();
        (0..3).for_each(|_| kept.exchange(&pool));
        assert_eq!((kept.0.len(), pool.available()), (2, 0), "of a pool of two");
        assert!(kept.is_whole());
        for at in [0, pool.data_room() - 1] {
            let mbuf = &mut kept.0[0];
            mbuf.data_mut()[at] ^= 1;
            assert!(!kept.is_whole());
            kept.0[0].data_mut()[at] ^= 1;
            assert!(kept.is_whole());
        }
        (0..COUNT).for_each(|_| kept.exchange(&pool));
        assert_eq!(pool.available() + kept.0.len(), 2);
        drop(kept);
        assert_eq!(pool.available(), 2);
    }
}
