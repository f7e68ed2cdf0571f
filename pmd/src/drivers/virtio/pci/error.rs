//! Errors of the device.

use crate::bus::{BusError, Device};

/// An error of the device.
pub(super) fn wrong<D: Device>(device: &D, what: impl Into<String>) -> BusError {
    BusError::Device {
        device: device.name().into(),
        what: what.into(),
    }
}
