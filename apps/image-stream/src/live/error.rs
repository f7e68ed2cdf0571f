//! Errors of the live stream.

use std::io;
use std::net::SocketAddr;

use crate::detector::DetectorError;

/// Reason why there is no live stream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The address cannot be listened at.
    #[error("live stream at {address}: {error}: give an address of this machine and a free port")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Error of the system.
        error: io::Error,
    },
    /// A queue without space.
    #[error("live stream: a queue for 0 images: give 1 or more")]
    Queue,
    /// The system has no thread for it.
    #[error("live stream: cannot start its thread: {0}")]
    Thread(io::Error),
    /// The detector cannot be described.
    #[error("live stream: {0}")]
    Detector(#[from] DetectorError),
    /// The thread has ended before the stream.
    #[error("live stream: its thread has ended early; its last message says why")]
    Ended,
}
