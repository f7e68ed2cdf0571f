//! Splits events into views: the hits of one time on one disk.

use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::view::{Hits, MAX_TIMES, View};
use super::word::{PM_BITS, SECOND_DISK, time};
use super::{FinderConfig, MAX_BATCH};
use crate::rich::Hit;
use crate::rich::geometry::{DISKS, PMS, PMS_PER_DISK};
use crate::simd::{Decoder, LANES, Words};

/// A stretch of time, in words of hits: those from one on, up to one that is so much larger.
#[derive(Clone, Copy)]
struct Stretch {
    from: u32,
    length: u32,
}

impl Stretch {
    const ALL: Self = Self {
        from: 0,
        length: u32::MAX,
    };

    /// So much time before and behind that of a hit.
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

/// The hits of all events that are in no view yet: a [word](super::word) each, those of an event
/// from a multiple of [`LANES`] on. A vector is stored whole, wherever its first lane belongs.
#[derive(Debug)]
pub(super) struct Loader {
    words: Box<[u32]>,
    /// The events that may have another view.
    events: Vec<Left>,
}

/// What is left of an event.
#[derive(Clone, Copy, Debug)]
struct Left {
    event: u8,
    /// Where its hits begin, and how many they are.
    start: usize,
    n: usize,
}

impl Default for Loader {
    fn default() -> Self {
        const { assert!(PMS.is_multiple_of(LANES)) };
        Self {
            words: vec![0; MAX_BATCH * PMS + LANES].into_boxed_slice(),
            events: Vec::with_capacity(MAX_BATCH),
        }
    }
}

/// Splits events; how many there were, and how many views they have.
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
        self.by(&Plain)
    }

    #[inline(always)]
    fn vector<W: Words>(self, isa: W::Isa) -> Self::Out {
        self.by(&Vectors::<W>(isa))
    }
}

impl<'e, E: Iterator<Item = &'e [Hit]>> Split<'_, E> {
    /// Each step for all events, before the next one: how one event goes on is known late, and
    /// the CPU would guess it wrongly.
    #[inline(always)]
    fn by(self, way: &impl Way) -> (usize, usize) {
        let Self {
            cfg,
            events,
            loader: Loader {
                words,
                events: lefts,
            },
            views,
            hits: of,
        } = self;
        let enough = |hits: usize| hits + 1 >= usize::from(cfg.min_hits);
        let (mut count, mut start) = (0, 0);
        lefts.clear();
        for hits in events.take(MAX_BATCH) {
            // More than there are photomultipliers cannot come from one event.
            let n = way.load(&mut words[start..], &hits[..hits.len().min(PMS)]);
            if enough(n) {
                let event = count as u8;
                lefts.push(Left { event, start, n });
            }
            start += n.next_multiple_of(LANES);
            count += 1;
        }
        let window = u32::from(cfg.time_window);
        let mut used = 0;
        for _ in 0..MAX_TIMES {
            let mut on = 0;
            for number in 0..lefts.len() {
                let Left { event, start, n } = lefts[number];
                let words = &mut words[start..];
                let mut stretch = Stretch::ALL;
                if window > 0 {
                    let (busiest, near) = way.busiest(words, n, window);
                    if !enough(near) {
                        continue;
                    }
                    stretch = Stretch::around(busiest, window);
                }
                let Some(pair) = views.get_mut(used..used + DISKS) else {
                    break;
                };
                let (starts, places) = of.places(n);
                let (n, taken) = way.take(words, n, stretch, places);
                for (disk, view) in pair.iter_mut().enumerate() {
                    view.begin(event, disk as u8, starts[disk], taken[disk], of);
                }
                used += DISKS;
                lefts[on] = Left { event, start, n };
                on += usize::from(enough(n));
            }
            lefts.truncate(on);
        }
        (count, used)
    }
}

/// The steps of it.
trait Way {
    /// Takes the hits of an event, at most [`PMS`], to the first places of `to`; how many there
    /// are. Those of photomultipliers that there are not are passed over.
    fn load(&self, to: &mut [u32], hits: &[Hit]) -> usize;
    /// Of the first `n` the hit that most others are within `window` of, and how many they are;
    /// of several the first. Where there are many, not every one is asked.
    fn busiest(&self, words: &[u32], n: usize, window: u32) -> (u32, usize);
    /// Takes those of the first `n` hits that are in a stretch of time to the places of their
    /// disks, and what is left to the first places; how many are left, and how many are on each
    /// disk.
    fn take(
        &self,
        words: &mut [u32],
        n: usize,
        stretch: Stretch,
        to: [&mut [u32]; DISKS],
    ) -> (usize, [usize; DISKS]);
}

/// Of so many hits [`Way::busiest`] asks every such one, from the first on.
#[inline(always)]
fn step(hits: usize) -> usize {
    hits.div_ceil(LANES).max(1)
}

/// Hit by hit.
struct Plain;

impl Way for Plain {
    #[inline(always)]
    fn load(&self, to: &mut [u32], hits: &[Hit]) -> usize {
        let sound = |hit: &Hit| {
            let bits = PM_BITS.get(usize::from(hit.pm))?;
            Some(u32::from(hit.fine) << 16 | bits)
        };
        let words = hits.iter().filter_map(sound);
        to.iter_mut()
            .zip(words)
            .map(|(to, word)| *to = word)
            .count()
    }

    #[inline(always)]
    fn busiest(&self, words: &[u32], n: usize, window: u32) -> (u32, usize) {
        let words = &words[..n];
        let mut busiest = (0, 0);
        for &asked in words.iter().step_by(step(words.len())) {
            let stretch = Stretch::around(asked, window);
            let near = words.iter().filter(|&&word| stretch.holds(word)).count();
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
        stretch: Stretch,
        to: [&mut [u32]; DISKS],
    ) -> (usize, [usize; DISKS]) {
        let (mut left, mut on) = (0, [0; DISKS]);
        for i in 0..n {
            let word = words[i];
            let disk = usize::from(word & SECOND_DISK != 0);
            if stretch.holds(word) && on[disk] < PMS_PER_DISK {
                to[disk][on[disk]] = word;
                on[disk] += 1;
            } else {
                words[left] = word;
                left += 1;
            }
        }
        (left, on)
    }
}

/// Sixteen hits at once.
struct Vectors<W: Words>(W::Isa);

impl<W: Words> Vectors<W> {
    /// As [`Stretch::around`], in each lane: from where, and of which length.
    #[inline(always)]
    fn around(&self, words: W, window: u32) -> [W; 2] {
        let (window, last) = (W::splat(self.0, window), W::splat(self.0, u16::MAX.into()));
        let time = words.shr(16);
        let from = (time - time.min(window)).shl(16);
        let to = (time + window).min(last).shl(16);
        [from, (to - from) | last]
    }
}

impl<W: Words> Way for Vectors<W> {
    #[inline(always)]
    fn load(&self, to: &mut [u32], hits: &[Hit]) -> usize {
        let mut n = 0;
        let last = W::splat(self.0, PMS as u32 - 1);
        // In the order of its bytes a hit is its photomultiplier, below its time.
        let words = <[U32]>::ref_from_bytes(hits.as_bytes()).unwrap_or_default();
        for at in (0..words.len()).step_by(LANES) {
            let rest = &words[at..];
            let hits = W::load(self.0, rest);
            let pms = hits & W::splat(self.0, u16::MAX.into());
            let sound = pms.le(last) & first(rest.len());
            let words = (hits - pms) | W::gather(self.0, &PM_BITS, pms);
            if let Some(places) = to[n..].first_chunk_mut() {
                words.compress(sound, places);
                n += sound.count_ones() as usize;
            }
        }
        n
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
        // Four sums, so that none waits for itself.
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
        // Most first, then the first: both in one number.
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
        stretch: Stretch,
        to: [&mut [u32]; DISKS],
    ) -> (usize, [usize; DISKS]) {
        let splat = |value| W::splat(self.0, value);
        let (from, length) = (splat(stretch.from), splat(stretch.length));
        let disk = splat(SECOND_DISK);
        let (mut left, mut on) = (0, [0; DISKS]);
        for at in (0..n).step_by(LANES) {
            let Some(hits) = words[at..].first_chunk() else {
                break;
            };
            let hits = W::of(self.0, hits);
            let there = first(n - at);
            let inside = (hits - from).le(length) & there;
            let second = (hits & disk).eq(disk);
            let mut rest = there;
            for (disk, mut picked) in [inside & !second, inside & second].into_iter().enumerate() {
                let Some(places) = to[disk][on[disk]..].first_chunk_mut() else {
                    continue;
                };
                // A disk has no more: as many of the first lanes as there is room for.
                while on[disk] + picked.count_ones() as usize > PMS_PER_DISK {
                    picked ^= 1 << picked.ilog2();
                }
                hits.compress(picked, places);
                on[disk] += picked.count_ones() as usize;
                rest ^= picked;
            }
            // Behind what was looked at there is room for all sixteen.
            if let Some(places) = words[left..].first_chunk_mut() {
                hits.compress(rest, places);
                left += rest.count_ones() as usize;
            }
        }
        (left, on)
    }
}

/// The first `n` lanes, or all.
#[inline(always)]
fn first(n: usize) -> u16 {
    ((1_u32 << n.min(LANES)) - 1) as u16
}
