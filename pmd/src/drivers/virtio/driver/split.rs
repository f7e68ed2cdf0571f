//! Driver's half of a split ring: virtio 1.2 section 2.7.

use pollux_mempool::Mbuf;

use super::{Posted, Ring, nothing_posted, posted_buffers};
use crate::drivers::virtio::areas::RingMemory;
use crate::drivers::virtio::split::{NEXT, Split, words};
use crate::drivers::virtio::{Broken, Piece};

/// Descriptors are reused in the order of their return. If the device uses buffers in order, that
/// is the order of the table, as section 2.7.8 requires; otherwise `order` stores it.
pub(super) struct SplitRing {
    ring: Split,
    /// Indexed by the first descriptor of the chain.
    posted: Box<[Posted]>,
    /// Free descriptors, from `taken` to `returned + size`. Unused on an in-order ring.
    order: Box<[u16]>,
    in_order: bool,
    /// Free-running counts of taken and of returned descriptors.
    taken: u32,
    returned: u32,
    /// Free-running counts of buffers: made available, taken back, and reported as used by the
    /// device.
    available: u32,
    used: u32,
    used_seen: u32,
}

impl SplitRing {
    /// Takes a free descriptor.
    #[inline(always)]
    fn take(&mut self) -> u16 {
        let slot = self.ring.slot(self.taken);
        self.taken = self.taken.wrapping_add(1);
        if self.in_order {
            slot
        } else {
            self.order[usize::from(slot)]
        }
    }

    /// Returns a descriptor.
    #[inline(always)]
    fn give(&mut self, descriptor: u16) {
        if !self.in_order {
            self.order[usize::from(self.ring.slot(self.returned))] = descriptor;
        }
        self.returned = self.returned.wrapping_add(1);
    }

    #[inline(always)]
    fn make_available(&mut self, head: u16, mbuf: Mbuf, descriptors: u16) {
        let posted = &mut self.posted[usize::from(head)];
        posted.mbuf = Some(mbuf);
        posted.descriptors = descriptors;
        let entry = self.ring.available(self.available);
        // On an in-order ring an entry mostly holds that already: then the device's copy of the
        // cache line stays valid.
        if entry.load(core::sync::atomic::Ordering::Relaxed) != head {
            entry.store(head, core::sync::atomic::Ordering::Relaxed);
        }
        self.available = self.available.wrapping_add(1);
    }

    /// Number of buffers that the device has reported as used since the last call; at most the
    /// posted ones.
    #[inline(always)]
    fn look(&mut self) -> Result<u32, Broken> {
        if self.used == self.used_seen {
            let more = u32::from(self.ring.used_index().wrapping_sub(self.used as u16));
            if more > self.available.wrapping_sub(self.used) {
                return Err(Broken);
            }
            self.used_seen = self.used.wrapping_add(more);
        }
        Ok(self.used_seen.wrapping_sub(self.used))
    }

    /// Takes back the buffer whose chain begins with `head`, if one was posted.
    #[inline(always)]
    fn take_back(&mut self, head: u16) -> Result<Mbuf, Broken> {
        let posted = self.posted.get_mut(usize::from(head)).ok_or(Broken)?;
        let mbuf = posted.mbuf.take().ok_or(Broken)?;
        let (mut left, mut next) = (posted.descriptors, posted.next);
        self.give(head);
        while left > 1 {
            self.give(next);
            next = self.posted[usize::from(next)].next;
            left -= 1;
        }
        self.used = self.used.wrapping_add(1);
        Ok(mbuf)
    }
}

impl Ring for SplitRing {
    fn new(memory: &RingMemory, in_order: bool) -> Self {
        let ring = Split::new(memory);
        ring.quiet_device();
        Self {
            posted: nothing_posted(ring.size()),
            order: (0..ring.size()).collect(),
            ring,
            in_order,
            taken: 0,
            returned: 0,
            available: 0,
            used: 0,
            used_seen: 0,
        }
    }

    #[inline(always)]
    fn size(&self) -> usize {
        usize::from(self.ring.size())
    }

    #[inline(always)]
    fn free(&self) -> usize {
        self.size() - self.taken.wrapping_sub(self.returned) as usize
    }

    fn buffers(&self) -> usize {
        posted_buffers(&self.posted)
    }

    #[inline(always)]
    fn post(&mut self, mbuf: Mbuf, piece: Piece, flags: u16) {
        let head = self.take();
        self.ring.write(head, piece, flags, 0);
        self.make_available(head, mbuf, 1);
    }

    fn post_chain(&mut self, mbuf: Mbuf, pieces: &[Piece]) {
        let head = self.take();
        let mut at = head;
        for (i, &piece) in pieces.iter().enumerate() {
            if i + 1 == pieces.len() {
                self.ring.write(at, piece, 0, 0);
            } else {
                let next = self.take();
                self.ring.write(at, piece, NEXT, next);
                self.posted[usize::from(at)].next = next;
                at = next;
            }
        }
        self.make_available(head, mbuf, pieces.len() as u16);
    }

    fn in_table(piece: Piece, i: usize, count: usize) -> [u64; 2] {
        // In the order of the table, which is a chain all the same (section 2.7.5.3).
        if i + 1 == count {
            words(piece, 0, 0)
        } else {
            words(piece, NEXT, i as u16 + 1)
        }
    }

    #[inline(always)]
    fn publish(&mut self) {
        self.ring.publish_available(self.available);
    }

    fn device_listens(&self) -> bool {
        self.ring.device_listens()
    }

    fn set_listening(&self, on: bool) {
        if on {
            self.ring.listen_to_device();
        } else {
            self.ring.quiet_device();
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Result<Option<(Mbuf, u32)>, Broken> {
        if self.look()? == 0 {
            return Ok(None);
        }
        let (id, len) = self.ring.read_used(self.used);
        let head = u16::try_from(id).map_err(|_| Broken)?;
        if self.in_order && head != self.ring.slot(self.returned) {
            return Err(Broken);
        }
        Ok(Some((self.take_back(head)?, len)))
    }

    fn take_posted(&mut self) -> Box<[Posted]> {
        std::mem::take(&mut self.posted)
    }

    #[inline(always)]
    fn complete(&mut self, mut done: impl FnMut(Mbuf)) -> Result<(), Broken> {
        if !self.in_order {
            while let Some((mbuf, _)) = self.pop()? {
                done(mbuf);
            }
            return Ok(());
        }
        // The index suffices: section 2.7.8 lets the device omit all entries but one.
        while self.look()? > 0 {
            done(self.take_back(self.ring.slot(self.returned))?);
        }
        Ok(())
    }
}
