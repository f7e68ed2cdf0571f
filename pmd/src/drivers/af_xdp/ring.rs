//! Rings that an XDP socket shares with the kernel (the kernel's
//! Documentation/networking/af_xdp.rst, "Rings").
//!
//! One side of each ring writes entries and moves the producer index; the other reads them and
//! moves the consumer index. Both indices are free-running and wrap at 2^32; an entry's position is
//! the index modulo the size, a power of two. This side keeps its own index in private memory and
//! only writes it to the ring. It accepts plausible values of the other side's index, and counts
//! the rest as violations.

use std::io;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Location of the parts of a ring in its mapping, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
}

impl Layout {
    /// Converts the kernel's offsets; `None` for numbers that no address has.
    pub(super) fn of(offsets: libc::xdp_ring_offset) -> Option<Self> {
        Some(Self {
            producer: offsets.producer.try_into().ok()?,
            consumer: offsets.consumer.try_into().ok()?,
            flags: offsets.flags.try_into().ok()?,
            entries: offsets.desc.try_into().ok()?,
        })
    }
}

/// Types of ring entries: integers and structures of them, for which any bits are valid.
pub(super) trait Entry: Copy {}
impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

const _: () = assert!(size_of::<libc::xdp_desc>() == 16 && align_of::<libc::xdp_desc>() == 8);

/// A mapped ring of `size` entries.
struct Ring<T> {
    base: NonNull<u8>,
    len: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    of: PhantomData<T>,
}

// SAFETY: this value alone owns the mapping, and one thread at a time accesses it through the
// value; the kernel's accesses do not depend on the thread.
unsafe impl<T: Entry> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// Maps the ring of `size` entries that `fd` has at `offset`.
    fn map(fd: BorrowedFd<'_>, offset: u64, layout: Layout, size: u32) -> io::Result<Self> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let entries_end = (size as usize)
            .checked_mul(size_of::<T>())
            .and_then(|bytes| bytes.checked_add(layout.entries));
        let words = [layout.producer, layout.consumer, layout.flags];
        let words_end = words.iter().max().and_then(|at| at.checked_add(4));
        let len = entries_end.max(words_end).ok_or_else(broken)?;
        let aligned = words.iter().all(|at| at.is_multiple_of(4))
            && layout.entries.is_multiple_of(align_of::<T>());
        if entries_end.is_none() || words_end.is_none() || !aligned || !size.is_power_of_two() {
            return Err(broken());
        }
        let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        let flags = shared | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let base = unsafe { mmap(ptr::null_mut(), len, read_write, flags, fd, offset) }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: all of it lies in the mapping: `len` is at least the end of each part.
        let (producer, consumer, flags, entries) = unsafe {
            (
                base.add(layout.producer).cast(),
                base.add(layout.consumer).cast(),
                base.add(layout.flags).cast(),
                base.add(layout.entries).cast(),
            )
        };
        Ok(Self {
            base,
            len,
            producer,
            consumer,
            flags,
            entries,
            size,
            of: PhantomData,
        })
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        // SAFETY: an aligned word of the mapping, which lives as long as `self`; both sides access
        // it atomically.
        unsafe { self.producer.as_ref() }
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as in `producer`.
        unsafe { self.consumer.as_ref() }
    }

    #[inline]
    fn flags(&self) -> &AtomicU32 {
        // SAFETY: as in `producer`.
        unsafe { self.flags.as_ref() }
    }

    #[inline]
    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the index is reduced modulo the size, and that many entries lie in the mapping.
        unsafe { self.entries.add((index & (self.size - 1)) as usize) }
    }

    #[inline]
    fn read(&self, index: u32) -> T {
        // SAFETY: an aligned entry of the mapping, for which any bytes are valid. Volatile, so that
        // it is read once whatever the kernel writes.
        unsafe { self.entry(index).read_volatile() }
    }

    #[inline]
    fn write(&self, index: u32, entry: T) {
        // SAFETY: an aligned entry of the mapping.
        unsafe { self.entry(index).write_volatile(entry) };
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference into it exists.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok());
    }
}

/// The other side's index, as last accepted.
struct Peer {
    seen: u32,
    /// The last implausible value, which is counted once however often it is read.
    lie: Option<u32>,
    lies: u64,
}

impl Peer {
    const fn new() -> Self {
        Self {
            seen: 0,
            lie: None,
            lies: 0,
        }
    }

    /// Accepts a new value, if it is at most `most` ahead of the last one.
    #[inline]
    fn follow(&mut self, value: u32, most: u32) {
        if value.wrapping_sub(self.seen) <= most {
            self.seen = value;
        } else {
            self.refuse(value);
        }
    }

    #[cold]
    fn refuse(&mut self, value: u32) {
        if self.lie.replace(value) != Some(value) {
            self.lies += 1;
        }
    }
}

/// This side of a ring that the kernel reads: FILL and TX.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Index of the next entry.
    next: u32,
    /// Index up to which the kernel may read.
    published: u32,
    /// The kernel's index.
    peer: Peer,
}

impl<T: Entry> Producer<T> {
    /// See [`Ring::map`].
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        offset: u64,
        layout: Layout,
        size: u32,
    ) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::map(fd, offset, layout, size)?,
            next: 0,
            published: 0,
            peer: Peer::new(),
        })
    }

    /// Number of entries of the ring.
    pub(super) fn size(&self) -> u32 {
        self.ring.size
    }

    /// Entries that are published and that the kernel has not read yet.
    #[inline]
    pub(super) fn unread(&mut self) -> u32 {
        // Acquire pairs with the kernel's release store of the consumer's index
        // (__xskq_cons_release): it has read the entries before.
        let consumed = self.ring.consumer().load(Ordering::Acquire);
        let most = self.published.wrapping_sub(self.peer.seen);
        self.peer.follow(consumed, most);
        self.published.wrapping_sub(self.peer.seen)
    }

    /// Free entries, read from the ring only if fewer than `wanted` are known.
    #[inline]
    pub(super) fn free(&mut self, wanted: u32) -> u32 {
        let size = self.ring.size;
        let known = size - self.next.wrapping_sub(self.peer.seen);
        if known >= wanted {
            return known;
        }
        self.unread();
        size - self.next.wrapping_sub(self.peer.seen)
    }

    /// Writes an entry, which the kernel sees after [`submit`](Self::submit); `false`, with no
    /// effect, if the ring is full.
    #[inline]
    #[must_use]
    pub(super) fn push(&mut self, entry: T) -> bool {
        let fits = self.free(1) > 0;
        if fits {
            self.ring.write(self.next, entry);
            self.next = self.next.wrapping_add(1);
        }
        fits
    }

    /// Publishes the pushed entries to the kernel.
    #[inline]
    pub(super) fn submit(&mut self) {
        if self.published != self.next {
            self.published = self.next;
            // Release: the entries are written before the kernel, whose load of this index is an
            // acquire (__xskq_cons_peek), reads them.
            self.ring.producer().store(self.next, Ordering::Release);
        }
    }

    /// Whether the kernel polls the ring only after a wake-up call.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        // Relaxed: only a hint; the next call sees a missed flag.
        self.ring.flags().load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }

    /// Number of impossible indices that the kernel has written since the last call.
    pub(super) fn take_lies(&mut self) -> u64 {
        std::mem::take(&mut self.peer.lies)
    }
}

/// This side of a ring that the kernel writes: RX and COMPLETION.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// The entry to read next.
    next: u32,
    /// Index up to which the kernel may overwrite.
    released: u32,
    /// The kernel's index.
    peer: Peer,
}

impl<T: Entry> Consumer<T> {
    /// See [`Ring::map`].
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        offset: u64,
        layout: Layout,
        size: u32,
    ) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::map(fd, offset, layout, size)?,
            next: 0,
            released: 0,
            peer: Peer::new(),
        })
    }

    /// Number of entries of the ring.
    pub(super) fn size(&self) -> u32 {
        self.ring.size
    }

    /// Reads an entry, if there is one; its slot stays reserved until [`release`](Self::release).
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.next == self.peer.seen {
            // Acquire pairs with the kernel's release store of the producer's index
            // (__xskq_prod_submit): the entries were written before, and the frames that they
            // describe.
            let produced = self.ring.producer().load(Ordering::Acquire);
            let most = self.ring.size - self.next.wrapping_sub(self.released);
            self.peer.follow(produced, most);
            if self.next == self.peer.seen {
                return None;
            }
        }
        let entry = self.ring.read(self.next);
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Returns the slots of the entries that were read to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        if self.released != self.next {
            self.released = self.next;
            // Release: the entries were read before the kernel, whose load of this index is an
            // acquire (xskq_prod_nb_free), overwrites them.
            self.ring.consumer().store(self.next, Ordering::Release);
        }
    }

    /// Number of impossible indices that the kernel has written since the last call.
    #[inline]
    pub(super) fn take_lies(&mut self) -> u64 {
        std::mem::take(&mut self.peer.lies)
    }
}

/// The kernel's side of a ring, for tests and fuzzing: it may write anything.
#[cfg(any(test, fuzzing))]
pub(super) mod kernel {
    use super::*;

    /// A second mapping of a ring.
    pub(in super::super) struct Side<T>(Ring<T>);

    impl<T: Entry> Side<T> {
        pub(in super::super) fn map(
            fd: BorrowedFd<'_>,
            layout: Layout,
            size: u32,
        ) -> io::Result<Self> {
            Ring::map(fd, 0, layout, size).map(Self)
        }

        pub(in super::super) fn producer(&self) -> &AtomicU32 {
            self.0.producer()
        }

        pub(in super::super) fn consumer(&self) -> &AtomicU32 {
            self.0.consumer()
        }

        pub(in super::super) fn flags(&self) -> &AtomicU32 {
            self.0.flags()
        }

        pub(in super::super) fn read(&self, index: u32) -> T {
            self.0.read(index)
        }

        pub(in super::super) fn write(&self, index: u32, entry: T) {
            self.0.write(index, entry);
        }
    }
}
