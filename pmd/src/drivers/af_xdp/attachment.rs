//! What the queues of a started port share: the attached program, the sockets, the maps.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, mem};

use super::bpf::{Link, Map};
use super::quarantine::{Probe, UmemQuarantine};
use super::socket::{Socket, Statistics};
use super::steer::Rules;
use super::umem::Posted;
use crate::drivers::interface::packet::Membership;

/// How long a NIC's queue that was in use is tried again. The kernel frees a queue when the last
/// socket on it is closed, but does so in the background (xp_release_deferred), and after the last
/// frame that was sent from there is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Goes with the last queue: the program is detached, so that no frame comes any more; the sockets
/// are closed, and when the kernel has let go of the buffers, these go to the pool.
pub(super) struct Attachment {
    link: Mutex<Option<Link>>,
    rules: Option<Rules>,
    /// Has the interface receive what it would not by itself.
    membership: Option<Membership>,
    sockets: Vec<Socket>,
    /// For the first sockets, as many as are bound.
    bound: Mutex<Vec<Probe>>,
    map: Map<u32>,
    /// Counts what the program has dropped.
    drops: Option<Map<u64>>,
    quarantine: Arc<UmemQuarantine>,
}

impl Attachment {
    pub(super) fn new(
        sockets: Vec<Socket>,
        map: Map<u32>,
        drops: Option<Map<u64>>,
        membership: Option<Membership>,
        rules: Rules,
        quarantine: Arc<UmemQuarantine>,
    ) -> Self {
        Self {
            link: Mutex::default(),
            rules: Some(rules),
            membership,
            sockets,
            bound: Mutex::default(),
            map,
            drops,
            quarantine,
        }
    }

    /// The socket of a queue.
    #[inline]
    pub(super) fn socket(&self, queue: usize) -> &Socket {
        &self.sockets[queue]
    }

    /// The next of the sockets is bound to the queue of a probe.
    pub(super) fn bound(&self, probe: Probe) {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        self.quarantine.bound(probe.queue());
        bound.push(probe);
    }

    /// Which socket has the frames of which queue of the NIC.
    pub(super) fn map(&self) -> &Map<u32> {
        &self.map
    }

    /// The counter of what the program drops, if it does.
    pub(super) fn drops(&self) -> Option<&Map<u64>> {
        self.drops.as_ref()
    }

    /// Keeps the program attached from now on.
    pub(super) fn attach(&self, link: Link) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
    }

    /// Detaches the program: no more frames.
    pub(super) fn detach(&self) {
        let link = self
            .link
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if link.is_some() {
            drop(link);
            // Another core may be putting a frame into a ring at this moment.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Frames that the program has dropped since it was attached.
    pub(super) fn dropped_by_program(&self) -> u64 {
        self.drops().map_or(0, |map| map.count().unwrap_or(0))
    }

    /// What the kernel counts for each queue's socket.
    pub(super) fn statistics(&self) -> impl Iterator<Item = (usize, Statistics)> {
        let sockets = self.sockets.iter().enumerate();
        sockets.filter_map(|(queue, socket)| Some((queue, socket.statistics()?)))
    }

    /// Keeps the buffers of a queue that ends: the kernel has them.
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

/// Tries again while the kernel says that something is in use, for as long as one who has just
/// stopped may need to be gone.
pub(super) fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && began.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}
