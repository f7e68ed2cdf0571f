//! Why a device cannot be had, or does not do what was asked.

use std::io;

/// Why a device cannot be had, or cannot do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// There is no such window.
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
    /// The window ends too early for this driver.
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
        /// Bytes that there are.
        len: usize,
        /// Bytes that there should be.
        needed: usize,
    },
    /// Configuration space has no such place.
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
    /// There are fewer interrupt vectors.
    #[error(
        "{device} has {offered} MSI-X vectors, {asked} asked for: start the port with fewer queues, \
         or give it more vectors (a guest: vectors= of its NIC)"
    )]
    Interrupts {
        /// The device.
        device: String,
        /// Vectors asked for.
        asked: u16,
        /// Vectors that there are.
        offered: u16,
    },
    /// The device does not answer as it should.
    #[error("{device}: {what}")]
    Device {
        /// The device.
        device: String,
        /// What is wrong, and what to do about it.
        what: String,
    },
    /// The system refused.
    #[error("{device}: {what}: {error}{}", in_brackets(.hint))]
    System {
        /// The device.
        device: String,
        /// What was tried.
        what: String,
        /// What to do about it; may be empty.
        hint: String,
        /// The system's word. It is in the message, so it is no `source` to be printed again.
        error: io::Error,
    },
}

/// A hint behind a message, if there is one.
pub(crate) fn in_brackets(hint: &str) -> String {
    if hint.is_empty() {
        String::new()
    } else {
        format!(" ({hint})")
    }
}
