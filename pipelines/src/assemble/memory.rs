//! Memory of the frames, and what all loops share about them.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pollux_mempool::region::MemoryRegion;

use super::config::{AssembleConfig, AssembleError, NOTES};
use super::serials::Serials;
use super::spares::Spares;
use super::turns::Turns;

/// Frames begin at cache lines, so that two of them never share one.
const LINE: usize = 64;

/// A mark on the newest serial number: the next one begins the window anew. No serial number has so
/// many bits.
pub(super) const ANEW: u64 = 1 << 63;

/// The serial number where no frame has been seen, with the mark.
pub(super) const NONE: u64 = u64::MAX;

/// A time of opening that is not known yet.
pub(super) const NOT_YET: u64 = u64::MAX;

/// What receiving loops and the reader share.
pub(super) struct Shared {
    pub(super) config: AssembleConfig,
    pub(super) turns: Turns,
    pub(super) serials: Serials,
    pub(super) spares: Spares,
    /// First byte of the first frame, and of the header of its first part.
    data: NonNull<u8>,
    headers: NonNull<u8>,
    /// First byte of each list of notes of the first frame.
    notes: [NonNull<u8>; NOTES],
    _region: MemoryRegion,
    frame_stride: usize,
    header_stride: usize,
    note_strides: [usize; NOTES],
    /// Frame number, and time of opening, of the frame in each buffer.
    pub(super) keys: Box<[AtomicU64]>,
    pub(super) opened: Box<[AtomicU64]>,
    /// The serial number of the newest frame, [`ANEW`] if the next one begins the window anew, or
    /// [`NONE`]; and the lowest that is not closed.
    pub(super) newest: AtomicU64,
    pub(super) floor: AtomicU64,
    /// When the last frame began.
    pub(super) begun: AtomicU64,
    /// Packets in a row whose frame numbers were refused, and the last number.
    pub(super) strays: AtomicU32,
    pub(super) stray: AtomicU64,
    /// Buffers that have been closed, for the reader to look again.
    pub(super) closed: AtomicU64,
    /// Frames that were closed before their time was over.
    pub(super) early: AtomicU64,
    /// Receiving loops so far.
    pub(super) placers: AtomicU32,
}

// SAFETY: the memory belongs to no thread and is there as long as the region; `turns` says which
// loop may touch which part of it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub(super) fn new(config: AssembleConfig) -> Result<Self, AssembleError> {
        config.check()?;
        let parts = config.frame_parts();
        let frame_stride = config.frame_bytes().next_multiple_of(LINE);
        let header_stride = (parts * config.header_bytes).next_multiple_of(LINE);
        let note_strides = config
            .note_bytes
            .map(|bytes| (parts * bytes).next_multiple_of(LINE));
        let memories = config.buffers + config.spares;
        let data = memories * frame_stride;
        let headers = memories * header_stride;
        let notes = note_strides.map(|stride| memories * stride);
        let bytes = data + headers + notes.iter().sum::<usize>();
        let region = MemoryRegion::builder(bytes)
            .pages(config.memory.pages)
            .numa_node(config.memory.numa_node)
            .lock(config.memory.lock)
            .build()?;
        let words = |value: u64| (0..config.buffers).map(move |_| AtomicU64::new(value));
        Ok(Self {
            turns: Turns::new(config.buffers, memories, parts),
            spares: Spares::new(config.buffers, memories),
            serials: Serials::new(config.buffers),
            data: region.ptr_at(0, data)?,
            headers: region.ptr_at(data, headers)?,
            notes: [
                region.ptr_at(data + headers, notes[0])?,
                region.ptr_at(data + headers + notes[0], notes[1])?,
            ],
            _region: region,
            frame_stride,
            header_stride,
            note_strides,
            keys: words(0).collect(),
            opened: words(NOT_YET).collect(),
            newest: AtomicU64::new(NONE),
            floor: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            strays: AtomicU32::new(0),
            stray: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            early: AtomicU64::new(0),
            placers: AtomicU32::new(0),
            config,
        })
    }

    /// Pieces of memory: those of the buffers, and the spare ones.
    fn memories(&self) -> usize {
        self.config.buffers + self.config.spares
    }

    /// First byte of a frame's data. `memory` is below the number of pieces.
    #[inline]
    pub(super) fn data(&self, memory: usize) -> *mut u8 {
        debug_assert!(memory < self.memories());
        // SAFETY: the region has a stride for each piece of memory from `data` on (`new`).
        unsafe { self.data.as_ptr().add(memory * self.frame_stride) }
    }

    /// First byte of the header of a frame's part. Both are below their numbers.
    #[inline]
    pub(super) fn header(&self, memory: usize, part: usize) -> *mut u8 {
        debug_assert!(memory < self.memories() && part < self.config.frame_parts());
        let at = memory * self.header_stride + part * self.config.header_bytes;
        // SAFETY: the region has a stride for each piece from `headers` on, and in it a header for
        // each part (`new`).
        unsafe { self.headers.as_ptr().add(at) }
    }

    /// First byte of a part's notes in a list. All are below their numbers.
    #[inline]
    pub(super) fn note(&self, list: usize, memory: usize, part: usize) -> *mut u8 {
        debug_assert!(memory < self.memories() && part < self.config.frame_parts());
        let at = memory * self.note_strides[list] + part * self.config.note_bytes[list];
        // SAFETY: the region has a stride of the list for each piece from `notes` on, and in it notes
        // for each part (`new`).
        unsafe { self.notes[list].as_ptr().add(at) }
    }

    /// Frees a buffer whose memory was taken, as soon as there is memory for it.
    pub(super) fn refill(&self, buffer: usize) {
        let refill = |buffer, memory| self.turns.refill(buffer, memory);
        self.spares.refill_or_wait(buffer, refill);
    }

    /// Gives memory back that was taken from a buffer.
    pub(super) fn give_back(&self, buffer: usize, memory: usize) {
        self.turns.clear(memory);
        let refill = |buffer, memory| self.turns.refill(buffer, memory);
        self.spares.give(buffer, memory, refill);
    }

    /// Closes a frame that is open, before its time is over: a newer one needs its buffer.
    pub(super) fn close_early(&self, buffer: usize, lap: u64) {
        let Some(is_ready) = self.turns.close(buffer, lap) else {
            return;
        };
        self.early.fetch_add(1, Ordering::Relaxed);
        if is_ready {
            self.ready();
        }
    }

    /// A buffer was closed, and its writers have left.
    #[inline]
    pub(super) fn ready(&self) {
        // Release: a reader that sees the count sees the state of the buffer.
        self.closed.fetch_add(1, Ordering::Release);
    }
}
