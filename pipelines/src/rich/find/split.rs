//! Splits events into views: the hits of one time on one disk.

use super::FinderConfig;
use super::view::{Hits, MAX_TIMES, View};
use crate::rich::Hit;
use crate::rich::geometry::{DISKS, PMS, PMS_PER_DISK};
use crate::simd::{Decoder, LANES, Words};

/// What is in the lanes behind the last hit.
const NO_HIT: Hit = Hit {
    pm: u16::MAX,
    fine: 0,
};
/// What is added to a time that no hit is near to.
const FAR: u32 = 1 << 31;

/// A hit as one word: its time above its photomultiplier, as it lies in memory.
#[inline(always)]
pub(super) fn time(word: u32) -> u32 {
    word >> 16
}

#[inline(always)]
pub(super) fn pm(word: u32) -> usize {
    usize::from(word as u16)
}

/// A stretch of time: what is added to a time inside it comes to no more than its length.
#[derive(Clone, Copy)]
struct Stretch {
    add: u32,
    length: u32,
}

impl Stretch {
    const ALL: Self = Self {
        add: 0,
        length: u32::MAX,
    };

    /// So much time before and behind.
    #[inline(always)]
    fn around(time: u32, window: u32) -> Self {
        Self {
            add: window.wrapping_sub(time),
            length: 2 * window,
        }
    }

    #[inline(always)]
    fn holds(self, time: u32) -> bool {
        time.wrapping_add(self.add) <= self.length
    }
}

/// The hits of an event that are in no view yet. A vector is stored whole, wherever its first lane
/// belongs.
#[derive(Debug)]
pub(super) struct Loader {
    words: Box<[u32]>,
    n: usize,
    /// Those of one view each.
    picked: [Box<[u32]>; DISKS],
}

impl Default for Loader {
    fn default() -> Self {
        let places = |hits: usize| vec![0; hits + LANES].into_boxed_slice();
        Self {
            words: places(PMS),
            n: 0,
            picked: [places(PMS_PER_DISK), places(PMS_PER_DISK)],
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
                    let (time, near) = way.busiest(&loader.words[..loader.n], window);
                    if near + 1 < usize::from(cfg.min_hits) {
                        break;
                    }
                    stretch = Stretch::around(time, window);
                }
                let on = way.take(loader, stretch);
                for (disk, view) in pair.iter_mut().enumerate() {
                    let picked = &loader.picked[disk][..on[disk]];
                    view.begin(count as u8, disk as u8, picked, of);
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
    /// The time that most others are within `window` of, and how many they are; of several the
    /// first. Where there are many, not every one is asked.
    fn busiest(&self, words: &[u32], window: u32) -> (u32, usize);
    /// Picks the hits of a stretch of time; how many on each disk.
    fn take(&self, loader: &mut Loader, stretch: Stretch) -> [usize; DISKS];
}

/// What [`Way::busiest`] asks for.
#[inline(always)]
fn asked(words: &[u32]) -> impl Iterator<Item = u32> {
    let step = words.len().div_ceil(LANES).max(1);
    words.iter().step_by(step).map(|&word| time(word))
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
        for asked in asked(words) {
            let stretch = Stretch::around(asked, window);
            let near = words.iter().filter(|&&word| stretch.holds(time(word)));
            let near = near.count();
            if near > busiest.1 {
                busiest = (asked, near);
            }
        }
        busiest
    }

    #[inline(always)]
    fn take(&self, loader: &mut Loader, stretch: Stretch) -> [usize; DISKS] {
        let (mut left, mut on) = (0, [0; DISKS]);
        for i in 0..loader.n {
            let word = loader.words[i];
            let disk = usize::from(pm(word) >= PMS_PER_DISK);
            if stretch.holds(time(word)) && on[disk] < PMS_PER_DISK {
                loader.picked[disk][on[disk]] = word;
                on[disk] += 1;
            } else {
                loader.words[left] = word;
                left += 1;
            }
        }
        loader.n = left;
        on
    }
}

/// Sixteen hits at once.
struct Vectors<W: Words>(W::Isa);

impl<W: Words> Vectors<W> {
    /// The photomultipliers of words.
    #[inline(always)]
    fn pms(&self, words: W) -> W {
        words & W::splat(self.0, u16::MAX.into())
    }

    /// Those of the hits whose photomultipliers there are.
    #[inline(always)]
    fn add(&self, loader: &mut Loader, hits: [Hit; LANES]) {
        let words = W::of(self.0, &zerocopy::transmute!(hits));
        let sound = self.pms(words).le(W::splat(self.0, PMS as u32 - 1));
        if let Some(places) = loader.words[loader.n..].first_chunk_mut() {
            words.compress(sound, places);
            loader.n += sound.count_ones() as usize;
        }
    }
}

impl<W: Words> Way for Vectors<W> {
    #[inline(always)]
    fn load(&self, loader: &mut Loader, hits: &[Hit]) {
        loader.n = 0;
        let (whole, rest) = hits.as_chunks();
        for &hits in whole {
            self.add(loader, hits);
        }
        if !rest.is_empty() {
            let mut padded = [NO_HIT; LANES];
            padded[..rest.len()].copy_from_slice(rest);
            self.add(loader, padded);
        }
    }

    #[inline(always)]
    fn busiest(&self, words: &[u32], window: u32) -> (u32, usize) {
        let (mut times, mut add) = ([0; LANES], [FAR; LANES]);
        for ((time, add), asked) in times.iter_mut().zip(&mut add).zip(asked(words)) {
            *time = asked;
            *add = Stretch::around(asked, window).add;
        }
        let (add, length) = (W::of(self.0, &add), W::splat(self.0, 2 * window));
        // Four sums, so that none waits for itself.
        let mut sums = [W::splat(self.0, 0); 4];
        let (fours, rest) = words.as_chunks::<4>();
        for words in fours {
            for (sum, &word) in sums.iter_mut().zip(words) {
                *sum = *sum + (W::splat(self.0, time(word)) + add).at_most(length);
            }
        }
        for (sum, &word) in sums.iter_mut().zip(rest) {
            *sum = *sum + (W::splat(self.0, time(word)) + add).at_most(length);
        }
        let near = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        // Most first, then the first: both in one number.
        let order = W::of(self.0, &std::array::from_fn(|i| (LANES - 1 - i) as u32));
        let best = (near.shl(LANES.ilog2()) | order).largest() as usize;
        (times[LANES - 1 - best % LANES], best / LANES)
    }

    #[inline(always)]
    fn take(&self, loader: &mut Loader, stretch: Stretch) -> [usize; DISKS] {
        let splat = |value| W::splat(self.0, value);
        let (add, length) = (splat(stretch.add), splat(stretch.length));
        let second = splat(PMS_PER_DISK as u32);
        let (mut left, mut on) = (0, [0; DISKS]);
        for at in (0..loader.n).step_by(LANES) {
            let Some(words) = loader.words[at..].first_chunk() else {
                break;
            };
            let words = W::of(self.0, words);
            let there = u16::MAX >> LANES.saturating_sub(loader.n - at);
            let inside = (words.shr(16) + add).le(length) & there;
            let second = second.le(self.pms(words));
            let mut rest = there;
            for (disk, on_disk) in [inside & !second, inside & second].into_iter().enumerate() {
                let Some(places) = loader.picked[disk][on[disk]..].first_chunk_mut() else {
                    continue;
                };
                // A disk has no more: as many of the first lanes as there is room for.
                let mut picked = on_disk;
                while on[disk] + picked.count_ones() as usize > PMS_PER_DISK {
                    picked ^= 1 << picked.ilog2();
                }
                words.compress(picked, places);
                on[disk] += picked.count_ones() as usize;
                rest ^= picked;
            }
            // Behind what was looked at there is room for all sixteen.
            if let Some(places) = loader.words[left..].first_chunk_mut() {
                words.compress(rest, places);
                left += rest.count_ones() as usize;
            }
        }
        loader.n = left;
        on
    }
}
