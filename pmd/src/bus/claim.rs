//! Sole use of a device by one driver.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{BusError, Device};

/// Addresses of the devices that a driver has.
static CLAIMED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// One driver has the device, until this is dropped. Two that program one device would each have it
/// write to memory that is the other's to give. To be dropped before the device.
pub(crate) struct Claim(usize);

impl Claim {
    /// # Errors
    /// Another driver has the device.
    pub(crate) fn new<D: Device>(device: &Arc<D>) -> Result<Self, BusError> {
        let at = Arc::as_ptr(device).addr();
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.insert(at) {
            return Ok(Self(at));
        }
        Err(BusError::Device {
            device: device.name().into(),
            what: "this program has a port or streams on it already: stop and drop those first"
                .into(),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.remove(&self.0);
    }
}
