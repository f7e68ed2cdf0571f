//! Endpoints over memory that two processes share.
//!
//! Two processes that are linked by a Unix socket map each other's registered memory. A PUT or a GET is one
//! copy, made by the process that asks for it; the peer's processor takes no part. Messages, immediates and
//! acknowledgements go through a ring in shared memory for each direction of a connection. Nothing needs to
//! be polled but for the queue pairs: requests are executed at the doorbell, up to 1 MiB, and go on with
//! every call that takes events. A message whose event was taken is done for the peer with the next call:
//! most often that is the doorbell of the answer, whose entry says it.
//!
//! ```
//! use std::os::unix::net::UnixStream;
//! use pollux_rdma::{Access, Event, Memory, Payload, Put, Wait, shm};
//! use pollux_rdma::{PathOptions, QpOptions};
//! use pollux_mempool::region::MemoryRegion;
//!
//! // Two ends in one process; two processes use `shm::listen` and `shm::connect`.
//! let (left, right) = UnixStream::pair()?;
//! let other = std::thread::spawn(|| shm::endpoint(right, 8));
//! let (mut here, _) = shm::endpoint(left, 8)?;
//! let (mut there, _) = other.join().unwrap()?;
//!
//! let memory = Memory::new(MemoryRegion::builder(4096).build()?);
//! let buffer = there.register_buffer(&memory, 0..4096, Access::WRITE)?;
//! let mut qp = here.create_queue_pair(&QpOptions::default())?;
//! let peer = there.create_queue_pair(&QpOptions::default())?;
//! here.connect(&qp, &peer.address(), &PathOptions::default())?;
//! there.connect(&peer, &qp.address(), &PathOptions::default())?;
//!
//! let (payload, to) = (Payload::Immediate(b"hits"), buffer.remote());
//! qp.put(Put { cookie: 1, payload, to, immediate: None })?;
//! qp.doorbell();
//! let event = qp.wait_event(Wait::Poll(std::time::Duration::from_secs(1)));
//! assert!(matches!(event, Some(Event::Done(_))));
//! let mut bytes = [0; 4];
//! buffer.read(0, &mut bytes)?;
//! assert_eq!(&bytes, b"hits");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a peer can do
//!
//! - A peer gets the memory file of a [`Memory`](crate::Memory) as a whole. Key, range and rights are
//!   checked by the peer's own endpoint; a peer whose program is hostile can read all of the memory if a
//!   range of it is registered for reading, and write all of it if a range is registered for writing.
//!   Memory that no range shares is out of its reach, and what is shared for reading alone is handed over
//!   by a descriptor that cannot be written.
//! - Unregistering waits until the peer has given the range up, for 100 ms at most: then it is counted
//!   ([`Monitor::unacknowledged`]), and a peer that was stopped in the middle of a copy may still go on
//!   with it. A hostile peer keeps its mapping. A [`Memory`](crate::Memory) is never used for anything
//!   else.
//! - What it writes into the rings is checked; a violation fails the queue pair and is counted
//!   ([`Monitor::violations`]). What it does to pages of its memory files costs their content alone.
//! - A queue pair sleeps on a word of its inbox (futex(2)), which the peer wakes only then. A descriptor
//!   instead could be made to block the process that writes to it: both share its flags.
//! - The end of its process, at any moment, is the event [`Failed`](crate::Failed) with
//!   [`Status::PeerGone`](crate::Status::PeerGone), after all that it had sent.

mod driver;
#[cfg(any(all(test, not(loom)), fuzzing))]
#[doc(hidden)]
#[path = "../../tests/hostile/shm.rs"]
pub mod hostile;
mod inbox;
mod link;
mod mapping;
mod message;
mod pair;
mod requester;
mod responder;
mod seat;
mod violation;

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pollux_pmd::{Cause, CauseError, Count, Ledger, Tally};

use crate::endpoint::Endpoint;
use crate::registrations::{MAX_BUFFERS, Registrations};
use driver::ShmDriver;
use link::{Connection, PATIENCE};
use seat::Counters;
use violation::Violation;

/// Most queue pairs of an endpoint.
const MAX_QUEUE_PAIRS: usize = 1024;

/// Why two endpoints could not be linked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShmError {
    /// The socket of that path cannot be had.
    #[error("the socket {path}: {source}")]
    Socket {
        /// The path.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The peer did not introduce itself.
    #[error("linking to the peer: {0}")]
    Peer(#[from] io::Error),
    /// A number of queue pairs that an endpoint cannot have.
    #[error("an endpoint of {0} queue pairs: 1 to {MAX_QUEUE_PAIRS}")]
    QueuePairs(usize),
    /// The process has too many drop causes.
    #[error(transparent)]
    Cause(#[from] CauseError),
}

/// Counters of an endpoint.
#[derive(Clone)]
pub struct Monitor {
    ledger: Arc<Ledger>,
    counters: Arc<Counters>,
}

impl Monitor {
    /// Messages of the peer, those that were delivered and those that were lost, by cause. It balances
    /// while no message is half received.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Violations of the protocol in rings, by name.
    pub fn violations(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.counters.violations.iter().map(Count::get);
        Violation::NAMES.into_iter().zip(counts)
    }

    /// Messages over the socket that were refused: no memory file, ranges outside of it, too many.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.counters.link.refused.get()
    }

    /// Ranges that were unregistered, and that the peer did not give up within 100 ms.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        self.counters.link.unacknowledged.get()
    }
}

/// Links an endpoint of up to `queue_pairs` queue pairs to the one at the other end of a socket, and waits
/// until that is linked too, for 5 s at most.
///
/// # Errors
/// No endpoint of this version at the other end, or a number of queue pairs out of its limits.
pub fn endpoint(socket: UnixStream, queue_pairs: usize) -> Result<(Endpoint, Monitor), ShmError> {
    endpoint_with(socket, queue_pairs, PATIENCE)
}

/// The same, of a peer that has so much time to take a range or a queue pair.
fn endpoint_with(
    socket: UnixStream,
    queue_pairs: usize,
    patience: Duration,
) -> Result<(Endpoint, Monitor), ShmError> {
    if !(1..=MAX_QUEUE_PAIRS).contains(&queue_pairs) {
        return Err(ShmError::QueuePairs(queue_pairs));
    }
    let access = Cause::declare("local-access", "data for memory that is not registered")?;
    let counters = Arc::new(Counters::new(access));
    let tables = || Registrations::new(MAX_BUFFERS, queue_pairs);
    let link = Arc::clone(&counters.link);
    let connection = Arc::new(Connection::new(
        socket,
        tables(),
        queue_pairs,
        patience,
        link,
    )?);
    let mut ledger = Ledger::new();
    let mut tallies = Vec::new();
    for number in 0..queue_pairs {
        let tally = Tally::new();
        ledger.add(format!("queue pair {number}"), tally.view());
        tallies.push(tally);
    }
    let monitor = Monitor {
        ledger: Arc::new(ledger),
        counters: Arc::clone(&counters),
    };
    let driver = ShmDriver::new(tables(), tallies, counters, connection);
    Ok((Endpoint::new(Box::new(driver)), monitor))
}

/// Waits for a peer at the socket of that path, which is made, and removed when the peer has come.
///
/// # Errors
/// The socket cannot be made; as of [`endpoint`].
pub fn listen(path: &Path, queue_pairs: usize) -> Result<(Endpoint, Monitor), ShmError> {
    let refused = |source| ShmError::Socket {
        path: path.display().to_string(),
        source,
    };
    let listener = UnixListener::bind(path).map_err(refused)?;
    let accepted = listener.accept();
    // If it cannot be removed, the next bind says so.
    let _ = std::fs::remove_file(path);
    let (socket, _) = accepted.map_err(refused)?;
    endpoint(socket, queue_pairs)
}

/// Connects to a peer that listens at the socket of that path.
///
/// # Errors
/// There is none; as of [`endpoint`].
pub fn connect(path: &Path, queue_pairs: usize) -> Result<(Endpoint, Monitor), ShmError> {
    let socket = UnixStream::connect(path).map_err(|source| ShmError::Socket {
        path: path.display().to_string(),
        source,
    })?;
    endpoint(socket, queue_pairs)
}
