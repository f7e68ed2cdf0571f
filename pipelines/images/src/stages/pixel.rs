//! Pixels that the stages process.

use crate::convert::Output;
use crate::receive::Stored;
use crate::sparse::Value;
use crate::statistics::SumPixel;

/// Converted pixels: all kernels take them.
pub trait StagePixel: Output + Stored + Value + SumPixel {}

impl<P: Output + Stored + Value + SumPixel> StagePixel for P {}
