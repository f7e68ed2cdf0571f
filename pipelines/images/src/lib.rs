//! Image detectors: packets of SLS/PSI detectors placed in frames, and the processing of images at
//! the rate of the detector.
//!
//! | module | contents |
//! | --- | --- |
//! | [`pixel`] | shape of an image, and the values of its pixels |
//! | [`formats`] | UDP packets of SLS/PSI detectors; geometry of modules |
//! | [`receive`] | packets placed in images, by one loop or several; stacks of images |
//! | [`calibration`] | pedestals, gains and masks of JUNGFRAU modules |
//! | [`convert`] | raw pixels to photons |
//! | [`veto`] | images without Bragg peaks, by the number of pixels above a threshold |
//! | [`sparse`] | images as compressed sparse rows (CSR) |
//! | [`bitshuffle`] | lossless compression: bit transpose, then LZ4 |
//! | [`integrate`] | azimuthal integration |
//! | [`peaks`] | Bragg peaks: position, intensity, background |
//! | [`stack`] | stacks of images that a detector writes into memory by remote access |
//! | [`stages`] | all of these as stages of a chain |
//! | [`statistics`] | hit rate, mean and maximum of all images |
//! | [`transfer`] | sub-images for several receivers: regions, subsampling, rates |
//! | [`read_regular`] | input files of which the size is known |
//! | [`control`] | messages between detectors, receivers and the manager of a run |
//!
//! Each kernel is compiled for AVX-512, AVX2 and for neither ([`pollux_pipelines::simd`]), with equal
//! results bit by bit.
#![forbid(unsafe_code)]

pub mod bitshuffle;
pub mod calibration;
pub mod control;
pub mod convert;
pub mod formats;
pub mod integrate;
pub mod peaks;
pub mod pixel;
pub mod receive;
mod regular;
pub mod sparse;
pub mod stack;
pub mod stages;
pub mod statistics;
pub mod transfer;
pub mod veto;

pub use pixel::{Pixel, Shape};
pub use regular::read_regular;
