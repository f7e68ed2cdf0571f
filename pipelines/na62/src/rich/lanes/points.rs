//! Points in SIMD lanes.

use pollux_pipelines::simd::{LANES, Lanes};

/// Coordinate of an empty place, in mm: far from every ring, and no evidence.
pub(crate) const NOWHERE: f32 = 1e6;

/// Rows of points: one per lane, or the same point in all lanes.
pub(crate) trait Points<V: Lanes> {
    fn rows(&self) -> usize;
    /// Coordinates of the points of a row.
    fn at(&self, isa: V::Isa, i: usize) -> (V, V);
    /// Lanes in which the points of a row are evidence of their own.
    fn own(&self, isa: V::Isa, i: usize) -> V::Mask;
}

/// Points that are broadcast to all lanes.
#[derive(Clone, Copy)]
pub(crate) struct Broadcast<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) y: &'a [f32],
    /// x^2 + y^2.
    pub(crate) z: &'a [f32],
    /// Number of leading points that are evidence of their own.
    pub(crate) own: usize,
}

impl Broadcast<'_> {
    /// The points that are evidence of their own.
    #[inline(always)]
    pub(crate) fn owned(self) -> Self {
        let [x, y, z] = [self.x, self.y, self.z].map(|of| &of[..self.own]);
        Self { x, y, z, ..self }
    }

    /// The other points, which rings have claimed.
    #[inline(always)]
    pub(crate) fn claimed(self) -> Self {
        let [x, y, z] = [self.x, self.y, self.z].map(|of| &of[self.own..]);
        Self { x, y, z, own: 0 }
    }
}

impl<V: Lanes> Points<V> for Broadcast<'_> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.x.len()
    }

    #[inline(always)]
    fn at(&self, isa: V::Isa, i: usize) -> (V, V) {
        (V::splat(isa, self.x[i]), V::splat(isa, self.y[i]))
    }

    #[inline(always)]
    fn own(&self, isa: V::Isa, i: usize) -> V::Mask {
        V::splat(isa, (i + 1) as f32).le(V::splat(isa, self.own as f32))
    }
}

/// Range of points in a list; a lane holds a copy of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lane {
    /// Index of the first point, and number of points.
    pub(crate) start: usize,
    pub(crate) total: usize,
    /// Number of leading points that are evidence of their own.
    pub(crate) own: usize,
}

/// Points of a batch: those of one event in each lane, followed by [`NOWHERE`].
#[derive(Debug)]
pub(crate) struct PerLane {
    x: Box<[[f32; LANES]]>,
    y: Box<[[f32; LANES]]>,
    time: Box<[[f32; LANES]]>,
    /// Number of points of each lane that are evidence of their own; they come before the others.
    own: [f32; LANES],
    /// Number of rows with a point in at least one lane.
    len: usize,
}

impl PerLane {
    /// Memory for so many points in each lane.
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

    /// Starts a new set of points and returns the number of rows. The caller must then set every
    /// row.
    #[inline(always)]
    pub(crate) fn begin(&mut self, lanes: &[Lane; LANES]) -> usize {
        let most = lanes.iter().map(|lane| lane.total).max();
        self.len = most.unwrap_or(0).min(self.x.len());
        self.own = lanes.map(|lane| lane.own as f32);
        self.len
    }

    /// Sets a row: one point for each lane.
    #[inline(always)]
    pub(crate) fn row(&mut self, i: usize, x: [f32; LANES], y: [f32; LANES], time: [f32; LANES]) {
        (self.x[i], self.y[i], self.time[i]) = (x, y, time);
    }

    /// Clears all rows, for [columns](Self::column).
    #[inline(always)]
    pub(crate) fn empty(&mut self) {
        self.x[..self.len].fill([NOWHERE; LANES]);
    }

    /// Sets the points of one lane in cleared rows.
    #[inline(always)]
    pub(crate) fn column(&mut self, lane: usize, x: &[f32], y: &[f32]) {
        let rows = self.x.iter_mut().zip(&mut self.y).take(self.len);
        for ((row_x, row_y), (&x, &y)) in rows.zip(x.iter().zip(y)) {
            (row_x[lane], row_y[lane]) = (x, y);
        }
    }

    /// Sets the times of a lane's points.
    #[inline(always)]
    pub(crate) fn times(&mut self, lane: usize, times: &[f32]) {
        for (row, &time) in self.time.iter_mut().zip(times).take(self.len) {
            row[lane] = time;
        }
    }

    /// Times of the points of a row.
    #[inline(always)]
    pub(crate) fn time<V: Lanes>(&self, isa: V::Isa, i: usize) -> V {
        V::load(isa, &self.time[i])
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
    fn own(&self, isa: V::Isa, i: usize) -> V::Mask {
        V::splat(isa, (i + 1) as f32).le(V::load(isa, &self.own))
    }
}
