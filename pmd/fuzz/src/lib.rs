//! Support code of the fuzz targets.

use pollux_mempool::region::PageSize;
use pollux_mempool::{Mempool, PoolConfig};

/// A fuzzer's input, read as numbers from the front; zeros behind its end.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Whether any input is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next `n` bytes, or the rest.
    pub fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    fn number<const N: usize>(&mut self) -> [u8; N] {
        let mut number = [0; N];
        let bytes = self.bytes(N);
        number[..bytes.len()].copy_from_slice(bytes);
        number
    }

    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.number())
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.number())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.number())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.number())
    }
}

/// A pool in normal pages: a target creates its pools once, and each run must leave them full.
pub fn pool(buffers: usize, data_room: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .expect("memory for a small pool")
}

/// Checks that all buffers have been returned.
pub fn assert_full(pool: &Mempool) {
    assert_eq!(pool.available(), pool.buffers());
}
