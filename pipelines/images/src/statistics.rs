//! Statistics of a run for its operator: hit rate, mean image, maximum projection.
//!
//! | type | contents |
//! | --- | --- |
//! | [`HitRate`] | images kept and all, since the start and over the last images |
//! | [`ImageStatistics`] | for each pixel its sum and its maximum over the run; photons, bad and saturated pixels of the last image |
//! | [`Snapshot`] | mean image or maximum projection, downscaled, computed a few rows at a time |
//!
//! Sums over a run of 10^9 images are exact for integers: 64 bits hold 10^9 values of 32 bits. To
//! add an image of `i16` touches 14 bytes a pixel rather than 18: it is added to sums of 32 bits, and
//! with each image a part of these is moved to the sums of 64 bits, each pixel at least once in 32768
//! images, which 32 bits hold.
//!
//! A bad or saturated pixel has no value and is left out of the mean: the images in which a pixel had
//! none are counted, up to 2^32 - 1. In the maximum projection a saturated pixel is the largest.

mod hits;
mod images;
mod snapshot;
mod sum;

pub use self::hits::HitRate;
pub use self::images::{ImageStatistics, LastImage, StatisticsError};
pub use self::snapshot::{Snapshot, View};
pub use self::sum::SumPixel;

#[cfg(test)]
mod tests;
