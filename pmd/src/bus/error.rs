//! Errors of devices.

use std::io;

/// Error: a device is not available, or does not support an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// The window does not exist.
    #[error(
        "{device} has no memory BAR {index} that can be mapped: it is not the device that its \
         number says, or the kernel found no addresses for it; look for its BARs in `lspci -vv -s \
         {device}` and in `dmesg`"
    )]
    NoBar {
        /// The device.
        device: String,
        /// Number of the window.
        index: u8,
    },
    /// The window is too short for this driver.
    #[error(
        "BAR {index} of {device} has {len} bytes, the driver needs {needed}: it is not the device \
         that its number says, or its bridge has no room for more; update the firmware, or have \
         the machine's monitor give it whole BARs (a guest), and look at `lspci -vv -s {device}`"
    )]
    BarTooSmall {
        /// The device.
        device: String,
        /// Number of the window.
        index: u8,
        /// Actual size in bytes.
        len: usize,
        /// Required size in bytes.
        needed: usize,
    },
    /// Configuration space does not contain the register.
    #[error(
        "{device} has no configuration register {at:#x}: it is not the device that its number \
         says, or it is behind a bridge without extended configuration space; look at `lspci \
         -xxxx -s {device}`, and put it into a PCIe slot (a guest: behind a root port)"
    )]
    NoConfig {
        /// The device.
        device: String,
        /// The register.
        at: u16,
    },
    /// The device has fewer interrupt vectors.
    #[error(
        "{device} has {offered} MSI-X vectors, {asked} asked for: start the port with fewer queues, \
         or give it more vectors (a guest: vectors= of its NIC)"
    )]
    Interrupts {
        /// The device.
        device: String,
        /// Requested vectors.
        asked: u16,
        /// Available vectors.
        offered: u16,
    },
    /// The device does not respond as specified.
    #[error("{device}: {what}")]
    Device {
        /// The device.
        device: String,
        /// What is wrong, and the remedy.
        what: String,
    },
    /// The system refused.
    #[error("{device}: {what}: {error}{}", in_brackets(.hint))]
    System {
        /// The device.
        device: String,
        /// The failed operation.
        what: String,
        /// The remedy; may be empty.
        hint: String,
        /// Error of the system. The message contains it, so it is not a `source`, which would be
        /// printed again.
        error: io::Error,
    },
}

/// A hint behind a message, if present.
pub(crate) fn in_brackets(hint: &str) -> String {
    if hint.is_empty() {
        String::new()
    } else {
        format!(" ({hint})")
    }
}
