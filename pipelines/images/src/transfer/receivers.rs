//! Fan-out of one image stream to several receivers.

use std::fmt;
use std::mem::size_of;

use pollux_pipelines::Moment;

use super::config::{TransferConfig, TransferError, check_all};
use super::copy::Transfer;
use super::ring::{Element, Ring, SubImages};
use super::view::TransferView;
use crate::Shape;

/// Memory that the buffers of all receivers may take by default: 4 GiB.
pub const DEFAULT_MEMORY: u64 = 4 << 30;

/// Transfers each image to all receivers that get it. A receiver whose buffers are all in use loses its
/// own sub-images alone, which are counted. Nothing is allocated after the constructor.
pub struct Receivers<P> {
    rings: Box<[Ring<P>]>,
    shape: Shape,
}

impl<P: Element> Receivers<P> {
    /// The fan-out, and the ends of the receivers in the order of their configurations. Allocates all
    /// buffers, of at most `memory` bytes.
    ///
    /// # Errors
    /// As [`check_all`]; or the system has less memory.
    pub fn new(
        configs: &[TransferConfig],
        shape: Shape,
        memory: u64,
    ) -> Result<(Self, Vec<SubImages<P>>), TransferError> {
        check_all(configs, shape, size_of::<P>(), memory)?;
        let (mut rings, mut ends) = (Vec::new(), Vec::new());
        for config in configs {
            let made = Ring::new(Transfer::new(config, shape)?);
            let (ring, end) = made.map_err(|error| config.named(error))?;
            rings.push(ring);
            ends.push(end);
        }
        let rings = rings.into_boxed_slice();
        Ok((Self { rings, shape }, ends))
    }

    /// Transfers an image, taken at this time. It takes a copy for each receiver that gets it, and waits
    /// for none.
    ///
    /// # Errors
    /// An image of another shape: no receiver gets it.
    #[inline]
    pub fn push(&mut self, number: u64, at: Moment, image: &[P]) -> Result<(), TransferError> {
        if image.len() != self.shape.pixels() {
            return Err(TransferError::ImageLength {
                found: image.len(),
                shape: self.shape,
            });
        }
        let mut rings = self.rings.iter_mut();
        rings.try_for_each(|ring| ring.push(number, at, image))
    }

    /// Counts of the receivers, for any thread.
    #[must_use]
    pub fn views(&self) -> Vec<TransferView> {
        self.rings.iter().map(|ring| ring.transfer.view()).collect()
    }
}

impl<P> fmt::Debug for Receivers<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receivers")
            .field("shape", &self.shape)
            .field("receivers", &self.rings.len())
            .finish_non_exhaustive()
    }
}
