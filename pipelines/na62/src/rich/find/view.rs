//! What the finder looks at: the hits of one time on one disk.

use pollux_pipelines::simd::{LANES, Lanes};

use super::seeds::Numbers;
use super::word::{time, x, y};
use super::{FinderConfig, MAX_BATCH, MAX_RINGS_PER_DISK, Ring};
use crate::rich::geometry::{DISKS, PMS_PER_DISK};
use crate::rich::lanes::{Alike, Lane, NOWHERE, PerLane};

/// Most times at which a disk of an event is looked at: that of the event, and those of others in its
/// slot.
pub(super) const MAX_TIMES: usize = 4;
/// Views of a batch.
pub(super) const MAX_VIEWS: usize = MAX_BATCH * MAX_TIMES * DISKS;
/// Places for the hits of all views. A vector is stored whole, wherever its first lane belongs, so
/// behind each view there may be one more.
const PLACES: usize = MAX_VIEWS * (PMS_PER_DISK + LANES);
/// Rings of a view: one more than a disk may have, which tells that there are too many.
pub(super) const PLACES_FOR_RINGS: usize = MAX_RINGS_PER_DISK + 1;
/// Up to so many lanes are filled one by one, more of them row by row.
const FEW: usize = 4;

/// Scores that differ by less are those of the same rings.
const SAME: f32 = 0.01;

/// The hits of all views, a [word](super::word) each.
#[derive(Debug)]
pub(super) struct Hits {
    words: Box<[u32]>,
    /// The first place that is free.
    end: usize,
    /// Hits of one view: where they are, x^2 + y^2, and when they were.
    x: Box<[f32]>,
    y: Box<[f32]>,
    z: Box<[f32]>,
    time: Box<[f32]>,
    /// Those that a ring has claimed.
    claimed: Box<[u32]>,
}

impl Default for Hits {
    fn default() -> Self {
        // Whole vectors of them.
        let numbers = || vec![0.0; PMS_PER_DISK + LANES].into_boxed_slice();
        let words = |places| vec![0; places].into_boxed_slice();
        Self {
            words: words(PLACES),
            end: 0,
            x: numbers(),
            y: numbers(),
            z: numbers(),
            time: numbers(),
            claimed: words(PMS_PER_DISK),
        }
    }
}

impl Hits {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    /// Where the hits of one more view begin, and places for them.
    #[inline(always)]
    pub(super) fn places(&mut self) -> (usize, &mut [u32]) {
        (self.end, &mut self.words[self.end..])
    }

    /// For each lane the hits of a view, one behind another; none where there is no view.
    #[inline(always)]
    pub(super) fn spread<V: Lanes>(&mut self, isa: V::Isa, of: &[Lane; LANES], to: &mut PerLane) {
        let rows = to.begin(of);
        if of.iter().filter(|lane| lane.total > 0).count() <= FEW {
            to.empty();
            for (lane, of) in of.iter().enumerate().filter(|(_, lane)| lane.total > 0) {
                self.points(of.start, of.total);
                let [x, y, time] = [&self.x, &self.y, &self.time].map(|points| &points[..of.total]);
                to.column(lane, x, y);
                to.times(lane, time);
            }
            return;
        }
        let starts = of.map(|lane| lane.start as u32);
        let totals = V::load(isa, &of.map(|lane| lane.total as f32));
        let nowhere = V::splat(isa, NOWHERE);
        for i in 0..rows {
            let there = V::splat(isa, (i + 1) as f32).le(totals);
            let words = V::gather(isa, &self.words, &starts.map(|start| start + i as u32));
            let at_x = V::load(isa, &words.map(x)).or_else(there, nowhere);
            let at_y = V::load(isa, &words.map(y));
            let times = V::load(isa, &words.map(|word| time(word) as i32 as f32));
            to.row(i, at_x.store(), at_y.store(), times.store());
        }
    }

    /// Unpacks so many hits.
    #[inline(always)]
    fn points(&mut self, start: usize, n: usize) {
        let words = &self.words[start..start + n];
        let place = self.x.iter_mut().zip(&mut self.y).zip(&mut self.z);
        for ((((at_x, at_y), z), at), &word) in place.zip(&mut self.time).zip(words) {
            (*at_x, *at_y, *at) = (x(word), y(word), time(word) as i32 as f32);
            *z = *at_x * *at_x + *at_y * *at_y;
        }
    }

    /// The hits of a view in whole vectors: behind the last there is [`NOWHERE`].
    #[inline(always)]
    pub(super) fn vectors(&mut self, of: Lane) -> Vectors<'_> {
        self.points(of.start, of.total);
        let end = of.total.next_multiple_of(LANES);
        self.x[of.total..end].fill(NOWHERE);
        let [x, y, time] = [&self.x, &self.y, &self.time].map(|of| of[..end].as_chunks().0);
        Vectors {
            n: of.total,
            x,
            y,
            time,
        }
    }

    /// Puts the hits of a view into another order, the same for as many (D. E. Knuth, "The Art of
    /// Computer Programming" 2, algorithm 3.4.2P).
    fn shuffle(&mut self, of: Lane) {
        let words = &mut self.words[of.start..of.start + of.total];
        let mut numbers = Numbers::default();
        for n in (2..=words.len()).rev() {
            words.swap(n - 1, numbers.below(n));
        }
    }

    /// Puts those of a view's own hits that were claimed behind the others.
    #[inline(always)]
    fn claim(&mut self, start: usize, own: usize, claimed: impl Fn(usize) -> bool) {
        let words = &mut self.words[start..start + own];
        let (mut left, mut taken) = (0, 0);
        // Without branches, which nobody could foretell.
        for i in 0..own {
            let (word, gone) = (words[i], claimed(i));
            words[left] = word;
            self.claimed[taken] = word;
            left += usize::from(!gone);
            taken += usize::from(gone);
        }
        words[left..].copy_from_slice(&self.claimed[..taken]);
    }
}

/// Hits of one view, sixteen at a time.
pub(super) struct Vectors<'a> {
    /// How many they are.
    pub(super) n: usize,
    pub(super) x: &'a [[f32; LANES]],
    pub(super) y: &'a [[f32; LANES]],
    pub(super) time: &'a [[f32; LANES]],
}

/// Rings that have been found on each disk of each event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken([[u8; DISKS]; MAX_BATCH]);

impl Taken {
    #[inline(always)]
    fn on(&mut self, view: &View) -> Option<&mut u8> {
        let disks = self.0.get_mut(usize::from(view.event))?;
        disks.get_mut(usize::from(view.disk))
    }

    /// Of a view's rings, which were `before`, there are `now` so many.
    #[inline(always)]
    pub(super) fn replace(&mut self, view: &View, before: usize, now: usize) {
        if let Some(n) = self.on(view) {
            *n = (usize::from(*n) + now).saturating_sub(before) as u8;
        }
    }
}

/// Rings that explain the hits of a view together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solution {
    rings: [Ring; PLACES_FOR_RINGS],
    n: usize,
    /// How well they explain them.
    score: f32,
}

impl Solution {
    #[inline(always)]
    pub(super) fn rings(&self) -> &[Ring] {
        self.rings.get(..self.n).unwrap_or(&[])
    }

    #[inline(always)]
    pub(super) fn rings_mut(&mut self) -> &mut [Ring] {
        self.rings.get_mut(..self.n).unwrap_or_default()
    }

    /// Without ring `i`.
    pub(super) fn remove(&mut self, i: usize) {
        self.rings[i..self.n].rotate_left(1);
        self.n -= 1;
    }
}

/// The hits of one time on one disk, and the rings in them.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Where its hits begin, and how many there are; the first `own` have not been claimed by a
    /// ring.
    hits: Lane,
    pub(super) event: u8,
    disk: u8,
    /// The rings that were found.
    pub(super) found: Solution,
    /// The best ones of earlier searches, if there were any.
    before: Option<Solution>,
}

impl View {
    /// Begins with so many hits at these [places](Hits::places).
    #[inline(always)]
    pub(super) fn begin(&mut self, event: u8, disk: u8, start: usize, n: usize, hits: &mut Hits) {
        hits.end = start + n;
        self.hits = Lane {
            start,
            total: n,
            own: n,
        };
        (self.event, self.disk, self.found.n) = (event, disk, 0);
        self.before = None;
    }

    /// Where its hits are.
    #[inline(always)]
    pub(super) fn hits(&self) -> Lane {
        self.hits
    }

    /// Those that no ring has claimed.
    #[inline(always)]
    pub(super) fn unclaimed<'a>(&self, hits: &'a mut Hits) -> Alike<'a> {
        self.alike(hits, self.hits.own)
    }

    /// All of them.
    #[inline(always)]
    pub(super) fn all<'a>(&self, hits: &'a mut Hits) -> Alike<'a> {
        self.alike(hits, self.hits.total)
    }

    #[inline(always)]
    fn alike<'a>(&self, hits: &'a mut Hits, n: usize) -> Alike<'a> {
        let Lane { start, own, .. } = self.hits;
        hits.points(start, n);
        let [x, y, z, time] = [&hits.x, &hits.y, &hits.z, &hits.time].map(|of| &of[..n]);
        Alike { x, y, z, time, own }
    }

    /// Whether there may be one more ring: one of its hits may be another's. One more than a disk
    /// may have is looked for, so that it is known when there are too many.
    #[inline(always)]
    pub(super) fn may_have_more(&self, cfg: &FinderConfig, taken: &mut Taken) -> bool {
        self.hits.own + 1 >= usize::from(cfg.min_hits)
            && taken.on(self).is_some_and(|n| *n <= cfg.max_rings)
    }

    /// Adds a ring that has so many of the view's own hits; `claimed` says of each whether it has
    /// it.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        (ring, own): (Ring, usize),
        claimed: impl Fn(usize) -> bool,
        of: &mut Hits,
        cfg: &FinderConfig,
        taken: &mut Taken,
    ) {
        let disk = self.disk;
        if let Some(slot) = self.found.rings.get_mut(self.found.n) {
            *slot = Ring { disk, ..ring };
            self.found.n += 1;
        }
        if let Some(n) = taken.on(self) {
            *n += 1;
        }
        let before = self.hits.own;
        self.hits.own -= own;
        // If no ring can be left, nobody asks which hits they are.
        if self.may_have_more(cfg, taken) {
            of.claim(self.hits.start, before, claimed);
        }
    }

    /// Begins again with all hits, in another order: other circles are proposed then. What was
    /// found, of this score, is kept if it is the best so far.
    pub(super) fn again(&mut self, score: f32, of: &mut Hits, taken: &mut Taken) {
        of.shuffle(self.hits);
        taken.replace(self, self.found.n, 0);
        self.found.score = score;
        self.keep_best();
        self.before = Some(self.found);
        self.found.n = 0;
        self.hits.own = self.hits.total;
    }

    /// Whether it has been searched before.
    #[inline(always)]
    pub(super) fn is_searched_again(&self) -> bool {
        self.before.is_some()
    }

    /// Whether an earlier search came to the same rings, as a score like this one's says.
    #[inline(always)]
    pub(super) fn had(&self, score: f32) -> bool {
        let same = |before: &Solution| (before.score - score).abs() < SAME;
        self.before.as_ref().is_some_and(same)
    }

    /// Ends the searches, of which the last has this score: the best has the word. Whether that is
    /// an earlier one.
    pub(super) fn end(&mut self, score: f32) -> bool {
        self.found.score = score;
        self.keep_best()
    }

    fn keep_best(&mut self) -> bool {
        let better = self.before.take().filter(|b| b.score >= self.found.score);
        if let Some(before) = better {
            self.found = before;
        }
        better.is_some()
    }
}
