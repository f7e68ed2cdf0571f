//! What the finder looks at: the hits of one time on one disk.

use super::split::{pm, time};
use super::{FinderConfig, MAX_BATCH, MAX_RINGS_PER_DISK, Ring};
use crate::rich::geometry::{DISKS, PMS_PER_DISK, POSITIONS};
use crate::rich::lanes::{Alike, Lane, NOWHERE, PerLane};
use crate::simd::{LANES, Lanes};

/// Most times at which an event is looked at: its own, and those of others in its slot.
pub(super) const MAX_TIMES: usize = 4;
/// Views of a batch.
pub(super) const MAX_VIEWS: usize = MAX_BATCH * MAX_TIMES * DISKS;
/// Places for the hits of all views. A vector is stored whole, wherever its first lane belongs, so
/// behind each view there may be one more; the last place has no hit.
const PLACES: usize = MAX_VIEWS * (PMS_PER_DISK + LANES) + 1;

/// What is where no hit is.
const NO_HIT: u32 = u32::MAX;

/// Where the photomultipliers of a disk are, by the low bits of a hit's word; [`NOWHERE`] where
/// there is none. As bits, since they are looked up as words.
struct Plane {
    x: [u32; Self::PLACES],
    y: [u32; Self::PLACES],
}

impl Plane {
    const PLACES: usize = PMS_PER_DISK.next_power_of_two();
}

static PLANE: Plane = {
    let mut plane = Plane {
        x: [NOWHERE.to_bits(); Plane::PLACES],
        y: [NOWHERE.to_bits(); Plane::PLACES],
    };
    let mut pm = 0;
    while pm < PMS_PER_DISK {
        [plane.x[pm], plane.y[pm]] = [POSITIONS[pm][0].to_bits(), POSITIONS[pm][1].to_bits()];
        pm += 1;
    }
    plane
};

/// The hits of all views: a word each, its time above its photomultiplier, which are counted from
/// 0 on both disks.
#[derive(Debug)]
pub(super) struct Hits {
    words: Box<[u32]>,
    /// The first place that is free.
    end: usize,
    /// Coordinates of the hits of one view.
    x: Box<[f32]>,
    y: Box<[f32]>,
}

impl Default for Hits {
    fn default() -> Self {
        let places = || vec![0.0; PMS_PER_DISK].into_boxed_slice();
        Self {
            words: vec![NO_HIT; PLACES].into_boxed_slice(),
            end: 0,
            x: places(),
            y: places(),
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
    pub(super) fn spread<V: Lanes>(&self, isa: V::Isa, of: &[Lane; LANES], to: &mut PerLane) {
        let (start, total) = (
            of.map(|lane| lane.start as u32),
            of.map(|lane| lane.total as u32),
        );
        for i in 0..to.begin(of) {
            let place = std::array::from_fn(|lane| {
                if (i as u32) < total[lane] {
                    start[lane] + i as u32
                } else {
                    u32::MAX
                }
            });
            let words = V::gather(isa, &self.words, &place);
            let pms = words.map(|word| word % Plane::PLACES as u32);
            let x = V::gather(isa, &PLANE.x, &pms);
            let y = V::gather(isa, &PLANE.y, &pms);
            let times = words.map(|word| time(word) as f32);
            to.row(i, zerocopy::transmute!(x), zerocopy::transmute!(y), times);
        }
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
        let Hits { words, x, y, .. } = hits;
        let words = &words[start..start + own];
        for ((x, y), &word) in x.iter_mut().zip(y.iter_mut()).zip(words) {
            [*x, *y] = POSITIONS.get(pm(word)).copied().unwrap_or_default();
        }
        Alike {
            x: &x[..own],
            y: &y[..own],
            own,
        }
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
        // The claimed ones go behind the others, from the last on: what takes the place of one has
        // been looked at.
        let mut end = own;
        for i in (0..own).rev().filter(|&i| claimed(i)) {
            end -= 1;
            of.words.swap(start + i, start + end);
        }
    }
}
