//! Reasons for the end of a session.

use std::io;

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the port is being stopped")]
    Stopped,
    #[error("the peer has closed the connection")]
    Closed,
    #[error("the peer did not {0} in time")]
    Late(&'static str),
    #[error("the peer violates the protocol: {0}")]
    Violation(String),
    #[error("the peer lacks what this port needs: {0}")]
    Unfit(String),
    /// The port itself has no memory left to lend.
    #[error("no back end is served: {0}")]
    Refused(String),
    #[error("{0}: {1}")]
    System(&'static str, #[source] io::Error),
}

impl Ended {
    /// For `map_err`: the operation that the system refused.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| match error.into() {
            error if error.kind() == io::ErrorKind::ConnectionReset => Self::Closed,
            error if error.kind() == io::ErrorKind::BrokenPipe => Self::Closed,
            error => Self::System(what, error),
        }
    }
}
