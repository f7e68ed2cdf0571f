//! Link state: whether a program is bound to the peer's path.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, connect};

use super::socket::unbound;
use crate::driver::Link;
use crate::port::RxState;

/// Monitors the peer of a port, for its queues and for housekeeping.
pub(super) struct Watch {
    spec: String,
    peer: SocketAddrUnix,
    probe: OwnedFd,
    up: AtomicBool,
    changes: AtomicU64,
}

impl Watch {
    pub(super) fn new(spec: String, peer: SocketAddrUnix) -> Result<Self, Errno> {
        Ok(Self {
            spec,
            peer,
            probe: unbound()?,
            up: AtomicBool::new(false),
            changes: AtomicU64::new(0),
        })
    }

    /// Looks whether the peer is there; logs and counts a change.
    pub(super) fn look(&self) -> RxState {
        // A datagram socket connects without a message to the peer. EPERM: the peer is there, and
        // connected to another socket, usually the port's own (unix_dgram_connect).
        let up = matches!(connect(&self.probe, &self.peer), Ok(()) | Err(Errno::PERM));
        // Relaxed: it orders nothing, and only selects the caller that logs.
        if self.up.swap(up, Ordering::Relaxed) != up {
            self.changes.fetch_add(1, Ordering::Relaxed);
            if up {
                tracing::info!("{}: the peer is there", self.spec);
            } else {
                tracing::warn!(
                    "{}: the peer has gone; frames are dropped until a program is bound to its \
                     path again",
                    self.spec
                );
            }
        }
        if up { RxState::Live } else { RxState::Down }
    }

    pub(super) fn link(&self) -> Link {
        let up = self.look() == RxState::Live;
        Link {
            up,
            changes: self.changes.load(Ordering::Relaxed),
            ..Link::DOWN
        }
    }
}
