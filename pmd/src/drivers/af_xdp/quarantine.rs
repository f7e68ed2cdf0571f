//! Quarantine of the buffers of queues that have ended, until the kernel has let go of the UMEM.
//!
//! To close an XDP socket is not to end what the kernel does with its buffers. The socket lives on
//! as long as a copy of it (in a forked child, say), a mapping of its rings, or a frame that is on
//! its way; and the pool behind it is given up later still, by a work queue (net/xdp/xsk_buff_pool.c,
//! xp_put_pool and xp_release_deferred). Until then a NIC in zero-copy mode goes on writing into
//! buffers of FILL that it has taken, and into those that it takes from there.
//!
//! Two things prove that the kernel has let go of a queue:
//!
//! - Another socket, with memory of its own, can be bound to the queue. A queue has one pool at a
//!   time (xp_assign_dev: EBUSY), and loses it in xp_clear_dev, after the NIC's driver has been told
//!   to stop using it, both under the RTNL lock that bind(2) takes. So there is a [`Probe`] for each
//!   queue. It asks for copy mode, of which a NIC's driver hears nothing.
//! - The interface left while the socket was open: xsk_notifier unbinds the socket and clears the
//!   pool, and sets the socket's error before, all under the socket's mutex.
//!
//! That the interface is not found any more proves nothing by itself: it can have moved to another
//! network namespace between the close and the work queue, and have been started there. And EBUSY
//! can mean that another program was quicker to bind the queue; XDP_DIAG could tell, on kernels that
//! are built with it. In both cases the buffers stay, and are leaked when the port is closed.
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

/// How long the end of a port waits for the kernel. It takes some milliseconds.
const PATIENCE: Duration = Duration::from_millis(500);

/// Pauses between two attempts, from the first to the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// Entries of a probe's rings, which stay empty.
const ENTRIES: u32 = 2;

/// The UMEM of probes: one page, of which the kernel is given no buffer.
#[repr(C, align(4096))]
struct Page([u8; 4096]);

/// A socket that can be bound to a queue when the kernel has let go of that. Made when the port
/// starts: it belongs to the network namespace of then, and needs no capability later.
pub(super) struct Probe {
    socket: Socket,
    queue: u32,
}

/// What the kernel says to a [`Probe`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The queue has no pool.
    LetGo,
    /// It has.
    InUse,
    /// The interface is not there.
    Gone,
    /// The queue cannot be asked for.
    Unknown,
}

impl Probe {
    /// The queue that it is for.
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

/// What a port and its queues share: the buffers that the kernel may still have, and the queues that
/// it is not proven to have let go of.
pub(super) struct UmemQuarantine {
    name: String,
    interface: i32,
    quarantine: Quarantine,
    /// Of these queues.
    claims: Mutex<Vec<Probe>>,
    page: Box<Page>,
}

impl UmemQuarantine {
    /// For the interface of that name and number.
    pub(super) fn new(port: &str, name: &str, interface: i32) -> Self {
        Self {
            name: name.into(),
            interface,
            quarantine: Quarantine::new(port),
            claims: Mutex::default(),
            page: Box::new(Page([0; 4096])),
        }
    }

    /// A probe for a queue that is to be bound.
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

    /// Buffers that the kernel may still have, of queues that have ended.
    pub(super) fn buffers(&self) -> usize {
        self.quarantine.buffers()
    }

    /// Keeps what was posted to a queue that ends.
    pub(super) fn hold(&self, posted: &mut Posted) {
        let count = posted.count();
        let buffers = posted.surrender();
        if count > 0 {
            self.quarantine.hold(buffers, count);
        }
    }

    /// A socket has been bound to a queue: whatever had it before has let go.
    pub(super) fn bound(&self, queue: u32) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|claim| claim.queue != queue);
        // No queue of this start has ended yet, so that all that is kept is of those before.
        if claims.is_empty() {
            self.quarantine.release();
        }
    }

    /// Closes the sockets of a port, of which the first are bound to the queues of `probes`, and
    /// waits until the kernel has let go of them, but not for long.
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
                "{}: the kernel has not let go of these packet buffers, and they stay out of their \
                 pool: a child process may have a copy of the port's sockets, or another program \
                 may have bound the queue; a later start of this port asks again",
                self.name
            );
        }
    }

    /// Whether the interface has left while the socket was open. If it is leaving now, the kernel
    /// is given time to tell the socket, counted from when the end began.
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

    /// Asks for all queues that have ended, again and again for so long, and lets the buffers go
    /// when none is left; whether that is so.
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
    /// The last chance: what is kept is leaked after this.
    fn drop(&mut self) {
        self.settle(Duration::ZERO);
    }
}
