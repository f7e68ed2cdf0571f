//! Azimuthal integration: images to radial curves.
//!
//! An image of a powder, of a liquid or of a background depends on the scattering angle alone. The
//! integration sums the pixels of each angle: the result is a [`Curve`], with a bin for each
//! interval of a [radial coordinate](RadialUnit). Definitions and results are those of pyFAI
//! (J. Kieffer et al., J. Appl. Cryst. 53 (2020) 558): the position of the detector is a
//! [`Geometry`] as in its PONI files, and a bin has sums of signal, normalisation and variance.
//!
//! | option | contents |
//! | --- | --- |
//! | [`Split::No`] | a pixel counts for the bin that its centre is in |
//! | [`Split::Full`] | a pixel counts for all bins that it covers, by its area in each of them |
//! | `solid_angle` | normalisation by cos^3 of the angle of incidence |
//! | `polarisation` | normalisation by the polarisation of the beam |
//! | [`Variance`] | Poisson statistics, or an image of variances |
//!
//! Not in: flat field and dark current, which belong to the conversion; sensor thickness; an
//! azimuthal range; detector orientations other than pyFAI's default, 3.
//!
//! Curves equal those of pyFAI's CSR implementations, but for one bin: without splitting and with a
//! range, pyFAI's compiled implementations also count for the first bin the pixels that are less than
//! the width of a bin before it. Here, as in pyFAI's numpy implementation, they do not count.
//!
//! With splitting, the azimuth of the pixel that the beam goes through, or of one that it touches, has
//! no meaning, and shares of that pixel may be negative, as in pyFAI: mask it.
//!
//! The share of each pixel in each bin is computed once, in [`Integrator::new`]; an image is then
//! read in the order of its pixels, once.

mod config;
mod curve;
mod geometry;
mod integrator;
mod kernel;
mod shares;
mod table;

#[cfg(test)]
mod tests;

pub use config::{IntegrationConfig, IntegrationError, MAX_BINS, MAX_PIXELS, Split};
pub use curve::Curve;
pub use geometry::{Geometry, RadialUnit};
pub use integrator::Integrator;
pub use kernel::Variance;
