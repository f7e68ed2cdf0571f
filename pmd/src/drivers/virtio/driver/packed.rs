//! Driver's half of a packed ring: virtio 1.2 section 2.8.

use pollux_mempool::Mbuf;

use super::{Posted, Ring, nothing_posted, posted_buffers};
use crate::drivers::virtio::areas::RingMemory;
use crate::drivers::virtio::packed::{Packed, Position};
use crate::drivers::virtio::split::NEXT;
use crate::drivers::virtio::{Broken, Piece};

/// Ids are reused in the order of their return. If the device uses buffers in order, they count up;
/// otherwise `order` stores them.
pub(super) struct PackedRing {
    ring: Packed,
    /// Indexed by id.
    posted: Box<[Posted]>,
    /// Free ids, from `take` to `give`. Unused on an in-order ring.
    order: Box<[u16]>,
    in_order: bool,
    /// Slots of `order`: of the next id to be taken, and of the next to be returned.
    take: u32,
    give: u32,
    /// Number of taken ids.
    in_flight: u32,
    free: u32,
    /// Position of the next descriptor to be written, and of the next that the device will use.
    next: Position,
    done: Position,
    /// Position of the first posted descriptor that is not published, and the word that publishes
    /// it and the others.
    pending: Option<(Position, u64)>,
}

impl PackedRing {
    #[inline(always)]
    fn step(&self, slot: u32) -> u32 {
        if slot + 1 == u32::from(self.ring.size()) {
            0
        } else {
            slot + 1
        }
    }

    #[inline(always)]
    fn take_id(&mut self) -> u16 {
        let slot = self.take;
        self.take = self.step(slot);
        self.in_flight += 1;
        if self.in_order {
            slot as u16
        } else {
            self.order[slot as usize]
        }
    }

    #[inline(always)]
    fn give_id(&mut self, id: u16) {
        let slot = self.give;
        if !self.in_order {
            self.order[slot as usize] = id;
        }
        self.give = self.step(slot);
        self.in_flight -= 1;
    }

    /// Writes the word that makes a head available, unless it is the first of a burst: that one is
    /// held back, so that the device sees the burst as a whole.
    #[inline(always)]
    fn make_available(&mut self, head: Position, word: u64) {
        if self.pending.is_none() {
            self.pending = Some((head, word));
        } else {
            self.ring.publish(head, word);
        }
    }

    #[inline(always)]
    fn remember(&mut self, id: u16, mbuf: Mbuf, descriptors: u16) {
        let posted = &mut self.posted[usize::from(id)];
        posted.mbuf = Some(mbuf);
        posted.descriptors = descriptors;
        self.free -= u32::from(descriptors);
    }

    /// Takes back the buffer of that id, if one was posted.
    #[inline(always)]
    fn take_back(&mut self, id: u16) -> Result<Mbuf, Broken> {
        let posted = self.posted.get_mut(usize::from(id)).ok_or(Broken)?;
        let mbuf = posted.mbuf.take().ok_or(Broken)?;
        let descriptors = posted.descriptors;
        self.give_id(id);
        self.free += u32::from(descriptors);
        // The device skips the rest of the chain (section 2.8.6).
        self.done = self.ring.after(self.done, descriptors);
        Ok(mbuf)
    }

    #[inline(always)]
    fn look(&self) -> Option<(u16, u32)> {
        // With nothing in flight the slot holds the state of the previous lap.
        if self.in_flight == 0 {
            return None;
        }
        self.ring.used(self.done)
    }
}

impl Ring for PackedRing {
    fn new(memory: &RingMemory, in_order: bool) -> Self {
        let ring = Packed::new(memory);
        ring.quiet_device();
        let start = Position::START;
        Self {
            posted: nothing_posted(ring.size()),
            order: (0..ring.size()).collect(),
            in_order,
            take: 0,
            give: 0,
            in_flight: 0,
            free: ring.size().into(),
            next: start,
            done: start,
            pending: None,
            ring,
        }
    }

    #[inline(always)]
    fn size(&self) -> usize {
        usize::from(self.ring.size())
    }

    #[inline(always)]
    fn free(&self) -> usize {
        self.free as usize
    }

    fn buffers(&self) -> usize {
        posted_buffers(&self.posted)
    }

    #[inline(always)]
    fn post(&mut self, mbuf: Mbuf, piece: Piece, flags: u16) {
        let (id, at) = (self.take_id(), self.next);
        self.remember(id, mbuf, 1);
        self.ring.write_address(at, piece.address);
        self.make_available(at, Packed::available_word(at, piece.len, id, flags));
        self.next = self.ring.after(at, 1);
    }

    fn post_chain(&mut self, mbuf: Mbuf, pieces: &[Piece]) {
        let id = self.take_id();
        self.remember(id, mbuf, pieces.len() as u16);
        let (head, mut head_word) = (self.next, 0);
        for (i, &piece) in pieces.iter().enumerate() {
            let at = self.next;
            let flags = if i + 1 == pieces.len() { 0 } else { NEXT };
            let word = Packed::available_word(at, piece.len, id, flags);
            self.ring.write_address(at, piece.address);
            if i == 0 {
                head_word = word;
            } else {
                // The device does not read it before it has seen the head (section 2.8.8).
                self.ring.publish(at, word);
            }
            self.next = self.ring.after(at, 1);
        }
        self.make_available(head, head_word);
    }

    fn in_table(piece: Piece, _: usize, _: usize) -> [u64; 2] {
        // The whole table, in its order; id and other flags have no meaning (section 2.8.7).
        [piece.address, piece.len.into()]
    }

    #[inline(always)]
    fn publish(&mut self) {
        if let Some((at, word)) = self.pending.take() {
            self.ring.publish(at, word);
        }
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
        let Some((id, len)) = self.look() else {
            return Ok(None);
        };
        if self.in_order && u32::from(id) != self.give {
            return Err(Broken);
        }
        Ok(Some((self.take_back(id)?, len)))
    }

    fn take_posted(&mut self) -> Box<[Posted]> {
        std::mem::take(&mut self.posted)
    }

    #[inline(always)]
    fn complete(&mut self, mut done: impl FnMut(Mbuf)) -> Result<(), Broken> {
        while let Some((id, _)) = self.look() {
            if !self.in_order {
                done(self.take_back(id)?);
                continue;
            }
            // The device may name only the last buffer of several (section 2.8.7).
            if id >= self.ring.size() {
                return Err(Broken);
            }
            loop {
                let oldest = self.give as u16;
                done(self.take_back(oldest)?);
                if oldest == id {
                    break;
                }
            }
        }
        Ok(())
    }
}
