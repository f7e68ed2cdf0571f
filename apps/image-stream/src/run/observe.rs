//! What the loop keeps of the images for the operator.

use pollux_images::receive::{Raw, Stored};
use pollux_images::stages::{StagePixel, Work};
use pollux_images::statistics::ImageStatistics;

use super::page::Tap;

/// Sees each image once, in order, vetoed or not.
pub trait Observe<P>: Send + 'static {
    fn observe(&mut self, work: &Work<P>);
}

/// Raw images, for the page.
pub struct RawImages<P: Raw>(pub Option<Tap<P>>);

impl<P: Raw> Observe<P> for RawImages<P> {
    fn observe(&mut self, work: &Work<P>) {
        if let Some(tap) = &mut self.0 {
            tap.see(work, &());
        }
    }
}

/// Mean and maximum of a run, and what the page asks for.
pub struct Statistics<P: StagePixel> {
    pub images: ImageStatistics<P>,
    pub tap: Option<Tap<P>>,
}

impl<P: StagePixel + Stored> Observe<P> for Statistics<P> {
    fn observe(&mut self, work: &Work<P>) {
        // The statistics were made for the shape of these images.
        let _ = self.images.add(work.image.pixels());
        if let Some(tap) = &mut self.tap {
            tap.see(work, &self.images);
        }
    }
}
