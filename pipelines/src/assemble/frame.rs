//! The side that gets the frames: complete ones, and others with what they lack.

use std::fmt;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use pollux_pmd::Count;

use super::memory::{NOT_YET, Shared};
use super::turns::State;
use crate::stage::Moment;

/// What became of the frames. Written by the reader alone.
#[derive(Debug, Default)]
pub struct AssembleCounts {
    /// Frames that were delivered with all of their parts.
    pub complete: Count,
    /// Frames that were delivered without some.
    pub partial: Count,
    /// Parts that were missing in them.
    pub missing: Count,
    /// Frames that were closed before their time was over, since a newer frame was about to need their
    /// buffer: the buffers last for less than the timeout. Up to date whenever a partial frame is
    /// delivered.
    pub early: Count,
}

/// Gets the frames, in one loop, in the order of their numbers: a complete frame waits for older
/// ones that are open. Where several loops receive, a frame whose first packet is placed while a
/// younger one is being delivered follows that one.
pub struct FrameReader {
    shared: Arc<Shared>,
    counts: Arc<AssembleCounts>,
    /// Buffers that had been closed at the last look, and the time of the next one.
    closed: u64,
    due: Moment,
}

impl FrameReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            counts: Arc::default(),
            closed: u64::MAX,
            due: Moment(0),
        }
    }

    /// What became of the frames.
    #[must_use]
    pub fn counts(&self) -> Arc<AssembleCounts> {
        Arc::clone(&self.counts)
    }

    /// The next frame that is complete, or whose time is over at `now`.
    #[inline]
    pub fn poll(&mut self, now: Moment) -> Option<Frame> {
        let closed = self.shared.closed.load(Acquire);
        if closed == self.closed && now < self.due {
            return None;
        }
        self.look(closed, now)
    }

    fn look(&mut self, closed: u64, now: Moment) -> Option<Frame> {
        let shared = &*self.shared;
        let (buffers, timeout) = (shared.config.buffers, shared.config.timeout);
        let floor = shared.floor.load(Relaxed);
        self.due = now.after(timeout);
        let mut oldest: Option<(i64, usize, bool)> = None;
        for buffer in 0..buffers {
            let (mut state, lap) = shared.turns.state(buffer);
            if state == State::Filling {
                let opened = shared.opened[buffer].load(Relaxed);
                let due = Moment(opened).after(timeout);
                if opened == NOT_YET {
                    // It is being opened at this moment.
                    self.due = now;
                } else if due <= now {
                    state = State::Closed(shared.turns.close(buffer, lap) == Some(true));
                } else {
                    self.due = self.due.min(due);
                }
            }
            let ready = match state {
                State::Free | State::Taken => continue,
                State::Filling => false,
                State::Closed(ready) => ready,
            };
            if let State::Closed(false) = state {
                // Its last writer is about to leave.
                self.due = now;
            }
            let serial = shared.serials.join(buffer, lap);
            let ahead = shared.serials.distance(serial, floor);
            if oldest.is_none_or(|(least, ..)| ahead < least) {
                oldest = Some((ahead, buffer, ready));
            }
        }
        let frame = oldest.filter(|&(.., ready)| ready);
        let frame = frame.and_then(|(ahead, buffer, _)| self.take(buffer, floor, ahead));
        if frame.is_some() {
            // There may be another behind it.
            self.due = Moment(0);
        } else {
            self.closed = closed;
        }
        frame
    }

    /// Takes a closed frame.
    fn take(&mut self, buffer: usize, floor: u64, ahead: i64) -> Option<Frame> {
        let shared = &self.shared;
        let (parts, memory) = shared.turns.take(buffer)?;
        if ahead >= 0 {
            // Frames up to this one are late from now on, unless the window has begun anew.
            let next = floor.wrapping_add(ahead as u64 + 1);
            let _ = shared.floor.compare_exchange(floor, next, Relaxed, Relaxed);
        }
        let (_, lap) = shared.turns.state(buffer);
        let mut frame = Frame {
            shared: Arc::clone(shared),
            buffer,
            memory,
            key: shared.keys[buffer].load(Relaxed),
            opened: Moment(shared.opened[buffer].swap(NOT_YET, Relaxed)),
            restarts: shared.serials.restarts(shared.serials.join(buffer, lap)),
            parts,
        };
        shared.refill(buffer);
        let missing = shared.config.frame_parts() - parts;
        if missing == 0 {
            self.counts.complete.add(1);
        } else {
            self.counts.partial.add(1);
            self.counts.missing.add(missing as u64);
            self.counts.early.set(frame.shared.early.load(Relaxed));
            frame.fill_missing();
        }
        Some(frame)
    }

    /// Has the next packet begin the frame numbers anew, whatever its number: for a new run, when all
    /// senders have stopped and all frames have been taken. Without this, numbers that step back are
    /// late, or a restart that many packets have to confirm.
    pub fn begin_anew(&mut self) {
        self.shared.begin_anew();
    }

    /// Closes all frames that are open, for the end of the input: [`poll`](Self::poll) has them then.
    pub fn close_all(&mut self) {
        for buffer in 0..self.shared.config.buffers {
            let (_, lap) = self.shared.turns.state(buffer);
            if self.shared.turns.close(buffer, lap) == Some(true) {
                self.shared.ready();
            }
        }
        self.due = Moment(0);
    }
}

/// A frame, which is its owner's alone on any thread. Dropping it gives its memory back.
pub struct Frame {
    shared: Arc<Shared>,
    /// The buffer whose memory it took.
    buffer: usize,
    memory: usize,
    key: u64,
    opened: Moment,
    restarts: u8,
    parts: usize,
}

impl Frame {
    /// Its number, as its packets say it.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Restarts of the sender before this frame, modulo 256: frame numbers of equal counts are of one
    /// sequence.
    #[must_use]
    pub fn restarts(&self) -> u8 {
        self.restarts
    }

    /// When its first packet came.
    #[must_use]
    pub fn opened(&self) -> Moment {
        self.opened
    }

    /// Whether it has all of its parts.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.parts == self.shared.config.frame_parts()
    }

    /// The data of all packets, each at its place; [`fill`](super::AssembleConfig::fill) where one is
    /// missing.
    #[must_use]
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: the memory was taken after all writers had left its buffer, and only `drop` gives it
        // back; a frame has so many bytes, and all memory of a region is initialised.
        unsafe {
            slice::from_raw_parts(
                self.shared.data(self.memory),
                self.shared.config.frame_bytes(),
            )
        }
    }

    /// The notes of all packets in a list, each at its place; zeros where one is missing. None if there
    /// is no such list.
    #[must_use]
    #[inline]
    pub fn notes(&self, list: usize) -> &[u8] {
        let config = &self.shared.config;
        let Some(bytes) = config.note_bytes.get(list) else {
            return &[];
        };
        let start = self.shared.note(list, self.memory, 0);
        // SAFETY: as for the data; a list has so many bytes for each part.
        unsafe { slice::from_raw_parts(start, bytes * config.frame_parts()) }
    }

    /// Whether it has a packet of a sender.
    #[must_use]
    pub fn has(&self, sender: usize, packet: usize) -> bool {
        let config = &self.shared.config;
        let exists = sender < config.senders && packet < config.packets;
        exists && {
            let index = sender * config.packets + packet;
            self.shared.turns.is_claimed(self.memory, index)
        }
    }

    /// The header of a packet; `None` if it is missing.
    #[must_use]
    pub fn header(&self, sender: usize, packet: usize) -> Option<&[u8]> {
        if !self.has(sender, packet) {
            return None;
        }
        let config = &self.shared.config;
        let start = self
            .shared
            .header(self.memory, sender * config.packets + packet);
        // SAFETY: as for the data; each part has so many bytes of header.
        Some(unsafe { slice::from_raw_parts(start, config.header_bytes) })
    }

    /// The packets that are missing, each with its sender.
    pub fn missing(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let config = &self.shared.config;
        let all = (0..config.senders).flat_map(|s| (0..config.packets).map(move |p| (s, p)));
        all.filter(|&(sender, packet)| !self.has(sender, packet))
    }

    /// What an earlier frame left in the places of missing packets is not this frame's.
    #[cold]
    fn fill_missing(&mut self) {
        let config = &self.shared.config;
        for (sender, packet) in self.missing() {
            let index = sender * config.packets + packet;
            let at = index * config.packet_bytes;
            // SAFETY: the memory is this frame's alone, and no slice of it has been given out; the
            // part is inside it, and initialised as all memory of a region.
            let part = unsafe {
                let start = self.shared.data(self.memory).add(at);
                slice::from_raw_parts_mut(start, config.packet_bytes)
            };
            for piece in part.chunks_mut(config.fill.len()) {
                piece.copy_from_slice(&config.fill[..piece.len()]);
            }
            for (list, &bytes) in config.note_bytes.iter().enumerate() {
                // SAFETY: as for the part: its notes are this frame's alone, and inside the region.
                unsafe {
                    self.shared
                        .note(list, self.memory, index)
                        .write_bytes(0, bytes);
                }
            }
        }
    }
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        self.data()
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.shared.give_back(self.buffer, self.memory);
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("key", &self.key)
            .field("opened", &self.opened)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}
