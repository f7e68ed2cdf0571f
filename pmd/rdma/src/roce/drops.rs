//! Why the endpoint drops a packet, with causes for the loss ledger, and why a queue pair fails.

use pollux_pmd::{Cause, CauseError};

use crate::address::Psn;
use crate::event::Status;

/// Why a queue pair fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: Status,
    pub(super) psn: Psn,
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drop {
    /// The ICRC is wrong.
    BadIcrc,
    /// No such queue pair, or one that is not connected, or has failed.
    UnknownQp,
    /// Another partition.
    Partition,
    /// Another service than that of the queue pair.
    Transport,
    /// From another host than the queue pair's peer.
    Source,
    /// Wrong key, range or rights.
    Access,
    /// A request that is not executed, or whose packets contradict each other.
    InvalidRequest,
    /// Packets before it are missing.
    Gap,
    /// It has come before.
    Duplicate,
    /// No receive, or no room for its event.
    NotReady,
    /// As many READs wait for their responses as a responder keeps.
    TooManyReads,
    /// The endpoint's own memory, where its data should go, is not registered.
    LocalAccess,
    /// A response to nothing that was asked.
    Unexpected,
}

/// Drop causes, by [`Drop`].
pub(super) struct Causes([Cause; 13]);

impl Causes {
    pub(super) fn declare() -> Result<Self, CauseError> {
        let declare = Cause::declare;
        Ok(Self([
            declare("bad-icrc", "the invariant CRC of an RDMA packet is wrong")?,
            declare("unknown-qp", "for a queue pair that is not connected")?,
            declare("wrong-partition", "an RDMA packet of another partition")?,
            declare("wrong-transport", "of another service than its queue pair")?,
            declare(
                "wrong-source",
                "from another host than the queue pair's peer",
            )?,
            declare("access", "an RDMA request with a wrong key, range or right")?,
            declare("invalid-request", "an RDMA request that is not executed")?,
            declare("psn-gap", "an RDMA packet behind one that is missing")?,
            Cause::Duplicate,
            declare(
                "not-ready",
                "a message without a receive, or room for its event",
            )?,
            declare(
                "too-many-reads",
                "an RDMA READ of a peer that has as many under way as are kept",
            )?,
            declare("local-access", "data for memory that is not registered")?,
            declare("unexpected-response", "a response to no request")?,
        ]))
    }

    pub(super) fn of(&self, drop: Drop) -> Cause {
        self.0[drop as usize]
    }
}
