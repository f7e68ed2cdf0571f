//! Splits events into views: the hits of one time on one disk.

use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::FinderConfig;
use super::view::{Hits, MAX_TIMES, View};
use crate::rich::Hit;
use crate::rich::geometry::{DISKS, PMS, PMS_PER_DISK};
use crate::simd::{Decoder, LANES, Words};

/// A hit as one word: its time above its photomultiplier, as it lies in memory.
#[inline(always)]
pub(super) fn time(word: u32) -> u32 {
    word >> 16
}

#[inline(always)]
pub(super) fn pm(word: u32) -> usize {
    usize::from(word as u16)
}

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

/// The hits of an event that are in no view yet. A vector is stored whole, wherever its first lane
/// belongs.
#[derive(Debug)]
pub(super) struct Loader {
    words: Box<[u32]>,
    n: usize,
}

impl Default for Loader {
    fn default() -> Self {
        Self {
            words: vec![0; PMS + LANES].into_boxed_slice(),
            n: 0,
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
    #[inline(always)]
    fn by(self, way: &impl Way) -> (usize, usize) {
        let Self {
            cfg,
            events,
            loader,
            views,
            hits: of,
        } = self;
        let (mut used, mut count) = (0, 0);
        for hits in events {
            // More than there are photomultipliers cannot come from one event.
            way.load(loader, &hits[..hits.len().min(PMS)]);
            let pairs = views[used..].as_chunks_mut::<DISKS>().0;
            for pair in pairs.iter_mut().take(MAX_TIMES) {
                if loader.n + 1 < usize::from(cfg.min_hits) {
                    break;
                }
                let mut stretch = Stretch::ALL;
                if cfg.time_window > 0 {
                    let window = u32::from(cfg.time_window);
                    let (busiest, near) = way.busiest(&loader.words[..loader.n], window);
                    if near + 1 < usize::from(cfg.min_hits) {
                        break;
                    }
                    stretch = Stretch::around(busiest, window);
                }
                let (starts, places) = of.places(loader.n);
                let on = way.take(loader, stretch, places);
                for (disk, view) in pair.iter_mut().enumerate() {
                    view.begin(count as u8, disk as u8, starts[disk], on[disk], of);
                }
                used += DISKS;
            }
            count += 1;
        }
        (count, used)
    }
}

/// The steps of it.
trait Way {
    /// Takes the hits of an event, at most [`PMS`]; those of photomultipliers that there are not are
    /// passed over.
    fn load(&self, loader: &mut Loader, hits: &[Hit]);
    /// The hit that most others are within `window` of, and how many they are; of several the
    /// first. Where there are many, not every one is asked.
    fn busiest(&self, words: &[u32], window: u32) -> (u32, usize);
    /// Takes the hits of a stretch of time to the places of their disks, where photomultipliers are
    /// counted from 0; how many on each disk.
    fn take(&self, of: &mut Loader, stretch: Stretch, to: [&mut [u32]; DISKS]) -> [usize; DISKS];
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
    fn load(&self, loader: &mut Loader, hits: &[Hit]) {
        loader.n = 0;
        let sound = hits.iter().filter(|hit| usize::from(hit.pm) < PMS);
        for (&hit, word) in sound.zip(&mut loader.words) {
            *word = zerocopy::transmute!(hit);
            loader.n += 1;
        }
    }

    #[inline(always)]
    fn busiest(&self, words: &[u32], window: u32) -> (u32, usize) {
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
    fn take(&self, of: &mut Loader, stretch: Stretch, to: [&mut [u32]; DISKS]) -> [usize; DISKS] {
        let (mut left, mut on) = (0, [0; DISKS]);
        for i in 0..of.n {
            let word = of.words[i];
            let disk = usize::from(pm(word) >= PMS_PER_DISK);
            if stretch.holds(word) && on[disk] < PMS_PER_DISK {
                to[disk][on[disk]] = word - (disk * PMS_PER_DISK) as u32;
                on[disk] += 1;
            } else {
                of.words[left] = word;
                left += 1;
            }
        }
        of.n = left;
        on
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

    /// The photomultipliers of words.
    #[inline(always)]
    fn pms(&self, words: W) -> W {
        words & W::splat(self.0, u16::MAX.into())
    }
}

impl<W: Words> Way for Vectors<W> {
    #[inline(always)]
    fn load(&self, loader: &mut Loader, hits: &[Hit]) {
        loader.n = 0;
        let last = W::splat(self.0, PMS as u32 - 1);
        // In the order of its bytes a hit is photomultiplier and time, as is a word.
        let words = <[U32]>::ref_from_bytes(hits.as_bytes()).unwrap_or_default();
        for at in (0..words.len()).step_by(LANES) {
            let rest = &words[at..];
            let words = W::load(self.0, rest);
            let sound = self.pms(words).le(last) & first(rest.len());
            if let Some(places) = loader.words[loader.n..].first_chunk_mut() {
                words.compress(sound, places);
                loader.n += sound.count_ones() as usize;
            }
        }
    }

    #[inline(always)]
    fn busiest(&self, words: &[u32], window: u32) -> (u32, usize) {
        let splat = |value| W::splat(self.0, value);
        let step = step(words.len());
        let places = W::of(self.0, &std::array::from_fn(|i| (i * step) as u32));
        let asked = W::gather(self.0, words, places);
        let [from, length] = self.around(asked, window);
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
    fn take(&self, of: &mut Loader, stretch: Stretch, to: [&mut [u32]; DISKS]) -> [usize; DISKS] {
        let splat = |value| W::splat(self.0, value);
        let (from, length) = (splat(stretch.from), splat(stretch.length));
        let a_disk = splat(PMS_PER_DISK as u32);
        let (mut left, mut on) = (0, [0; DISKS]);
        for at in (0..of.n).step_by(LANES) {
            let Some(words) = of.words[at..].first_chunk() else {
                break;
            };
            let words = W::of(self.0, words);
            let there = first(of.n - at);
            let inside = (words - from).le(length) & there;
            let second = a_disk.le(self.pms(words));
            let disks = [(words, inside & !second), (words - a_disk, inside & second)];
            let mut rest = there;
            for (disk, (numbered, mut picked)) in disks.into_iter().enumerate() {
                let Some(places) = to[disk][on[disk]..].first_chunk_mut() else {
                    continue;
                };
                // A disk has no more: as many of the first lanes as there is room for.
                while on[disk] + picked.count_ones() as usize > PMS_PER_DISK {
                    picked ^= 1 << picked.ilog2();
                }
                numbered.compress(picked, places);
                on[disk] += picked.count_ones() as usize;
                rest ^= picked;
            }
            // Behind what was looked at there is room for all sixteen.
            if let Some(places) = of.words[left..].first_chunk_mut() {
                words.compress(rest, places);
                left += rest.count_ones() as usize;
            }
        }
        of.n = left;
        on
    }
}

/// The first `n` lanes, or all.
#[inline(always)]
fn first(n: usize) -> u16 {
    ((1_u32 << n.min(LANES)) - 1) as u16
}
