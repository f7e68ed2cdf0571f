//! What the finder looks at: the hits of one time on one disk.

use super::word::{time, x, y};
use super::{FinderConfig, MAX_BATCH, MAX_RINGS_PER_DISK, Ring};
use crate::rich::geometry::{DISKS, PMS_PER_DISK};
use crate::rich::lanes::{Alike, Lane, NOWHERE, PerLane};
use crate::simd::{LANES, Lanes};

/// Most times at which an event is looked at: its own, and those of others in its slot.
pub(super) const MAX_TIMES: usize = 4;
/// Views of a batch.
pub(super) const MAX_VIEWS: usize = MAX_BATCH * MAX_TIMES * DISKS;
/// Places for the hits of all views. A vector is stored whole, wherever its first lane belongs, so
/// behind each view there may be one more.
const PLACES: usize = MAX_VIEWS * (PMS_PER_DISK + LANES);
/// Up to so many lanes are filled one by one, more of them row by row.
const FEW: usize = 4;

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
        let numbers = || vec![0.0; PMS_PER_DISK].into_boxed_slice();
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

    /// Where the hits of two more views begin, and places for them: for `most` in each, or as many
    /// as a disk has, whichever is less.
    #[inline(always)]
    pub(super) fn places(&mut self, most: usize) -> ([usize; DISKS], [&mut [u32]; DISKS]) {
        let first = self.end;
        let second = first + most.min(PMS_PER_DISK) + LANES;
        let (low, high) = self.words.split_at_mut(second);
        ([first, second], [&mut low[first..], high])
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

/// The hits of one time on one disk, and the rings in them.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Where its hits begin, and how many there are; the first `own` have not been claimed by a
    /// ring.
    hits: Lane,
    pub(super) event: u8,
    disk: u8,
    rings: [Ring; MAX_RINGS_PER_DISK],
    found: usize,
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
        (self.event, self.disk, self.found) = (event, disk, 0);
    }

    /// The rings that were found.
    pub(super) fn rings(&self) -> &[Ring] {
        &self.rings[..self.found]
    }

    /// Where its hits are.
    #[inline(always)]
    pub(super) fn hits(&self) -> Lane {
        self.hits
    }

    /// Those that no ring has claimed.
    #[inline(always)]
    pub(super) fn unclaimed<'a>(&self, hits: &'a mut Hits) -> Alike<'a> {
        let Lane { start, own, .. } = self.hits;
        hits.points(start, own);
        let [x, y, z] = [&hits.x, &hits.y, &hits.z].map(|of| &of[..own]);
        Alike { x, y, z }
    }

    /// Whether there may be one more ring: one of its hits may be another's.
    #[inline(always)]
    pub(super) fn may_have_more(&self, cfg: &FinderConfig) -> bool {
        self.hits.own + 1 >= usize::from(cfg.min_hits) && self.found < usize::from(cfg.max_rings)
    }

    /// Adds a ring; `claimed` says of each of its own hits whether the ring has it.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        ring: Ring,
        claimed: impl Fn(usize) -> bool,
        of: &mut Hits,
        cfg: &FinderConfig,
    ) {
        let disk = u16::from(self.disk);
        if let Some(slot) = self.rings.get_mut(self.found) {
            *slot = Ring { disk, ..ring };
            self.found += 1;
        }
        let Lane { start, own, .. } = self.hits;
        self.hits.own -= usize::from(ring.hits);
        // If no ring can be left, nobody asks which hits they are.
        if self.hits.own + 1 < usize::from(cfg.min_hits) {
            return;
        }
        of.claim(start, own, claimed);
    }
}
