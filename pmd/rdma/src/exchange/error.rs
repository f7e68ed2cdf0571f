//! Errors of exchanges.

use std::io;

use crate::endpoint::ConnectError;

/// Why an exchange failed. `step` is what it was about to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The peer did nothing within the deadline.
    #[error(
        "{step}: the peer did not do its part in time: check that it runs and is at the same step"
    )]
    Deadline {
        /// The step.
        step: &'static str,
    },
    /// The flag of the exchange's [`Patience`](super::Patience) was set.
    #[error("{step}: stopped before the peer did its part")]
    Stopped {
        /// The step.
        step: &'static str,
    },
    /// The peer went away.
    #[error("{step}: the peer closed the connection after {got} of {expected} B: see its output")]
    CutShort {
        /// The step.
        step: &'static str,
        /// Bytes that came.
        got: usize,
        /// Bytes of the message, or the most that it may have.
        expected: usize,
    },
    /// The peer sent something that is not the message.
    #[error("{step}: the peer sent {got}, which is not {expected}")]
    Malformed {
        /// The step.
        step: &'static str,
        /// What it sent, as far as it is short.
        got: String,
        /// What the message is.
        expected: &'static str,
    },
    /// The two ends do not want the same.
    #[error("{step}: {what} is {theirs} at the peer and {ours} here: start both with the same")]
    Disagree {
        /// The step.
        step: &'static str,
        /// What differs.
        what: &'static str,
        /// The peer's.
        theirs: String,
        /// This end's.
        ours: String,
    },
    /// The host's kernel refused.
    #[error("{step}: {source}")]
    Io {
        /// The step.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The queue pair could not be connected with what the peer sent.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl ExchangeError {
    pub(super) fn malformed(step: &'static str, got: &[u8], expected: &'static str) -> Self {
        const SHOWN: usize = 120;
        let shown = &got[..got.len().min(SHOWN)];
        let more = if got.len() > SHOWN { "..." } else { "" };
        Self::Malformed {
            step,
            got: format!("`{}{more}`", shown.escape_ascii()),
            expected,
        }
    }
}
