//! Quarantine of the buffers of ended queues, until the kernel has released the UMEM.
//!
//! Closing an XDP socket does not end the kernel's use of its buffers. The socket lives on as long
//! as a copy of it (in a forked child, say), a mapping of its rings, or a frame in flight; and a
//! work queue releases its buffer pool later still (net/xdp/xsk_buff_pool.c, xp_put_pool and
//! xp_release_deferred). Until then a NIC in zero-copy mode continues to write into buffers that it
//! has taken from FILL, and into those that it still takes from there.
//!
//! Two facts prove that the kernel has released a queue:
//!
//! - Another socket, with memory of its own, can be bound to the queue. A queue has one pool at a
//!   time (xp_assign_dev: EBUSY), and loses it in xp_clear_dev, after the NIC's driver has been
//!   made to stop using it, both under the RTNL lock that bind(2) takes. Each queue therefore has a
//!   [`Probe`]. It requests copy mode, which does not involve the NIC's driver.
//! - The interface was removed while the socket was open: xsk_notifier unbinds the socket and
//!   clears the pool, and sets the socket's error before, all under the socket's mutex.
//!
//! The absence of the interface by itself proves nothing: it can have moved to another network
//! namespace between the close and the work queue, and have been started there. And EBUSY can mean
//! that another program was faster to bind the queue; XDP_DIAG could tell, on kernels that are
//! built with it. In both cases the buffers stay quarantined, and are leaked when the port is
//! closed.
//!
//! A child process that is forked between the two has a copy of the probes as well, and keeps the
//! queue from its next user for as long as it lives, as it does with copies of the sockets.

use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::socket::{COMPLETION, FILL, RX, Socket};
use super::umem::Posted;
use crate::drivers::step::Step;
use crate::quarantine::Quarantine;

/// Time for which the end of a port waits for the kernel, which takes some milliseconds.
const PATIENCE: Duration = Duration::from_millis(500);

/// Pauses between two attempts, from the first to the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Entries of a probe's rings, which stay empty.
const ENTRIES: u32 = 2;

/// The UMEM of probes: one page, of which no buffer is posted.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// A socket that can be bound to a queue once the kernel has released the queue. Created when the
/// port starts: it belongs to the network namespace of that moment, and needs no capability later.
pub(super) struct Probe {
    socket: Socket,
    queue: u32,
}

/// Result of a [`Probe`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The queue has no pool.
    LetGo,
    /// It has.
    InUse,
    /// The interface does not exist.
    Gone,
    /// The state of the queue cannot be determined.
    Unknown,
}

impl Probe {
    /// The probed queue.
    pub(super) fn queue(&self) -> u32 {
        self.queue
    }

    fn ask(&self, interface: i32) -> Verdict {
        let bound = self
            .socket
            .bind(interface, self.queue, libc::XDP_COPY, None);
        match bound.map_err(|error| error.raw_os_error()) {
            Ok(()) => Verdict::LetGo,
            Err(Some(libc::EBUSY)) => Verdict::InUse,
            Err(Some(libc::ENODEV)) => Verdict::Gone,
            Err(_) => Verdict::Unknown,
        }
    }
}

/// State shared by a port and its queues: the buffers that the kernel may still use, and the queues
/// that it is not proven to have released.
pub(super) struct UmemQuarantine {
    name: String,
    interface: i32,
    quarantine: Quarantine,
    /// Probes of these queues.
    claims: Mutex<Vec<Probe>>,
    page: Box<Page>,
}

impl UmemQuarantine {
    /// A quarantine for the interface of that name and number.
    pub(super) fn new(port: &str, name: &str, interface: i32) -> Self {
        Self {
            name: name.into(),
            interface,
            quarantine: Quarantine::new(port),
            claims: Mutex::default(),
            page: Box::new(Page([0; 4096])),
        }
    }

    /// A probe for a queue that is about to be bound.
    pub(super) fn probe(&self, queue: u32) -> Result<Probe, Step> {
        let socket = Socket::new()?;
        socket.register(&libc::xdp_umem_reg {
            addr: self.page.0.as_ptr().addr() as u64,
            len: size_of::<Page>() as u64,
            chunk_size: size_of::<Page>() as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        })?;
        for ring in [&FILL, &COMPLETION, &RX] {
            socket.reserve(ring, ENTRIES)?;
        }
        Ok(Probe { socket, queue })
    }

    /// Number of buffers of ended queues that the kernel may still use.
    pub(super) fn buffers(&self) -> usize {
        self.quarantine.buffers()
    }

    /// Keeps the buffers posted to a queue that ends.
    pub(super) fn hold(&self, posted: &mut Posted) {
        let count = posted.count();
        let buffers = posted.surrender();
        if count > 0 {
            self.quarantine.hold(buffers, count);
        }
    }

    /// Records that a socket has been bound to a queue: its previous user has released it.
    pub(super) fn bound(&self, queue: u32) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|claim| claim.queue != queue);
        // No queue of this start has ended yet, so all that is kept belongs to earlier ones.
        if claims.is_empty() {
            self.quarantine.release();
        }
    }

    /// Closes the sockets of a port, of which the first are bound to the queues of `probes`, and
    /// waits for a bounded time until the kernel has released them.
    pub(super) fn close(&self, sockets: Vec<Socket>, mut probes: Vec<Probe>) {
        let (began, mut of_probes) = (Instant::now(), sockets.iter());
        probes.retain(|probe| {
            let socket = of_probes.next();
            !socket.is_some_and(|socket| self.was_unbound(socket, probe, began))
        });
        drop(sockets);
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.append(&mut probes);
        drop(claims);
        if !self.settle(PATIENCE) {
            tracing::warn!(
                buffers = self.buffers(),
                "{}: the kernel has not released these packet buffers, so they stay out of their \
                 pool: a child process may have a copy of the port's sockets, or another program \
                 may have bound the queue; a later start of this port checks again",
                self.name
            );
        }
    }

    /// Whether the interface was removed while the socket was open. If it is being removed now,
    /// waits for the kernel to notify the socket, measured from the start of the end.
    fn was_unbound(&self, socket: &Socket, probe: &Probe, began: Instant) -> bool {
        loop {
            if socket.was_unbound() {
                return true;
            }
            if probe.ask(self.interface) != Verdict::Gone || began.elapsed() >= PATIENCE {
                return false;
            }
            sleep(PAUSE.0);
        }
    }

    /// Probes all ended queues, repeatedly for the given time, and releases the buffers when none
    /// is left; returns whether it did.
    pub(super) fn settle(&self, patience: Duration) -> bool {
        let (began, mut pause) = (Instant::now(), PAUSE.0);
        loop {
            let mut in_use = false;
            let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            claims.retain(|claim| {
                let verdict = claim.ask(self.interface);
                in_use |= verdict == Verdict::InUse;
                verdict != Verdict::LetGo
            });
            if claims.is_empty() {
                self.quarantine.release();
                return true;
            }
            drop(claims);
            if !in_use || began.elapsed() >= patience {
                return false;
            }
            sleep(pause);
            pause = (pause * 2).min(PAUSE.1);
        }
    }
}

impl Drop for UmemQuarantine {
    /// The last chance: memory that is kept after this is leaked.
    fn drop(&mut self) {
        self.settle(Duration::ZERO);
    }
}
