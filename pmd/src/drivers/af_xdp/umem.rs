//! UMEM: maps addresses of the kernel to buffers of the pool.
//!
//! The pool's region is the UMEM, and the data room of each buffer is a chunk of it (the kernel's
//! Documentation/networking/af_xdp.rst, "UMEM"). The kernel writes a frame 256 bytes into its
//! chunk. Data rooms of 2048 or 4096 bytes are aligned chunks; others are declared unaligned, which
//! the kernel accepts in copy mode at any position.

use pollux_mempool::{BufferLayout, Burst, Mbuf, Mempool, PoolCache};

use super::abi::XDP_PACKET_HEADROOM;
use crate::ledger::Cause;

/// Chunk sizes that the kernel accepts: XDP_UMEM_MIN_CHUNK_SIZE to a page.
const SMALLEST: usize = 2048;
const LARGEST: usize = 4096;

/// Bit position of the frame's offset in the address of an unaligned chunk.
const OFFSET_SHIFT: u32 = libc::XSK_UNALIGNED_BUF_OFFSET_SHIFT as u32;
const ADDRESS: u64 = (1 << OFFSET_SHIFT) - 1;

/// The pool's memory as registered with the kernel.
#[derive(Clone)]
pub(super) struct Umem {
    pool: Mempool,
    base: usize,
    layout: BufferLayout,
    chunk: usize,
    /// Headroom that the pool guarantees in front of a frame beyond the kernel's own headroom.
    headroom: usize,
}

impl Umem {
    /// # Errors
    /// Why the pool cannot be a UMEM, and the required setting.
    pub(super) fn new(pool: &Mempool) -> Result<Self, String> {
        let stride = pool.stride();
        if stride < SMALLEST {
            return Err(format!(
                "the pool's buffers of {stride} B (headroom and data room) are too small: AF_XDP \
                 receives into buffers of {SMALLEST} B and more; set a larger data_room"
            ));
        }
        let chunk = stride.min(LARGEST);
        let headroom = (stride - pool.data_room()).saturating_sub(XDP_PACKET_HEADROOM);
        if headroom + XDP_PACKET_HEADROOM >= chunk {
            return Err(format!(
                "the pool's headroom leaves nothing of the {chunk} B that AF_XDP can use of each \
                 buffer; set a smaller headroom"
            ));
        }
        Ok(Self {
            base: pool.region().as_ptr().addr().get(),
            layout: pool.layout(),
            chunk,
            headroom,
            pool: pool.clone(),
        })
    }

    pub(super) fn pool(&self) -> &Mempool {
        &self.pool
    }

    /// Whether chunks are powers of two and aligned to their size.
    pub(super) fn is_aligned(&self) -> bool {
        self.pool.stride() == self.chunk && self.chunk.is_power_of_two()
    }

    /// Longest fragment of a frame that a chunk can hold.
    pub(super) fn frame_room(&self) -> usize {
        self.chunk - XDP_PACKET_HEADROOM - self.headroom
    }

    /// Longest fragment of a frame that any buffer can hold for sending.
    pub(super) fn longest_piece(&self) -> usize {
        self.pool.data_room().min(self.chunk)
    }

    /// The registration request for the kernel.
    pub(super) fn registration(&self) -> libc::xdp_umem_reg {
        libc::xdp_umem_reg {
            addr: self.base as u64,
            len: self.layout.span() as u64,
            chunk_size: self.chunk as u32,
            headroom: self.headroom as u32,
            flags: if self.is_aligned() {
                0
            } else {
                libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG
            },
            tx_metadata_len: 0,
        }
    }

    /// Whether the kernel can send a frame, which has one segment, from its buffer.
    #[inline]
    pub(super) fn can_send(&self, mbuf: &Mbuf) -> bool {
        mbuf.pool_id() == self.pool.id() && (1..=self.chunk).contains(&mbuf.len())
    }

    /// Whether the kernel can send a fragment of a frame from its buffer.
    pub(super) fn can_send_piece(&self, bytes: &[u8]) -> bool {
        let offset = bytes.as_ptr().addr().wrapping_sub(self.base);
        offset < self.layout.span() && (1..=self.chunk).contains(&bytes.len())
    }

    /// A copy of a frame in the minimum number of buffers of the pool; `None` if these are not
    /// available.
    #[cold]
    pub(super) fn copy(&self, cache: &mut PoolCache, frame: &Mbuf) -> Option<Mbuf> {
        let (mut copy, mut at) = (None, 0);
        while at < frame.total_len() {
            let mut piece = if cache.pool().id() == self.pool.id() {
                cache.alloc()
            } else {
                self.pool.alloc()
            }?;
            let to = piece.append(self.longest_piece().min(frame.total_len() - at))?;
            at += frame.copy_to(at, to);
            match &mut copy {
                None => copy = Some(piece),
                Some(head) => Mbuf::chain(head, piece).ok()?,
            }
        }
        copy
    }

    /// Up to `n` free buffers: from the loop's cache if it belongs to the pool.
    #[inline]
    pub(super) fn alloc<const N: usize>(
        &self,
        cache: Option<&mut PoolCache>,
        burst: &mut Burst<N>,
        n: usize,
    ) {
        match cache {
            Some(cache) if cache.pool().id() == self.pool.id() => cache.alloc_burst(burst, n),
            _ => self.pool.alloc_burst(burst, n),
        };
    }
}

/// The posted buffers of a ring, indexed by their number in the pool.
pub(super) struct Posted {
    umem: Umem,
    buffers: Box<[Option<Mbuf>]>,
    count: usize,
}

impl Posted {
    pub(super) fn new(umem: Umem) -> Self {
        let buffers = (0..umem.pool.buffers()).map(|_| None).collect();
        Self {
            umem,
            buffers,
            count: 0,
        }
    }

    pub(super) fn umem(&self) -> &Umem {
        &self.umem
    }

    /// Number of posted buffers.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns all the buffers, to be quarantined until the kernel has released them.
    pub(super) fn surrender(&mut self) -> Box<[Option<Mbuf>]> {
        self.count = 0;
        std::mem::take(&mut self.buffers)
    }

    /// Stores a segment; returns one of another pool.
    #[inline]
    fn keep(&mut self, mbuf: Mbuf) -> Result<(), Mbuf> {
        let slot = self.buffers.get_mut(mbuf.index() as usize);
        let Some(slot) = slot.filter(|_| mbuf.pool_id() == self.umem.pool.id()) else {
            return Err(mbuf);
        };
        // Each buffer has one owner, so the slot was empty.
        *slot = Some(mbuf);
        self.count += 1;
        Ok(())
    }

    /// The UMEM address that a kernel address denotes, and the number of the data room there, if
    /// there is one.
    #[inline]
    fn find(&self, address: u64) -> Option<(usize, usize)> {
        let place = (address & ADDRESS).saturating_add(address >> OFFSET_SHIFT) & ADDRESS;
        let place = place as usize;
        Some((place, self.umem.layout.index_at(place)?))
    }

    /// Takes a buffer back, if it is posted and passes the test.
    #[inline]
    fn take_if(&mut self, index: usize, test: impl FnOnce(&mut Mbuf) -> bool) -> Option<Mbuf> {
        let mbuf = self.buffers.get_mut(index)?.take_if(test)?;
        self.count -= 1;
        Some(mbuf)
    }

    /// Stores a free buffer for the kernel to receive into; returns its address for FILL.
    #[inline]
    pub(super) fn post(&mut self, mbuf: Mbuf) -> Option<u64> {
        let room = mbuf.data_offset() - mbuf.headroom();
        self.keep(mbuf).ok()?;
        Some(room as u64)
    }

    /// The fragment of a frame that the kernel reports at `address`, `len` bytes long.
    ///
    /// # Errors
    /// [`Cause::DeviceError`] if no buffer is posted there, or the length is impossible. A posted
    /// buffer returns to the pool.
    #[inline]
    pub(super) fn received(&mut self, address: u64, len: u32) -> Result<Mbuf, Cause> {
        let (offset, index) = self.find(address).ok_or(Cause::DeviceError)?;
        let taken = self.take_if(index, |_| true);
        let mut mbuf = taken.ok_or(Cause::DeviceError)?;
        // The buffer is fresh: its data starts, empty, behind its headroom. The kernel keeps at
        // least as much (see `headroom`).
        let skip = offset.checked_sub(mbuf.data_offset());
        let skip = skip.filter(|_| len > 0).ok_or(Cause::DeviceError)?;
        mbuf.append(skip + len as usize).ok_or(Cause::DeviceError)?;
        if mbuf.advance(skip) {
            Ok(mbuf)
        } else {
            Err(Cause::DeviceError)
        }
    }

    /// Stores a segment for the kernel to send; returns its address for TX and the number of its
    /// buffer.
    ///
    /// # Errors
    /// Returns a segment of another pool.
    #[inline]
    pub(super) fn send(&mut self, mbuf: Mbuf) -> Result<(u64, usize), Mbuf> {
        let (offset, index) = (mbuf.data_offset(), mbuf.index() as usize);
        self.keep(mbuf)?;
        Ok((offset as u64, index))
    }

    /// The segment at the address that it was sent from, and the number of its buffer; `None` if
    /// none is in flight there.
    #[inline]
    pub(super) fn sent(&mut self, address: u64) -> Option<(Mbuf, usize)> {
        let (offset, index) = self.find(address)?;
        // Sent from exactly this address, not from elsewhere in the same data room.
        let mbuf = self.take_if(index, |mbuf| mbuf.data_offset() == offset)?;
        Some((mbuf, index))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_mempool::PoolConfig;

    use super::*;

    fn umem(data_room: usize, headroom: usize) -> Result<Umem, String> {
        let config = PoolConfig {
            buffers: 2,
            data_room,
            headroom,
            ..PoolConfig::default()
        };
        Umem::new(&Mempool::new(config).unwrap())
    }

    #[test]
    fn the_pools_headroom_is_kept() {
        let aligned = umem(1920, 128).unwrap();
        assert!(aligned.is_aligned());
        assert_eq!((aligned.frame_room(), aligned.headroom), (1792, 0));
        let deep = umem(2048, 1024).unwrap();
        assert!(!deep.is_aligned());
        assert_eq!((deep.frame_room(), deep.headroom), (2048, 768));
        assert!(umem(1024, 128).is_err() && umem(64, 4096).is_err());
    }
}
