//! What the loop keeps of the images for the operator.

use pollux_images::receive::Raw;
use pollux_images::stages::{StagePixel, Work};
use pollux_images::statistics::{HitRate, ImageStatistics};

/// Sees each image once, in order, vetoed or not.
pub trait Observe<P>: Send + 'static {
    fn observe(&mut self, work: &Work<P>);
}

/// Of raw images nothing is kept.
impl<P: Raw> Observe<P> for () {
    fn observe(&mut self, _work: &Work<P>) {}
}

/// Hit rate, mean and maximum of a run.
pub struct Statistics<P: StagePixel> {
    pub images: ImageStatistics<P>,
    pub hits: HitRate,
}

impl<P: StagePixel> Observe<P> for Statistics<P> {
    fn observe(&mut self, work: &Work<P>) {
        self.hits.record(!work.findings.vetoed);
        // The statistics were made for the shape of these images.
        let _ = self.images.add(work.image.pixels());
    }
}
