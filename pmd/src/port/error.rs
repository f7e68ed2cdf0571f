//! Why a port cannot be opened, configured, started or stopped.

use crate::bus::BusError;
use crate::bus::error::in_brackets;
use crate::spec::SpecError;

/// Why a port cannot be opened, configured, started or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The spec cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No driver of that name.
    #[error("no driver `{driver}`; there are: {known}")]
    UnknownDriver {
        /// The name asked for.
        driver: String,
        /// The names of all drivers.
        known: String,
    },
    /// There is such a driver, but this build has it not.
    #[error("driver `{driver}` is not built in: build with the feature {feature}")]
    NotBuiltIn {
        /// The name asked for.
        driver: &'static str,
        /// The feature of `pollux-pmd` that has it built.
        feature: &'static str,
    },
    /// The port has a device or another process write into packet memory, and no grant was made
    /// for that. Nothing was opened.
    #[error(
        "port {port}: it has a device or another process write into packet memory, which takes a \
         grant, and the program has made none: make one (`Registry::granting`, docs/soundness.md)"
    )]
    NoGrant {
        /// The port.
        port: String,
    },
    /// Something was asked that the device does not offer.
    #[error("port {port}: {asked} asked for, but the device offers {offered}")]
    Unsupported {
        /// The port.
        port: String,
        /// What was asked.
        asked: String,
        /// What there is.
        offered: String,
    },
    /// The system refused.
    #[error("port {port}: {what}: {error}{}", in_brackets(.hint))]
    System {
        /// The port.
        port: String,
        /// What was tried.
        what: String,
        /// What to do about it; may be empty.
        hint: String,
        /// The system's word. It is in the message, so it is no `source` to be printed again.
        error: std::io::Error,
    },
    /// The file or device holds something that cannot be used.
    #[error("port {port}: {what}")]
    Device {
        /// The port.
        port: String,
        /// What is wrong, and what to do about it.
        what: String,
    },
    /// The device could not be reached, or cannot do something.
    #[error("port {port}: {error}")]
    Bus {
        /// The port.
        port: String,
        /// What went wrong. It is in the message, so it is no `source` to be printed again.
        error: BusError,
    },
    /// The device left while the port was running.
    #[error(
        "port {port}: its device is gone: it was unplugged or deleted, or its owner wants it back; \
         start again when it is there"
    )]
    Gone {
        /// The port.
        port: String,
    },
    /// `stop` was not given all the port's queues, and only those.
    #[error(
        "port {port}: stop needs all {expected} queues that start gave out and no others, got \
         {got} of them among {given}"
    )]
    WrongQueues {
        /// The port.
        port: String,
        /// Queues that belong to the port.
        expected: usize,
        /// Queues of this port among those given.
        got: usize,
        /// Queues given.
        given: usize,
    },
}

impl PortError {
    /// Whether something was asked for that cannot be: a mistake of whoever asked, found before
    /// anything was opened. (Anything else was tried, and failed.)
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

/// The error of a port whose device could not be had, or failed.
pub(crate) fn bus_error(port: &str) -> impl Fn(BusError) -> PortError {
    move |error| PortError::Bus {
        port: port.into(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// Programs print an error with all its sources behind it.
    #[test]
    fn the_system_s_word_is_told_once() {
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
