//! Memory words of an event queue, and the order of their accesses.
//!
//! A device may write the records at any time, so all accesses are atomic. A record is the relaxed
//! words 0 to 6, published by word 7, which carries the phase bit; a device that writes a record in
//! address order does the same. The one word that the consumer writes, the number of records that
//! it has released, is behind the records in a cache line of its own.

#[cfg(not(loom))]
pub(super) use real::Words;

#[cfg(loom)]
pub(super) use model::Words;

#[cfg(not(loom))]
mod real {
    use std::ptr::NonNull;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

    use pollux_mempool::region::{MemoryRegion, RegionError};

    use super::super::RegionOptions;
    use super::super::record::{PHASE, WORDS};

    /// The words in mapped memory: `records` records, then the consumer's line.
    pub(in super::super) struct Words {
        /// First word of the region, which is page aligned and zeroed.
        start: NonNull<AtomicU64>,
        /// A power of two.
        records: usize,
        region: Arc<MemoryRegion>,
    }

    // SAFETY: the words belong to no thread, and exist as long as the region.
    unsafe impl Send for Words {}
    // SAFETY: the words are only accessed by atomics.
    unsafe impl Sync for Words {}

    impl Words {
        pub(in super::super) fn new(
            records: usize,
            options: &RegionOptions,
        ) -> Result<Self, RegionError> {
            let region = Arc::new(options.build((records + 1) * WORDS * size_of::<u64>())?);
            Ok(Self {
                start: region.as_ptr().cast(),
                records,
                region,
            })
        }

        /// The memory, for a device that writes the records.
        pub(in super::super) fn region(&self) -> &Arc<MemoryRegion> {
            &self.region
        }

        #[inline(always)]
        pub(in super::super) fn records(&self) -> usize {
            self.records
        }

        /// Word `word` (below [`WORDS`]) of line `line` (up to `records`).
        #[inline(always)]
        fn word(&self, line: usize, word: usize) -> &AtomicU64 {
            debug_assert!(line <= self.records && word < WORDS);
            // SAFETY: the region has `records + 1` lines of `WORDS` words (made so in `new`), is
            // page aligned and zeroed, lives as long as `self`, and is accessed by atomics alone.
            unsafe { self.start.add(line * WORDS + word).as_ref() }
        }

        /// Writes a record, of which the last word is complete with its phase bit.
        #[inline(always)]
        pub(in super::super) fn write(&self, at: u64, words: [u64; WORDS]) {
            let line = at as usize & (self.records - 1);
            for (k, &word) in words[..WORDS - 1].iter().enumerate() {
                self.word(line, k).store(word, Relaxed);
            }
            // Release: pairs with the Acquire in `read`; publishes the words above.
            self.word(line, WORDS - 1).store(words[WORDS - 1], Release);
        }

        /// The record at `at`, if its phase bit is `phase`.
        #[inline(always)]
        pub(in super::super) fn read(&self, at: u64, phase: u64) -> Option<[u64; WORDS]> {
            let line = at as usize & (self.records - 1);
            // Acquire: pairs with the Release in `write`, or with the order in which a device's
            // posted writes become visible.
            let last = self.word(line, WORDS - 1).load(Acquire);
            if last & PHASE != phase {
                return None;
            }
            let mut words = [last; WORDS];
            for (k, word) in words[..WORDS - 1].iter_mut().enumerate() {
                *word = self.word(line, k).load(Relaxed);
            }
            Some(words)
        }

        /// Number of records that the consumer has released.
        #[inline(always)]
        pub(in super::super) fn released(&self) -> u64 {
            // Acquire: pairs with the Release in `release`; the consumer has copied the records
            // before the producer overwrites them.
            self.word(self.records, 0).load(Acquire)
        }

        /// Returns all records before `at` to the producer.
        #[inline(always)]
        pub(in super::super) fn release(&self, at: u64) {
            // Release: pairs with the Acquire in `released`.
            self.word(self.records, 0).store(at, Release);
        }
    }
}

/// The same words for loom. Words 0 to 6 are one cell that loom watches: it reports two accesses
/// that the ordered words do not separate.
#[cfg(loom)]
mod model {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::{Acquire, Release};

    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicU64;
    use pollux_mempool::region::{MemoryRegion, RegionError};

    use super::super::RegionOptions;
    use super::super::record::{PHASE, WORDS};
    use super::mutant;

    struct Line {
        body: UnsafeCell<[u64; WORDS - 1]>,
        last: AtomicU64,
    }

    pub(in super::super) struct Words {
        lines: Box<[Line]>,
        released: AtomicU64,
    }

    // SAFETY: loom checks the accesses to the cells.
    unsafe impl Sync for Words {}

    impl Words {
        #[expect(clippy::unnecessary_wraps, reason = "as the real ones")]
        pub(in super::super) fn new(
            records: usize,
            _: &RegionOptions,
        ) -> Result<Self, RegionError> {
            let line = |_| Line {
                body: UnsafeCell::new([0; WORDS - 1]),
                last: AtomicU64::new(0),
            };
            Ok(Self {
                lines: (0..records).map(line).collect(),
                released: AtomicU64::new(0),
            })
        }

        /// The models have no device, which is the only user of the region.
        pub(in super::super) fn region(&self) -> &Arc<MemoryRegion> {
            unreachable!("modelled words lie in no region")
        }

        pub(in super::super) fn records(&self) -> usize {
            self.lines.len()
        }

        fn line(&self, at: u64) -> &Line {
            &self.lines[at as usize & (self.lines.len() - 1)]
        }

        pub(in super::super) fn write(&self, at: u64, words: [u64; WORDS]) {
            let line = self.line(at);
            if mutant::is("phase-first") {
                line.last.store(words[WORDS - 1], Release);
            }
            // SAFETY: loom checks that no other access runs at the same time.
            line.body
                .with_mut(|body| unsafe { (*body).copy_from_slice(&words[..WORDS - 1]) });
            line.last
                .store(words[WORDS - 1], mutant::ordering("publish", Release));
        }

        pub(in super::super) fn read(&self, at: u64, phase: u64) -> Option<[u64; WORDS]> {
            let line = self.line(at);
            let last = line.last.load(mutant::ordering("observe", Acquire));
            if last & PHASE != phase {
                return None;
            }
            let mut words = [last; WORDS];
            // SAFETY: loom checks that no write runs at the same time.
            line.body
                .with(|body| words[..WORDS - 1].copy_from_slice(unsafe { &*body }));
            Some(words)
        }

        pub(in super::super) fn released(&self) -> u64 {
            self.released.load(mutant::ordering("released", Acquire))
        }

        pub(in super::super) fn release(&self, at: u64) {
            self.released
                .store(at, mutant::ordering("release", Release));
        }
    }
}

/// Selects an order that is wrong on purpose: a model that passes with any order would prove
/// nothing.
#[cfg(loom)]
pub mod mutant {
    use std::cell::Cell;
    use std::sync::atomic::Ordering;

    std::thread_local! {
        static ACTIVE: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Makes `site` wrong, or none, in the models that this thread runs from now on (loom runs all
    /// threads of a model on the thread of the test).
    pub fn set(site: Option<&'static str>) {
        ACTIVE.set(site);
    }

    pub(super) fn is(site: &str) -> bool {
        ACTIVE.get() == Some(site)
    }

    pub(super) fn ordering(site: &str, correct: Ordering) -> Ordering {
        if is(site) { Ordering::Relaxed } else { correct }
    }
}
