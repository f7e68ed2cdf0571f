//! Why a carrier cannot be made.

use pollux_pmd::CauseError;

use super::frame::ETHERNET;
use crate::role::Address;
use crate::wire::HEADER;

/// A carrier that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// A route to a queue that the carrier does not have.
    #[error("a route to transmit queue {way} of {ways}: the first one is 0")]
    NoWay {
        /// The queue.
        way: u16,
        /// Queues of the carrier.
        ways: usize,
    },
    /// A member that the farm does not have.
    #[error("{0:?} is not in the farm: raise the number of feeders or nodes")]
    NoMember(Address),
    /// Frames that do not hold a message.
    #[error("frames of {0} bytes hold no message: set at least {least}", least = ETHERNET + HEADER)]
    Frame(usize),
    /// The counters could not be made.
    #[error(transparent)]
    Cause(#[from] CauseError),
}
