//! The side that receives: places packets in their frames.

use std::array;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pollux_pmd::Cause;

use super::config::{AssembleConfig, AssembleError, NOTES};
use super::frame::FrameReader;
use super::memory::{NOT_YET, Shared};
use super::turns::{Entry, MAX_WRITERS};
use crate::stage::Moment;

/// A packet: which part of which frame it is, and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Number of the frame. Frames are delivered in the order of their numbers.
    pub key: u64,
    /// Sender, below their number.
    pub sender: usize,
    /// Number of the packet among those of its sender in the frame.
    pub packet: usize,
    /// When it came, on the time line of the timeout.
    pub at: Moment,
    /// Its header; as many bytes of it are kept as the configuration says.
    pub header: &'a [u8],
    /// Its data; where it is shorter than the configuration says, zeros follow it in the frame.
    pub data: &'a [u8],
}

/// Enters the buffer of a packet, claims its part, has it written and leaves the buffer. A macro: as a
/// function that is given the write as a closure, or as two functions around it, it takes 4 to 18
/// instructions more for a copied packet.
macro_rules! place {
    (
        $placer:ident, $part:ident,
        |$shared:ident, $config:ident, $memory:ident, $index:ident| $write:block
    ) => {{
        let ($shared, $config) = (&*$placer.shared, &$placer.shared.config);
        let fits = $part.sender < $config.senders
            && $part.packet < $config.packets
            && $part.data.len() <= $config.packet_bytes
            && $part.header.len() >= $config.header_bytes;
        if !fits {
            return Err(Cause::Malformed);
        }
        let $index = $part.sender * $config.packets + $part.packet;
        let serial = $shared.admit($part.key, $part.at)?;
        let (buffer, lap) = $shared.serials.split(serial);
        match $shared.turns.enter(buffer, lap) {
            Entry::Joined => {}
            Entry::Opened => {
                $shared.keys[buffer].store($part.key, Relaxed);
                $shared.opened[buffer].store($part.at.0.min(NOT_YET - 1), Relaxed);
                $shared.begun.store($part.at.0, Relaxed);
            }
            refused => return Err($placer.refuse(refused, buffer, serial, $index)),
        }
        let $memory = $shared.turns.memory(buffer);
        let claimed = $shared.turns.claim($memory, $index);
        if claimed {
            $write
        }
        if $shared.turns.leave(buffer, claimed) {
            $shared.ready();
        }
        if claimed {
            Ok(())
        } else {
            Err(Cause::Duplicate)
        }
    }};
}

/// Places packets in their frames, in one receiving loop. Several loops may do so for the same
/// frames, each with a clone.
pub struct Placer {
    pub(super) shared: Arc<Shared>,
    no_buffer: Cause,
}

impl Placer {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, AssembleError> {
        if shared.placers.fetch_add(1, Relaxed) as usize >= MAX_WRITERS {
            shared.placers.fetch_sub(1, Relaxed);
            return Err(AssembleError::Loops);
        }
        let text =
            "the buffer for its frame was not free: the reader is too slow, or there are too few";
        let no_buffer = Cause::declare("no-frame-buffer", text);
        match no_buffer {
            Ok(no_buffer) => Ok(Self { shared, no_buffer }),
            Err(error) => {
                shared.placers.fetch_sub(1, Relaxed);
                Err(error.into())
            }
        }
    }

    /// The same for another loop.
    ///
    /// # Errors
    /// Too many loops.
    pub fn for_another_loop(&self) -> Result<Self, AssembleError> {
        Self::new(Arc::clone(&self.shared))
    }

    /// The cause of packets for whose frame there was no buffer.
    #[must_use]
    pub fn no_buffer(&self) -> Cause {
        self.no_buffer
    }

    /// Copies a packet to its place.
    ///
    /// # Errors
    /// The cause for which it was not; the packet is the caller's to count.
    #[inline]
    pub fn place(&mut self, part: &Part<'_>) -> Result<(), Cause> {
        place!(self, part, |shared, config, memory, index| {
            let to = index * config.packet_bytes;
            let rest = config.packet_bytes - part.data.len();
            // SAFETY: this loop is in the buffer, so it is not the reader's, and it alone has claimed
            // this part; the part's bytes are inside the frame, its header inside the headers
            // (`fits`), and neither is memory of the packet.
            unsafe {
                let to = shared.data(memory).add(to);
                ptr::copy_nonoverlapping(part.data.as_ptr(), to, part.data.len());
                if rest > 0 {
                    to.add(part.data.len()).write_bytes(0, rest);
                }
                if config.header_bytes > 0 {
                    let to = shared.header(memory, index);
                    ptr::copy_nonoverlapping(part.header.as_ptr(), to, config.header_bytes);
                }
            }
            if config.note_bytes != [0; NOTES] {
                self.clear_notes(memory, index);
            }
        })
    }

    /// Has `write` write a packet to its place, for data that is changed on the way or lies in several
    /// pieces. It is given the bytes of the packet's place in the frame, which hold what an earlier
    /// frame left there, and is called only if the packet belongs there; the data of `part` is not
    /// read. A `write` that panics leaves the frame open for ever.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    #[inline]
    pub fn place_with(
        &mut self,
        part: &Part<'_>,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<(), Cause> {
        self.place_noted(part, |to, notes| {
            write(to);
            for notes in notes {
                notes.fill(0);
            }
        })
    }

    /// Places a packet as [`place_with`](Self::place_with) does, and has `write` write the packet's
    /// notes too, which hold what an earlier frame left there: as many bytes of each list as the
    /// configuration says.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    #[inline]
    pub fn place_noted(
        &mut self,
        part: &Part<'_>,
        write: impl FnOnce(&mut [u8], [&mut [u8]; NOTES]),
    ) -> Result<(), Cause> {
        place!(self, part, |shared, config, memory, index| {
            // SAFETY: as in `place`, of the data and of the notes; the bytes are initialised as all
            // memory of a region, and no other reference to them exists before this loop has left the
            // buffer.
            unsafe {
                let to = shared.data(memory).add(index * config.packet_bytes);
                let to = slice::from_raw_parts_mut(to, config.packet_bytes);
                let notes = array::from_fn(|list| {
                    let notes = shared.note(list, memory, index);
                    slice::from_raw_parts_mut(notes, config.note_bytes[list])
                });
                write(to, notes);
                if config.header_bytes > 0 {
                    let to = shared.header(memory, index);
                    ptr::copy_nonoverlapping(part.header.as_ptr(), to, config.header_bytes);
                }
            }
        })
    }

    /// Clears the notes of a part that this loop has claimed: those of an earlier frame.
    #[cold]
    fn clear_notes(&self, memory: usize, index: usize) {
        for (list, &bytes) in self.shared.config.note_bytes.iter().enumerate() {
            // SAFETY: as in `place`; the region has so many bytes of notes for each part.
            unsafe { self.shared.note(list, memory, index).write_bytes(0, bytes) };
        }
    }

    /// Why a part could not enter its buffer.
    #[cold]
    fn refuse(&self, entry: Entry, buffer: usize, serial: u64, index: usize) -> Cause {
        let shared = &*self.shared;
        match entry {
            Entry::Closed if shared.turns.is_claimed(shared.turns.memory(buffer), index) => {
                Cause::Duplicate
            }
            Entry::Closed => Cause::Late,
            _ => {
                let (_, lap) = shared.turns.state(buffer);
                let other = shared.serials.join(buffer, lap);
                let ahead = shared.serials.distance(serial, other);
                if ahead < 0 {
                    return Cause::Late;
                }
                // An older frame is in the way, which began after its buffer was due (`make_room`). It may
                // have left meanwhile, and another loop may have opened this frame: that one stays open.
                if ahead > 0 && entry == Entry::Occupied {
                    shared.close_early(buffer, lap);
                }
                self.no_buffer
            }
        }
    }
}

impl Drop for Placer {
    fn drop(&mut self) {
        self.shared.placers.fetch_sub(1, Relaxed);
    }
}

/// Makes an assembler: its receiving side, for one loop or several, and its reader.
///
/// # Errors
/// Numbers out of their limits, or memory that cannot be had.
pub fn assembler(config: AssembleConfig) -> Result<(Placer, FrameReader), AssembleError> {
    let shared = Arc::new(Shared::new(config)?);
    let placer = Placer::new(Arc::clone(&shared))?;
    Ok((placer, FrameReader::new(shared)))
}
