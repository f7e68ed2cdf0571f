//! What the queues of a started port share: the attached program, the sockets, the maps.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pollux_mempool::Mbuf;

use super::bpf::{Link, Map};
use super::socket::{Socket, Statistics};
use super::steer::Rules;
use super::umem::Posted;
use crate::drivers::interface::packet::Membership;

/// How long a NIC's queue that was in use is tried again. The kernel frees a queue when the last
/// socket on it is closed, but does so in the background (xp_release_deferred), and after the last
/// frame that was sent from there is gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Goes with the last queue. The order of the fields is the order in which they are dropped: the
/// program is detached, so that no frame comes any more; the sockets are closed, so that the kernel
/// gives up the buffers; then the maps, and the buffers go to the pool.
pub(super) struct Attachment {
    link: Mutex<Option<Link>>,
    _rules: Rules,
    /// Has the interface receive what it would not by itself.
    _membership: Option<Membership>,
    sockets: Vec<Socket>,
    map: Map<u32>,
    /// Counts what the program has dropped.
    drops: Option<Map<u64>>,
    /// Buffers that the kernel has, of queues that are gone.
    retired: Mutex<Vec<Box<[Option<Mbuf>]>>>,
}

impl Attachment {
    pub(super) fn new(
        sockets: Vec<Socket>,
        map: Map<u32>,
        drops: Option<Map<u64>>,
        membership: Option<Membership>,
        rules: Rules,
    ) -> Self {
        Self {
            link: Mutex::default(),
            _rules: rules,
            _membership: membership,
            sockets,
            map,
            drops,
            retired: Mutex::default(),
        }
    }

    /// The socket of a queue.
    #[inline]
    pub(super) fn socket(&self, queue: usize) -> &Socket {
        &self.sockets[queue]
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

    /// Keeps the buffers that the kernel has until the sockets are closed.
    pub(super) fn retire(&self, posted: &mut Posted) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.push(posted.surrender());
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
