//! Device's half of a split ring: virtio 1.2 section 2.7.

use std::sync::atomic::Ordering::Relaxed;

use super::{Chain, Direction, KIND, Pieces, Ring, Single};
use crate::drivers::virtio::areas::{QueueError, RingMemory};
use crate::drivers::virtio::split::{INDIRECT, NEXT, Split};
use crate::drivers::virtio::{Broken, Descriptor, RingFeatures};

pub(super) struct SplitRing {
    ring: Split,
    direction: Direction,
    /// Buffers may be described by tables.
    indirect: bool,
    /// In-order ring whose lengths are unused: only the last buffer of a burst gets a used entry.
    names_last: bool,
    /// Free-running counts of buffers: taken, seen as available, marked as used, and published as
    /// used.
    taken: u32,
    seen: u32,
    given: u32,
    published: u32,
    /// The buffer that was marked last.
    last: u16,
}

impl SplitRing {
    /// Number of available buffers; reads the index only if no more than `wanted` are known.
    #[inline(always)]
    fn ready(&mut self, wanted: usize) -> Result<usize, Broken> {
        if (self.seen.wrapping_sub(self.taken) as usize) < wanted {
            let more = self
                .ring
                .available_index()
                .wrapping_sub(self.published as u16);
            let seen = self.published.wrapping_add(more.into());
            // Neither more than the ring has descriptors, nor fewer than before.
            if more > self.ring.size() || more < self.seen.wrapping_sub(self.published) as u16 {
                return Err(Broken);
            }
            self.seen = seen;
        }
        Ok((self.seen.wrapping_sub(self.taken) as usize).min(wanted))
    }

    /// Takes the segments of the chain in a table; false if it is invalid.
    fn take_table(&self, at: Descriptor, pieces: &mut Pieces<'_>) -> bool {
        let Some(table) = pieces.table(at, self.ring.size()) else {
            return false;
        };
        let mut next = 0;
        // A chain longer than its table contains a loop.
        for _ in 0..table.count {
            let Some(descriptor) = table.entry(next).map(Descriptor::of_split) else {
                return false;
            };
            // Tables cannot be nested.
            if !pieces.take(descriptor) {
                return false;
            }
            if descriptor.flags & NEXT == 0 {
                return true;
            }
            next = descriptor.last.into();
        }
        false
    }

    /// The first descriptor of the buffer that is `ahead` of the taken ones.
    #[inline(always)]
    fn head(&self, ahead: usize) -> Result<u16, Broken> {
        let index = self.taken.wrapping_add(ahead as u32);
        let head = self.ring.available(index).load(Relaxed);
        if head < self.ring.size() {
            Ok(head)
        } else {
            Err(Broken)
        }
    }
}

impl Ring for SplitRing {
    type Mark = u32;

    fn new(
        memory: &RingMemory,
        features: RingFeatures,
        direction: Direction,
        base: u16,
    ) -> Result<Self, QueueError> {
        let ring = Split::new(memory);
        ring.quiet_driver();
        Ok(Self {
            ring,
            direction,
            indirect: features.indirect,
            names_last: features.in_order && direction == Direction::Read,
            taken: base.into(),
            seen: base.into(),
            given: base.into(),
            published: base.into(),
            last: 0,
        })
    }

    fn base(&self) -> u16 {
        self.taken as u16
    }

    fn size(&self) -> usize {
        usize::from(self.ring.size())
    }

    #[inline(always)]
    fn singles(&mut self, out: &mut [Single]) -> Result<usize, Broken> {
        let ready = self.ready(out.len())?;
        let flags = self.direction.flags();
        for (ahead, single) in out[..ready].iter_mut().enumerate() {
            let id = self.head(ahead)?;
            let descriptor = self.ring.read(id);
            if descriptor.flags & KIND != flags {
                return Ok(ahead);
            }
            *single = Single {
                piece: descriptor.piece,
                id,
            };
        }
        Ok(ready)
    }

    #[inline(always)]
    fn take(&mut self, n: usize) {
        self.taken = self.taken.wrapping_add(n as u32);
    }

    fn take_chain(&mut self, pieces: &mut Pieces<'_>) -> Result<Option<Chain>, Broken> {
        if self.ready(1)? == 0 {
            return Ok(None);
        }
        let id = self.head(0)?;
        self.take(1);
        let first = pieces.list.len();
        let (mut at, mut descriptors) = (id, 0);
        let sound = loop {
            let descriptor = self.ring.read(at);
            descriptors += 1;
            if descriptor.flags & INDIRECT != 0 {
                break self.indirect && self.take_table(descriptor, pieces);
            }
            if !pieces.take(descriptor) {
                break false;
            }
            if descriptor.flags & NEXT == 0 {
                break true;
            }
            at = descriptor.last;
            // A chain longer than the ring contains a loop.
            if descriptors == self.ring.size() || at >= self.ring.size() {
                break false;
            }
        };
        Ok(Some(Chain {
            id,
            descriptors,
            pieces: pieces.list.len() - first,
            sound,
        }))
    }

    fn mark(&self) -> u32 {
        self.taken
    }

    fn rewind(&mut self, mark: u32) {
        self.taken = mark;
    }

    #[inline(always)]
    fn give(&mut self, id: u16, _descriptors: u16, len: u32) {
        if !self.names_last {
            self.ring.write_used(self.given, id, len);
        }
        self.last = id;
        self.given = self.given.wrapping_add(1);
    }

    #[inline(always)]
    fn publish(&mut self) {
        if self.given == self.published {
            return;
        }
        if self.names_last {
            // At the position of the burst's first buffer, the id of its last (section 2.7.8).
            self.ring.write_used(self.published, self.last, 0);
        }
        self.published = self.given;
        self.ring.publish_used(self.given);
    }

    fn driver_listens(&self) -> bool {
        self.ring.driver_listens()
    }
}
