//! What the loop keeps of the images for the operator.

use pollux_images::receive::Stored;
use pollux_images::stages::{StagePixel, Work};
use pollux_images::statistics::ImageStatistics;

use super::page::Tap;

/// Sees each image once, in order, vetoed or not.
pub trait Observe<P>: Send + 'static {
    fn observe(&mut self, work: &Work<P>);
}

/// Raw images, for the page.
pub struct Raw(pub Option<Tap<u16>>);

impl Observe<u16> for Raw {
    fn observe(&mut self, work: &Work<u16>) {
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
