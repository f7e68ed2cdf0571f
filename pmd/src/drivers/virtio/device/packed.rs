//! Device's half of a packed ring: virtio 1.2 section 2.8.

use super::{Chain, Direction, KIND, Pieces, Ring, Single};
use crate::drivers::virtio::areas::{QueueError, RingMemory};
use crate::drivers::virtio::packed::{Packed, Position};
use crate::drivers::virtio::split::{INDIRECT, NEXT};
use crate::drivers::virtio::{Broken, Descriptor, RingFeatures};

pub(super) struct PackedRing {
    ring: Packed,
    direction: Direction,
    /// Buffers may be described by tables.
    indirect: bool,
    /// In-order ring whose lengths are unused: only the last buffer of a burst gets a used
    /// descriptor.
    names_last: bool,
    /// Position of the next available descriptor, and of the next used one.
    next: Position,
    given: Position,
    /// Position of the first used buffer that is not published, and the word that publishes it and
    /// the others.
    pending: Option<(Position, u64)>,
}

impl PackedRing {
    /// Takes the segments in a table, which are the whole buffer; false if it is invalid.
    fn take_table(&self, at: Descriptor, pieces: &mut Pieces<'_>) -> bool {
        let Some(table) = pieces.table(at, self.ring.size()) else {
            return false;
        };
        // Tables cannot be nested. (The flag NEXT has no meaning here.)
        let mut entries = (0..table.count).map_while(|i| table.entry(i));
        entries.all(|words| pieces.take(Descriptor::of_packed(words)))
    }
}

impl Ring for PackedRing {
    type Mark = Position;

    fn new(
        memory: &RingMemory,
        features: RingFeatures,
        direction: Direction,
        base: u16,
    ) -> Result<Self, QueueError> {
        let ring = Packed::new(memory);
        let size = ring.size();
        let start = ring.position(base).ok_or(QueueError::Base { size, base })?;
        ring.quiet_driver();
        Ok(Self {
            ring,
            direction,
            indirect: features.indirect,
            names_last: features.in_order && direction == Direction::Read,
            next: start,
            given: start,
            pending: None,
        })
    }

    fn base(&self) -> u16 {
        self.next.base()
    }

    fn size(&self) -> usize {
        usize::from(self.ring.size())
    }

    #[inline(always)]
    fn singles(&mut self, out: &mut [Single]) -> Result<usize, Broken> {
        let flags = self.direction.flags();
        let mut at = self.next;
        // At most one lap: these descriptors have been read.
        let most = out.len().min(self.size());
        for (n, single) in out[..most].iter_mut().enumerate() {
            let Some(descriptor) = self.ring.available(at) else {
                return Ok(n);
            };
            if descriptor.flags & KIND != flags {
                return Ok(n);
            }
            *single = Single {
                piece: descriptor.piece,
                id: descriptor.last,
            };
            at = self.ring.after(at, 1);
        }
        Ok(most)
    }

    #[inline(always)]
    fn take(&mut self, n: usize) {
        self.next = self.ring.after(self.next, n as u16);
    }

    fn take_chain(&mut self, pieces: &mut Pieces<'_>) -> Result<Option<Chain>, Broken> {
        let Some(mut descriptor) = self.ring.available(self.next) else {
            return Ok(None);
        };
        let first = pieces.list.len();
        let (mut at, mut descriptors, mut sound) = (self.next, 1, true);
        loop {
            sound &= if descriptor.flags & INDIRECT != 0 {
                self.indirect && self.take_table(descriptor, pieces)
            } else {
                pieces.take(descriptor)
            };
            at = self.ring.after(at, 1);
            if descriptor.flags & NEXT == 0 {
                break;
            }
            // The end of an endless chain is undefined, and with it the buffer's id.
            if descriptors == self.ring.size() {
                return Err(Broken);
            }
            descriptor = self.ring.rest(at);
            descriptors += 1;
        }
        self.next = at;
        Ok(Some(Chain {
            id: descriptor.last,
            descriptors,
            pieces: pieces.list.len() - first,
            sound,
        }))
    }

    fn mark(&self) -> Position {
        self.next
    }

    fn rewind(&mut self, mark: Position) {
        self.next = mark;
    }

    #[inline(always)]
    fn give(&mut self, id: u16, descriptors: u16, len: u32) {
        let at = self.given;
        self.given = self.ring.after(at, descriptors);
        match &mut self.pending {
            // The first of a burst is held back, so that the driver sees the burst as a whole.
            None => self.pending = Some((at, Packed::used_word(at, len, id))),
            // At the position of the burst's first buffer, the id of its last (section 2.8.7).
            Some((first, word)) if self.names_last => *word = Packed::used_word(*first, len, id),
            Some(_) => self.ring.publish(at, Packed::used_word(at, len, id)),
        }
    }

    #[inline(always)]
    fn publish(&mut self) {
        if let Some((at, word)) = self.pending.take() {
            self.ring.publish(at, word);
        }
    }

    fn driver_listens(&self) -> bool {
        self.ring.driver_listens()
    }
}
