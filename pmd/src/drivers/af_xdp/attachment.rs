//! State shared by the queues of a started port: the attached program, the sockets, the maps.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, mem};

use super::quarantine::{Probe, UmemQuarantine};
use super::redirect::{Drops, Redirect};
use super::socket::{Socket, Statistics};
use super::steer::Rules;
use super::umem::Posted;
use crate::drivers::interface::packet::Membership;

/// Dropped with the last queue. Then the program has none of the port's sockets, and is detached if
/// no other port uses it, so that no frame arrives; the sockets are closed; and when the kernel has
/// released the buffers, they return to the pool.
pub(super) struct Attachment {
    redirect: Mutex<Option<Arc<Redirect>>>,
    /// Drop counter of the program, if it drops frames. Readable until the end.
    drops: OnceLock<Arc<Drops>>,
    rules: Option<Rules>,
    /// Makes the interface receive frames that it would otherwise filter.
    membership: Option<Membership>,
    sockets: Vec<Socket>,
    /// Probes of the first sockets, as many as are bound.
    bound: Mutex<Vec<Probe>>,
    quarantine: Arc<UmemQuarantine>,
}

impl Attachment {
    pub(super) fn new(
        sockets: Vec<Socket>,
        membership: Option<Membership>,
        rules: Rules,
        quarantine: Arc<UmemQuarantine>,
    ) -> Self {
        Self {
            redirect: Mutex::default(),
            drops: OnceLock::new(),
            rules: Some(rules),
            membership,
            sockets,
            bound: Mutex::default(),
            quarantine,
        }
    }

    /// The socket of a queue.
    #[inline]
    pub(super) fn socket(&self, queue: usize) -> &Socket {
        &self.sockets[queue]
    }

    /// Records that the next socket is bound to the queue of a probe.
    pub(super) fn bound(&self, probe: Probe) {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        self.quarantine.bound(probe.queue());
        bound.push(probe);
    }

    /// Makes the program pass the frames of the receive queues to the first sockets, which are
    /// bound.
    pub(super) fn attach(&self, redirect: &Arc<Redirect>, receivers: usize) -> io::Result<()> {
        if let Some(drops) = redirect.drops() {
            let _ = self.drops.set(drops);
        }
        // Stored first, so that what has been attached is detached at the end.
        *self.redirect() = Some(Arc::clone(redirect));
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let mut receivers = bound.iter().zip(&self.sockets).take(receivers);
        receivers.try_for_each(|(probe, socket)| redirect.give(probe.queue(), socket))
    }

    /// Stops the frames for the port's queues.
    pub(super) fn detach(&self) {
        let Some(redirect) = self.redirect().take() else {
            return;
        };
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        redirect.take_back(bound.iter().map(Probe::queue));
        drop((redirect, bound));
        // Another core may be putting a frame into a ring concurrently.
        std::thread::sleep(Duration::from_millis(1));
    }

    fn redirect(&self) -> MutexGuard<'_, Option<Arc<Redirect>>> {
        self.redirect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of this many queues of the NIC, those whose frames no port of this process receives; empty
    /// if the port does not receive.
    pub(super) fn unpolled(&self, all: u16) -> Vec<u16> {
        let redirect = self.redirect();
        let program = redirect.iter();
        program
            .flat_map(|program| (0..all).filter(|&queue| !program.has(queue.into())))
            .collect()
    }

    /// Frames that the program has dropped, and that no port has counted.
    pub(super) fn take_dropped_by_program(&self) -> u64 {
        self.drops.get().map_or(0, |drops| drops.take())
    }

    /// The kernel's counters of each queue's socket.
    pub(super) fn statistics(&self) -> impl Iterator<Item = (usize, Statistics)> {
        let sockets = self.sockets.iter().enumerate();
        sockets.filter_map(|(queue, socket)| Some((queue, socket.statistics()?)))
    }

    /// Quarantines the buffers of a queue that ends, which the kernel may still use.
    pub(super) fn retire(&self, posted: &mut Posted) {
        self.quarantine.hold(posted);
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.detach();
        self.rules = None;
        self.membership = None;
        let bound = self.bound.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (sockets, bound) = (mem::take(&mut self.sockets), mem::take(bound));
        self.quarantine.close(sockets, bound);
    }
}
