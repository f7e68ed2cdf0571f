//! Splits events into views: the hits of one time on one disk.
//!
//! Each disk has its own times: hits on the other disk do not hide its rings.

use pollux_pipelines::simd::{Decoder, LANES, Words};
use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::config::FinderConfig;
use super::ring::MAX_BATCH;
use super::view::{Hits, MAX_TIMES, View};
use super::word::{PM_BITS, SECOND_DISK, time};
use crate::rich::Hit;
use crate::rich::geometry::{DISKS, PMS, PMS_PER_DISK};

/// A time window in terms of hit words: a lower bound, and a length.
#[derive(Clone, Copy)]
struct TimeWindow {
    from: u32,
    length: u32,
}

impl TimeWindow {
    const ALL: Self = Self {
        from: 0,
        length: u32::MAX,
    };

    /// The window around a hit, with this time before and after it.
    #[inline(always)]
    fn around(word: u32, window: u32) -> Self {
        let (time, last) = (time(word), u32::from(u16::MAX));
        let (from, to) = (time.saturating_sub(window), (time + window).min(last));
        Self {
            from: from << 16,
            length: (to - from) << 16 | last,
        }
    }

    #[inline(always)]
    fn holds(self, word: u32) -> bool {
        word.wrapping_sub(self.from) <= self.length
    }
}

/// The hits of all events that are in no view yet, one [word](super::word) each. Those of disk 0 of
/// all events come before those of disk 1, and the hits of each event begin at a multiple of
/// [`LANES`]. Vectors are stored whole, from any place on.
#[derive(Debug)]
pub(super) struct Loader {
    words: Box<[u32]>,
    /// The disks that may have another view.
    disks: Vec<Remaining>,
}

/// Remaining hits of one disk of an event.
#[derive(Clone, Copy, Debug)]
struct Remaining {
    event: u8,
    disk: u8,
    /// Index of the first hit, and number of hits.
    start: usize,
    n: usize,
}

/// Capacity for the hits of one disk over all events.
const PLACES: usize = MAX_BATCH * PMS_PER_DISK + LANES;

impl Default for Loader {
    fn default() -> Self {
        const { assert!(PMS_PER_DISK.is_multiple_of(LANES)) };
        Self {
            words: vec![0; DISKS * PLACES].into_boxed_slice(),
            disks: Vec::with_capacity(DISKS * MAX_BATCH),
        }
    }
}

/// Splits events; returns the number of events and of views.
pub(super) struct Split<'a, E> {
    pub(super) cfg: &'a FinderConfig,
    pub(super) events: E,
    pub(super) loader: &'a mut Loader,
    pub(super) views: &'a mut [View],
    pub(super) hits: &'a mut Hits,
}

impl<'e, E: Iterator<Item = &'e [Hit]>> Decoder for Split<'_, E> {
    type Out = (usize, usize);

    #[inline(always)]
    fn scalar(self) -> Self::Out {
        self.by(&ScalarKernel)
    }

    #[inline(always)]
    fn vector<W: Words>(self, isa: W::Isa) -> Self::Out {
        self.by(&VectorKernel::<W>(isa))
    }
}

impl<'e, E: Iterator<Item = &'e [Hit]>> Split<'_, E> {
    /// Each step handles all events before the next step starts. The branches of a single event
    /// resolve late, and the CPU would mispredict them.
    #[inline(always)]
    fn by(self, kernel: &impl SplitKernel) -> (usize, usize) {
        let Self {
            cfg,
            events,
            loader: Loader {
                words,
                disks: remaining,
            },
            views,
            hits: of,
        } = self;
        let enough = |hits: usize| hits + 1 >= usize::from(cfg.min_hits);
        let (mut count, mut starts) = (0, [0, PLACES]);
        remaining.clear();
        for hits in events.take(MAX_BATCH) {
            let event = count as u8;
            let (first, second) = words.split_at_mut(PLACES);
            let to = [&mut first[starts[0]..], &mut second[starts[1] - PLACES..]];
            let loaded = kernel.load(to, hits);
            for (disk, (start, n)) in starts.iter_mut().zip(loaded).enumerate() {
                if enough(n) {
                    remaining.push(Remaining {
                        event,
                        disk: disk as u8,
                        start: *start,
                        n,
                    });
                }
                *start += n.next_multiple_of(LANES);
            }
            count += 1;
        }
        let window = u32::from(cfg.time_window);
        let mut used = 0;
        for _ in 0..MAX_TIMES {
            let mut on = 0;
            for number in 0..remaining.len() {
                let left = remaining[number];
                let words = &mut words[left.start..];
                let mut span = TimeWindow::ALL;
                if window > 0 {
                    let (busiest, near) = kernel.busiest(words, left.n, window);
                    if !enough(near) {
                        continue;
                    }
                    span = TimeWindow::around(busiest, window);
                }
                let Some(view) = views.get_mut(used) else {
                    break;
                };
                let (start, places) = of.places();
                let (n, taken) = kernel.take(words, left.n, span, places);
                view.begin(left.event, left.disk, start, taken, of);
                used += 1;
                remaining[on] = Remaining { n, ..left };
                on += usize::from(enough(n));
            }
            remaining.truncate(on);
        }
        (count, used)
    }
}

/// Operations of the split, scalar or vectorized.
trait SplitKernel {
    /// Copies the hits of an event to the beginnings of the areas of their disks, and returns their
    /// numbers: at most [`PMS_PER_DISK`] each, since an event cannot have more. Ignores hits with
    /// invalid photomultiplier indices.
    fn load(&self, to: [&mut [u32]; DISKS], hits: &[Hit]) -> [usize; DISKS];
    /// Of the first `n` hits, finds the one with the most others within `window`, the first of
    /// several; returns it with that number. Where there are many hits, tests a subset.
    fn busiest(&self, words: &[u32], n: usize, window: u32) -> (u32, usize);
    /// Moves those of the first `n` hits that are in a time window to `to`, and compacts the others
    /// to the front. Returns the number of remaining hits and of moved hits.
    fn take(
        &self,
        words: &mut [u32],
        n: usize,
        window: TimeWindow,
        to: &mut [u32],
    ) -> (usize, usize);
}

/// [`SplitKernel::busiest`] tests every hit whose index is a multiple of this, for so many hits.
#[inline(always)]
fn step(hits: usize) -> usize {
    hits.div_ceil(LANES).max(1)
}

/// Scalar implementation.
struct ScalarKernel;

impl SplitKernel for ScalarKernel {
    #[inline(always)]
    fn load(&self, to: [&mut [u32]; DISKS], hits: &[Hit]) -> [usize; DISKS] {
        let mut on = [0; DISKS];
        for hit in hits {
            let Some(&bits) = PM_BITS.get(usize::from(hit.pm)) else {
                continue;
            };
            let disk = usize::from(bits & SECOND_DISK != 0);
            if on[disk] < PMS_PER_DISK {
                to[disk][on[disk]] = u32::from(hit.fine) << 16 | bits;
                on[disk] += 1;
            }
        }
        on
    }

    #[inline(always)]
    fn busiest(&self, words: &[u32], n: usize, window: u32) -> (u32, usize) {
        let words = &words[..n];
        let mut busiest = (0, 0);
        for &asked in words.iter().step_by(step(words.len())) {
            let window = TimeWindow::around(asked, window);
            let near = words.iter().filter(|&&word| window.holds(word)).count();
            if near > busiest.1 {
                busiest = (asked, near);
            }
        }
        busiest
    }

    #[inline(always)]
    fn take(
        &self,
        words: &mut [u32],
        n: usize,
        window: TimeWindow,
        to: &mut [u32],
    ) -> (usize, usize) {
        let (mut left, mut taken) = (0, 0);
        for i in 0..n {
            let word = words[i];
            if window.holds(word) {
                to[taken] = word;
                taken += 1;
            } else {
                words[left] = word;
                left += 1;
            }
        }
        (left, taken)
    }
}

/// Vector implementation, sixteen hits at once.
struct VectorKernel<W: Words>(W::Isa);

impl<W: Words> VectorKernel<W> {
    /// As [`TimeWindow::around`], in each lane: lower bound and length.
    #[inline(always)]
    fn around(&self, words: W, window: u32) -> [W; 2] {
        let (window, last) = (W::splat(self.0, window), W::splat(self.0, u16::MAX.into()));
        let time = words.shr(16);
        let from = (time - time.min(window)).shl(16);
        let to = (time + window).min(last).shl(16);
        [from, (to - from) | last]
    }
}

impl<W: Words> SplitKernel for VectorKernel<W> {
    #[inline(always)]
    fn load(&self, to: [&mut [u32]; DISKS], hits: &[Hit]) -> [usize; DISKS] {
        let splat = |value| W::splat(self.0, value);
        let (last, second_disk) = (splat(PMS as u32 - 1), splat(SECOND_DISK));
        let mut on = [0; DISKS];
        // In its bytes a hit is its photomultiplier, then its time (the higher half).
        let words = <[U32]>::ref_from_bytes(hits.as_bytes()).unwrap_or_default();
        for at in (0..words.len()).step_by(LANES) {
            let rest = &words[at..];
            let hits = W::load(self.0, rest);
            let pms = hits & splat(u16::MAX.into());
            let sound = pms.le(last) & first(rest.len());
            let words = (hits - pms) | W::gather(self.0, &PM_BITS, pms);
            let second = (words & second_disk).eq(second_disk);
            for (disk, mut picked) in [sound & !second, sound & second].into_iter().enumerate() {
                let Some(places) = to[disk][on[disk]..].first_chunk_mut() else {
                    continue;
                };
                // Limits the first lanes to the free places.
                while on[disk] + picked.count_ones() as usize > PMS_PER_DISK {
                    picked ^= 1 << picked.ilog2();
                }
                words.compress(picked, places);
                on[disk] += picked.count_ones() as usize;
            }
        }
        on
    }

    #[inline(always)]
    fn busiest(&self, words: &[u32], n: usize, window: u32) -> (u32, usize) {
        let splat = |value| W::splat(self.0, value);
        let step = step(n);
        let asked = match words.as_chunks().0 {
            [words, ..] if step == 1 => W::of(self.0, words),
            [words, more, ..] if step == 2 => W::evens(self.0, [words, more]),
            _ => {
                let places = W::of(self.0, &std::array::from_fn(|i| (i * step) as u32));
                W::gather(self.0, words, places)
            }
        };
        let [from, length] = self.around(asked, window);
        let words = &words[..n];
        // Four independent sums.
        let mut sums = [splat(0); 4];
        let (fours, rest) = words.as_chunks::<4>();
        for words in fours {
            for (sum, &word) in sums.iter_mut().zip(words) {
                *sum = *sum + (splat(word) - from).at_most(length);
            }
        }
        for (sum, &word) in sums.iter_mut().zip(rest) {
            *sum = *sum + (splat(word) - from).at_most(length);
        }
        let near = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        let near = near.only(first(words.len().div_ceil(step)));
        // Largest count first, then the lowest index, in one number.
        let order = W::of(self.0, &std::array::from_fn(|i| (LANES - 1 - i) as u32));
        let best = (near.shl(LANES.ilog2()) | order).largest() as usize;
        let mut lanes = [0; LANES];
        asked.store(&mut lanes);
        (lanes[LANES - 1 - best % LANES], best / LANES)
    }

    #[inline(always)]
    fn take(
        &self,
        words: &mut [u32],
        n: usize,
        window: TimeWindow,
        to: &mut [u32],
    ) -> (usize, usize) {
        let from = W::splat(self.0, window.from);
        let length = W::splat(self.0, window.length);
        let (mut left, mut taken) = (0, 0);
        for at in (0..n).step_by(LANES) {
            let Some(hits) = words[at..].first_chunk() else {
                break;
            };
            let hits = W::of(self.0, hits);
            let there = first(n - at);
            let inside = (hits - from).le(length) & there;
            if let Some(places) = to[taken..].first_chunk_mut() {
                hits.compress(inside, places);
                taken += inside.count_ones() as usize;
            }
            // The buffer has at least sixteen places beyond this point.
            if let Some(places) = words[left..].first_chunk_mut() {
                hits.compress(there & !inside, places);
                left += (there & !inside).count_ones() as usize;
            }
        }
        (left, taken)
    }
}

/// The first `n` lanes, or all.
#[inline(always)]
fn first(n: usize) -> u16 {
    ((1_u32 << n.min(LANES)) - 1) as u16
}
