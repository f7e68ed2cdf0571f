//! Points in lanes.

use crate::simd::{LANES, Lanes};

/// Coordinate of places without a point, in mm: far from every ring, and no evidence.
pub(crate) const NOWHERE: f32 = 1e6;

/// Points that are looked at in all lanes alike.
pub(crate) struct Alike<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) y: &'a [f32],
    /// x^2 + y^2.
    pub(crate) z: &'a [f32],
}

/// Points that are next to each other in a list, of which a lane has a copy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lane {
    /// The first, and how many there are.
    pub(crate) start: usize,
    pub(crate) total: usize,
    /// How many of them, from the first on, are their own evidence.
    pub(crate) own: usize,
}

/// Places for the points of a batch: those of one event in each lane, and [`NOWHERE`] behind them.
#[derive(Debug)]
pub(crate) struct PerLane {
    x: Box<[[f32; LANES]]>,
    y: Box<[[f32; LANES]]>,
    pub(super) time: Box<[[f32; LANES]]>,
    /// Points of each lane that are their own evidence: those before the others.
    own: [f32; LANES],
    /// Rows that have a point in one lane or more.
    pub(super) len: usize,
    /// Bit n: lane n's own point was [claimed](Self::claim).
    pub(super) claimed: Box<[u16]>,
}

impl PerLane {
    /// Room for so many points in each lane.
    pub(crate) fn with_room(points: usize) -> Self {
        let rows = || vec![[NOWHERE; LANES]; points].into_boxed_slice();
        Self {
            x: rows(),
            y: rows(),
            time: rows(),
            own: [0.0; LANES],
            len: 0,
            claimed: vec![0; points].into_boxed_slice(),
        }
    }

    /// Begins with other points; how many rows there are. Each of them has to be put.
    #[inline(always)]
    pub(crate) fn begin(&mut self, lanes: &[Lane; LANES]) -> usize {
        let most = lanes.iter().map(|lane| lane.total).max();
        self.len = most.unwrap_or(0).min(self.x.len());
        self.own = lanes.map(|lane| lane.own as f32);
        self.len
    }

    /// Puts a point into each lane.
    #[inline(always)]
    pub(crate) fn row(&mut self, i: usize, x: [f32; LANES], y: [f32; LANES], time: [f32; LANES]) {
        (self.x[i], self.y[i], self.time[i]) = (x, y, time);
    }

    /// Empties all rows, for [columns](Self::column).
    #[inline(always)]
    pub(crate) fn empty(&mut self) {
        self.x[..self.len].fill([NOWHERE; LANES]);
    }

    /// Puts points into a lane of empty rows.
    #[inline(always)]
    pub(crate) fn column(&mut self, lane: usize, x: &[f32], y: &[f32]) {
        let rows = self.x.iter_mut().zip(&mut self.y).take(self.len);
        for ((row_x, row_y), (&x, &y)) in rows.zip(x.iter().zip(y)) {
            (row_x[lane], row_y[lane]) = (x, y);
        }
    }

    /// Puts the times of a lane's points.
    #[inline(always)]
    pub(crate) fn times(&mut self, lane: usize, times: &[f32]) {
        for (row, &time) in self.time.iter_mut().zip(times).take(self.len) {
            row[lane] = time;
        }
    }

    /// Row `i`: where the points are, and in which lanes they are their own evidence.
    #[inline(always)]
    pub(super) fn row_at<V: Lanes>(&self, isa: V::Isa, i: usize) -> (V, V, V::Mask) {
        let own = V::splat(isa, (i + 1) as f32).le(V::load(isa, &self.own));
        (V::load(isa, &self.x[i]), V::load(isa, &self.y[i]), own)
    }

    /// Whether the last circle of a lane claimed this one of its own points.
    #[inline(always)]
    pub(crate) fn claimed(&self, lane: usize, i: usize) -> bool {
        self.claimed[i] >> lane & 1 == 1
    }
}
