//! Points in lanes.

use pollux_pipelines::simd::{LANES, Lanes};

/// Coordinate of places without a point, in mm: far from every ring, and no evidence.
pub(crate) const NOWHERE: f32 = 1e6;

/// Rows of points: one in each lane, or the same in all of them.
pub(crate) trait Points<V: Lanes> {
    fn rows(&self) -> usize;
    /// Where the points of a row are.
    fn at(&self, isa: V::Isa, i: usize) -> (V, V);
    /// Their times.
    fn time(&self, isa: V::Isa, i: usize) -> V;
    /// In which lanes they are their own evidence.
    fn own(&self, isa: V::Isa, i: usize) -> V::Mask;
}

/// Points that are looked at in all lanes alike.
#[derive(Clone, Copy)]
pub(crate) struct Alike<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) y: &'a [f32],
    /// x^2 + y^2.
    pub(crate) z: &'a [f32],
    pub(crate) time: &'a [f32],
    /// How many of them, from the first on, are their own evidence.
    pub(crate) own: usize,
}

impl Alike<'_> {
    /// Those that are their own evidence.
    #[inline(always)]
    pub(crate) fn owned(self) -> Self {
        let [x, y, z, time] = [self.x, self.y, self.z, self.time].map(|of| &of[..self.own]);
        Self {
            x,
            y,
            z,
            time,
            ..self
        }
    }
}

impl<V: Lanes> Points<V> for Alike<'_> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    fn at(&self, isa: V::Isa, i: usize) -> (V, V) {
        (V::splat(isa, self.x[i]), V::splat(isa, self.y[i]))
    }

    #[inline(always)]
    fn time(&self, isa: V::Isa, i: usize) -> V {
        V::splat(isa, self.time[i])
    }

    #[inline(always)]
    fn own(&self, isa: V::Isa, i: usize) -> V::Mask {
        V::splat(isa, (i + 1) as f32).le(V::splat(isa, self.own as f32))
    }
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
    time: Box<[[f32; LANES]]>,
    /// Points of each lane that are their own evidence: those before the others.
    own: [f32; LANES],
    /// Rows that have a point in one lane or more.
    len: usize,
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
}

impl<V: Lanes> Points<V> for PerLane {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn at(&self, isa: V::Isa, i: usize) -> (V, V) {
        (V::load(isa, &self.x[i]), V::load(isa, &self.y[i]))
    }

    #[inline(always)]
    fn time(&self, isa: V::Isa, i: usize) -> V {
        V::load(isa, &self.time[i])
    }

    #[inline(always)]
    fn own(&self, isa: V::Isa, i: usize) -> V::Mask {
        V::splat(isa, (i + 1) as f32).le(V::load(isa, &self.own))
    }
}
