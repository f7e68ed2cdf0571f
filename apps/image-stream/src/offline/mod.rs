//! Each stage on files, without a detector.

pub mod compress;
pub mod convert;
mod files;
pub mod integrate;
pub mod peaks;
mod poni;
