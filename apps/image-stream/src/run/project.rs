//! Projections of all images, for the page.

use pollux_images::statistics::{ImageStatistics, Snapshot, SumPixel};

/// Projections of all images.
pub trait Project {
    /// Computes up to `rows` further rows of a projection; whether all are computed.
    fn project(&self, snapshot: &mut Snapshot, rows: usize) -> bool;
}

/// Of raw images no statistics are kept.
impl Project for () {
    fn project(&self, _snapshot: &mut Snapshot, _rows: usize) -> bool {
        false
    }
}

impl<P: SumPixel> Project for ImageStatistics<P> {
    fn project(&self, snapshot: &mut Snapshot, rows: usize) -> bool {
        snapshot.step(self, rows)
    }
}
