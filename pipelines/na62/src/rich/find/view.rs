//! Views, the unit of the search: the hits of one time on one disk.

use pollux_pipelines::simd::{LANES, Lanes};

use super::config::FinderConfig;
use super::ring::{MAX_BATCH, MAX_RINGS_PER_DISK, Ring};
use super::seeds::Numbers;
use super::word::{time, x, y};
use crate::rich::geometry::{DISKS, PMS_PER_DISK};
use crate::rich::lanes::{Broadcast, Lane, NOWHERE, PerLane};

/// Maximum number of views of a disk of an event: the event's own time, and other times in its
/// slot.
pub(super) const MAX_TIMES: usize = 4;
/// Maximum number of views of a batch.
pub(super) const MAX_VIEWS: usize = MAX_BATCH * MAX_TIMES * DISKS;
/// Capacity for the hits of all views. Vectors are stored whole, from any place on, so each view
/// may need one more vector.
const PLACES: usize = MAX_VIEWS * (PMS_PER_DISK + LANES);
/// Maximum number of rings of a view: one more than a disk may have, to detect that there are too
/// many.
pub(super) const PLACES_FOR_RINGS: usize = MAX_RINGS_PER_DISK + 1;
/// Up to this number, lanes are filled one by one; more lanes are filled row by row.
const FEW: usize = 4;

/// Scores with a smaller difference belong to the same rings.
const SAME: f32 = 0.01;

/// The hits of all views, one [word](super::word) each.
#[derive(Debug)]
pub(super) struct Hits {
    words: Box<[u32]>,
    /// Index of the first free place.
    end: usize,
    /// Scratch for the hits of one view: coordinates, x^2 + y^2, and times.
    x: Box<[f32]>,
    y: Box<[f32]>,
    z: Box<[f32]>,
    time: Box<[f32]>,
    /// The hits that a ring has claimed.
    claimed: Box<[u32]>,
}

impl Default for Hits {
    fn default() -> Self {
        // Number of whole vectors.
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
    /// Removes all hits.
    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    /// Index of the next view's first hit, and the places for its hits.
    #[inline(always)]
    pub(super) fn places(&mut self) -> (usize, &mut [u32]) {
        (self.end, &mut self.words[self.end..])
    }

    /// Fills each lane with the hits of its view; empty where the lane has no view.
    #[inline(always)]
    pub(super) fn spread<V: Lanes>(&mut self, isa: V::Isa, of: &[Lane; LANES], to: &mut PerLane) {
        let rows = to.begin(of);
        if of.iter().filter(|lane| lane.total > 0).count() <= FEW {
            to.empty();
            for (lane, of) in of.iter().enumerate().filter(|(_, lane)| lane.total > 0) {
                self.points(of.start, of.total);
                self.times(of.start, of.total);
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

    /// Unpacks hits into coordinates.
    #[inline(always)]
    fn points(&mut self, start: usize, n: usize) {
        let (words, _) = self.words[start..].as_chunks::<LANES>();
        let (to_x, _) = self.x.as_chunks_mut::<LANES>();
        let (to_y, _) = self.y.as_chunks_mut::<LANES>();
        let (to_z, _) = self.z.as_chunks_mut::<LANES>();
        let to = to_x.iter_mut().zip(to_y).zip(to_z);
        // In whole vectors: the buffer continues behind the last hit.
        for (words, ((to_x, to_y), to_z)) in words.iter().zip(to).take(n.div_ceil(LANES)) {
            let [mut xs, mut ys, mut zs] = [[0.0; LANES]; 3];
            for lane in 0..LANES {
                (xs[lane], ys[lane]) = (x(words[lane]), y(words[lane]));
                zs[lane] = xs[lane] * xs[lane] + ys[lane] * ys[lane];
            }
            (*to_x, *to_y, *to_z) = (xs, ys, zs);
        }
    }

    /// Unpacks the times of hits.
    #[inline(always)]
    fn times(&mut self, start: usize, n: usize) {
        let (words, _) = self.words[start..].as_chunks::<LANES>();
        let to = self.time.as_chunks_mut::<LANES>().0.iter_mut();
        for (to, words) in to.zip(words).take(n.div_ceil(LANES)) {
            for (to, &word) in to.iter_mut().zip(words) {
                *to = time(word) as i32 as f32;
            }
        }
    }

    /// The hits of a view in whole vectors, padded with [`NOWHERE`].
    #[inline(always)]
    pub(super) fn vectors(&mut self, of: Lane) -> Vectors<'_> {
        self.points(of.start, of.total);
        self.times(of.start, of.total);
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

    /// Shuffles the hits of a view, deterministically for each number of hits (D. E. Knuth, "The
    /// Art of Computer Programming" 2, algorithm 3.4.2P).
    fn shuffle(&mut self, of: Lane) {
        let words = &mut self.words[of.start..of.start + of.total];
        let mut numbers = Numbers::default();
        for n in (2..=words.len()).rev() {
            words.swap(n - 1, numbers.below(n));
        }
    }

    /// Moves the claimed hits of a view behind its other own hits.
    #[inline(always)]
    fn claim(&mut self, start: usize, own: usize, claimed: impl Fn(usize) -> bool) {
        let words = &mut self.words[start..start + own];
        let (mut left, mut moved) = (0, 0);
        // Without branches, which would be unpredictable.
        for i in 0..own {
            let (word, gone) = (words[i], claimed(i));
            words[left] = word;
            self.claimed[moved] = word;
            left += usize::from(!gone);
            moved += usize::from(gone);
        }
        words[left..].copy_from_slice(&self.claimed[..moved]);
    }
}

/// Hits of one view in vectors of sixteen.
pub(super) struct Vectors<'a> {
    /// Number of hits.
    pub(super) n: usize,
    pub(super) x: &'a [[f32; LANES]],
    pub(super) y: &'a [[f32; LANES]],
    pub(super) time: &'a [[f32; LANES]],
}

/// Number of rings found so far on each disk of each event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RingCounts([[u8; DISKS]; MAX_BATCH]);

impl RingCounts {
    #[inline(always)]
    fn on(&mut self, view: &View) -> Option<&mut u8> {
        let disks = self.0.get_mut(usize::from(view.event))?;
        disks.get_mut(usize::from(view.disk))
    }

    /// Updates the count when the number of a view's rings changes from `before` to `now`.
    #[inline(always)]
    pub(super) fn replace(&mut self, view: &View, before: usize, now: usize) {
        if let Some(n) = self.on(view) {
            *n = (usize::from(*n) + now).saturating_sub(before) as u8;
        }
    }
}

/// A set of rings that explains the hits of a view.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Solution {
    rings: [Ring; PLACES_FOR_RINGS],
    n: usize,
    /// How well they explain the hits.
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

    /// Removes ring `i`.
    pub(super) fn remove(&mut self, i: usize) {
        self.rings[i..self.n].rotate_left(1);
        self.n -= 1;
    }
}

/// The hits of one time on one disk, and the rings in them.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// The range of its hits; the first `own` are not claimed by a ring.
    hits: Lane,
    pub(super) event: u8,
    disk: u8,
    /// The rings of the current search.
    pub(super) found: Solution,
    /// The best rings of earlier searches.
    before: Option<Solution>,
}

impl View {
    /// Starts with `n` hits, which the caller has stored at these [places](Hits::places).
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

    /// The range of its hits.
    #[inline(always)]
    pub(super) fn hits(&self) -> Lane {
        self.hits
    }

    /// The hits that no ring has claimed.
    #[inline(always)]
    pub(super) fn unclaimed<'a>(&self, hits: &'a mut Hits) -> Broadcast<'a> {
        self.broadcast(hits, self.hits.own)
    }

    /// All hits.
    #[inline(always)]
    pub(super) fn all<'a>(&self, hits: &'a mut Hits) -> Broadcast<'a> {
        self.broadcast(hits, self.hits.total)
    }

    #[inline(always)]
    fn broadcast<'a>(&self, hits: &'a mut Hits, n: usize) -> Broadcast<'a> {
        let Lane { start, own, .. } = self.hits;
        hits.points(start, n);
        let [x, y, z] = [&hits.x, &hits.y, &hits.z].map(|of| &of[..n]);
        Broadcast { x, y, z, own }
    }

    /// Whether the view may have another ring; one of its hits may belong to another. The search
    /// continues to one ring more than a disk may have, to detect that there are too many.
    #[inline(always)]
    pub(super) fn may_have_more(&self, cfg: &FinderConfig, ring_counts: &mut RingCounts) -> bool {
        self.hits.own + 1 >= usize::from(cfg.min_hits)
            && ring_counts.on(self).is_some_and(|n| *n <= cfg.max_rings)
    }

    /// Adds a ring with `own` of the view's unclaimed hits; `claimed` tells for each of them
    /// whether the ring has it.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        (ring, own): (Ring, usize),
        claimed: impl Fn(usize) -> bool,
        of: &mut Hits,
        cfg: &FinderConfig,
        ring_counts: &mut RingCounts,
    ) {
        let disk = self.disk;
        if let Some(slot) = self.found.rings.get_mut(self.found.n) {
            *slot = Ring { disk, ..ring };
            self.found.n += 1;
        }
        if let Some(n) = ring_counts.on(self) {
            *n += 1;
        }
        let before = self.hits.own;
        self.hits.own -= own;
        // Without a further ring, the claimed hits are not needed.
        if self.may_have_more(cfg, ring_counts) {
            of.claim(self.hits.start, before, claimed);
        }
    }

    /// Starts another search, with shuffled hits, which give other candidates. Stores the current
    /// rings with this score if they are the best so far, and keeps those that are `sure`.
    pub(super) fn again(
        &mut self,
        score: f32,
        sure: u8,
        of: &mut Hits,
        ring_counts: &mut RingCounts,
    ) {
        of.shuffle(self.hits);
        let (mut stay, found) = (Solution::default(), self.found);
        for (i, ring) in found.rings().iter().enumerate() {
            if sure >> i & 1 == 1 {
                stay.rings[stay.n] = *ring;
                stay.n += 1;
            }
        }
        ring_counts.replace(self, found.n, stay.n);
        self.found.score = score;
        self.keep_best();
        self.before = Some(self.found);
        self.found = stay;
        self.hits.own = self.hits.total;
    }

    /// Claims hits for its rings: one bit per hit, sixteen in a word.
    #[inline(always)]
    pub(super) fn claim(&mut self, bits: &[u16], of: &mut Hits) {
        let own = self.hits.own;
        of.claim(self.hits.start, own, |i| {
            bits[i / LANES] >> (i % LANES) & 1 == 1
        });
        let claimed: u32 = bits.iter().map(|bits| bits.count_ones()).sum();
        self.hits.own -= claimed as usize;
    }

    /// Whether an earlier search exists.
    #[inline(always)]
    pub(super) fn is_searched_again(&self) -> bool {
        self.before.is_some()
    }

    /// Whether the best earlier search had the same rings, judged by its score.
    #[inline(always)]
    pub(super) fn had(&self, score: f32) -> bool {
        let same = |before: &Solution| (before.score - score).abs() < SAME;
        self.before.as_ref().is_some_and(same)
    }

    /// Ends the searches with the score of the last one, and selects the best. Returns whether that
    /// is an earlier one.
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
