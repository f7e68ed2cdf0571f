//! A device that one driver has for itself.

use std::ops::Deref;
use std::sync::Arc;

use super::claim::{Claim, Claims};
use super::{BusError, Device};

/// Devices of this process that have a driver, by their addresses in memory.
static DRIVEN: Claims<usize> = Claims::new();

/// A device that one driver has for itself. A driver keeps a clone in each part that writes
/// registers, in its queues too: a queue that outlives its port would otherwise move the tail of a
/// ring that a later driver of the same device has set up, and the device would then write to
/// buffers that it was given long ago.
pub struct Exclusive<D> {
    // Dropped first: another device may have the address of a dropped one.
    claim: Arc<Claim<usize>>,
    device: Arc<D>,
}

impl<D: Device> Exclusive<D> {
    /// Takes a device for one driver, until the last clone is dropped.
    ///
    /// # Errors
    /// [`BusError::Device`]: another driver has it.
    pub fn new(device: Arc<D>) -> Result<Self, BusError> {
        let claim = DRIVEN
            .take(Arc::as_ptr(&device).addr())
            .ok_or_else(|| BusError::Device {
                device: device.name().into(),
                what:
                    "this program has a driver on it already: stop its port or streams, and drop \
                       them with their queues"
                        .into(),
            })?;
        Ok(Self {
            claim: Arc::new(claim),
            device,
        })
    }
}

impl<D> Clone for Exclusive<D> {
    fn clone(&self) -> Self {
        Self {
            claim: self.claim.clone(),
            device: self.device.clone(),
        }
    }
}

impl<D> Deref for Exclusive<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.device
    }
}
