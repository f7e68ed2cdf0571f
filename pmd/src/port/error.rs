//! `PortError`: why a port cannot be opened, configured, started or stopped.

use crate::bus::BusError;
use crate::bus::error::in_brackets;
use crate::spec::SpecError;

/// Why a port cannot be opened, configured, started or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The spec is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No driver has that name.
    #[error("no driver `{driver}`; there are: {known}")]
    UnknownDriver {
        /// The requested name.
        driver: String,
        /// The names of all drivers.
        known: String,
    },
    /// The driver exists, but this build does not contain it.
    #[error("driver `{driver}` is not built in: build with the feature {feature}")]
    NotBuiltIn {
        /// The requested name.
        driver: &'static str,
        /// The feature of `pollux-pmd` that builds it.
        feature: &'static str,
    },
    /// A device or another process would write into the port's packet memory, and no grant permits
    /// that. Nothing was opened.
    #[error(
        "port {port}: its device or peer writes into packet memory, which requires a grant, and \
         the program has made none: make one (`Registry::granting`, docs/soundness.md)"
    )]
    NoGrant {
        /// The port.
        port: String,
    },
    /// The device does not offer what was requested.
    #[error("port {port}: {asked} requested, but the device offers {offered}")]
    Unsupported {
        /// The port.
        port: String,
        /// The request.
        asked: String,
        /// What the device offers.
        offered: String,
    },
    /// The system refused an operation.
    #[error("port {port}: {what}: {error}{}", in_brackets(.hint))]
    System {
        /// The port.
        port: String,
        /// The operation.
        what: String,
        /// The remedy; may be empty.
        hint: String,
        /// The system's error. It is part of the message, so it is not a `source`, which would be
        /// printed again.
        error: std::io::Error,
    },
    /// The file or device has unusable contents.
    #[error("port {port}: {what}")]
    Device {
        /// The port.
        port: String,
        /// The fault and its remedy.
        what: String,
    },
    /// The device is not accessible, or lacks a capability.
    #[error("port {port}: {error}")]
    Bus {
        /// The port.
        port: String,
        /// The bus's error. It is part of the message, so it is not a `source`, which would be
        /// printed again.
        error: BusError,
    },
    /// The device disappeared while the port was running.
    #[error(
        "port {port}: its device is gone: it was unplugged or deleted, or its owner has requested \
         it back; restart when it is available"
    )]
    Gone {
        /// The port.
        port: String,
    },
    /// The queues given to `stop` are not exactly the port's queues.
    #[error(
        "port {port}: stop needs all {expected} queues that start returned and no others, got \
         {got} of them among {given}"
    )]
    WrongQueues {
        /// The port.
        port: String,
        /// Queues that belong to the port.
        expected: usize,
        /// Queues of this port among those given.
        got: usize,
        /// Number of queues given.
        given: usize,
    },
}

impl PortError {
    /// Whether the request is invalid in itself, found before anything was opened. All other errors
    /// are failures of an attempt.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Spec(_)
                | Self::UnknownDriver { .. }
                | Self::NotBuiltIn { .. }
                | Self::NoGrant { .. }
                | Self::Unsupported { .. }
        )
    }
}

/// Converts an error of a device to an error of its port. For drivers: `device.bar(0,
/// 256).map_err(bus_error(&port))`.
pub fn bus_error(port: &str) -> impl Fn(BusError) -> PortError {
    move |error| PortError::Bus {
        port: port.into(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// Programs print an error and then all its sources.
    #[test]
    fn the_system_s_error_is_printed_once() {
        let error = PortError::System {
            port: "tap:x".into(),
            what: "cannot".into(),
            hint: "try again".into(),
            error: std::io::ErrorKind::TimedOut.into(),
        };
        assert_eq!(
            error.to_string(),
            "port tap:x: cannot: timed out (try again)"
        );
        assert!(error.source().is_none());
    }
}
