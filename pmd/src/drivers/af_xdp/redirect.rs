//! XDP program of an interface, which passes each queue's frames to its socket. An interface has
//! one program at a time, so all ports of this process on it share theirs.

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::bpf::{Link, Map, Program};
use super::options::{Options, Other};
use super::patience::patiently;
use super::program::{self, Filter, Rest};
use super::socket::Socket;
use crate::drivers::interface::Interface;
use crate::drivers::step::Step;

/// Maximum number of queues with sockets: more than any that `queue=` can name.
const QUEUES: u32 = 4096 + 64;

/// Identifies an interface: the network namespace, by device and inode, and the number in it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    namespace: (u64, u64),
    index: i32,
}

impl Place {
    /// In the namespace of this thread, in which its ports attach programs.
    fn of(interface: &Interface) -> io::Result<Self> {
        let namespace = std::fs::metadata("/proc/thread-self/ns/net")?;
        Ok(Self {
            namespace: (namespace.dev(), namespace.ino()),
            index: interface.index,
        })
    }
}

/// The attached programs.
static ATTACHED: Mutex<Vec<(Place, Weak<Redirect>)>> = Mutex::new(Vec::new());

/// The options of a port that determine the program.
#[derive(Clone, PartialEq, Eq)]
struct Kind {
    other: Other,
    ports: Option<RangeInclusive<u16>>,
}

/// An attached program, until the last port releases it.
pub(super) struct Redirect {
    kind: Kind,
    attach: u32,
    map: Map<u32>,
    drops: Option<Arc<Drops>>,
    /// Queues of the NIC that have a socket.
    queues: Mutex<BTreeSet<u32>>,
    _link: Link,
}

/// Counter of the frames that the program drops, which belong to no queue.
pub(super) struct Drops {
    map: Map<u64>,
    /// Drops that ports have counted.
    counted: AtomicU64,
}

impl Drops {
    /// Dropped frames that no port has counted before.
    pub(super) fn take(&self) -> u64 {
        let now = self.map.count().unwrap_or(0);
        // Relaxed: only the number is shared.
        now.saturating_sub(self.counted.fetch_max(now, Ordering::Relaxed))
    }
}

impl Redirect {
    /// The program of the interface's other ports, or a new one.
    pub(super) fn join(interface: &Interface, options: &Options) -> Result<Arc<Self>, Step> {
        let place = Place::of(interface)
            .map_err(|error| ("cannot tell the network namespace (is /proc there?)", error))?;
        let kind = Kind {
            other: options.other,
            ports: options.ports.clone(),
        };
        let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
        attached.retain(|(_, program)| program.strong_count() > 0);
        let found = attached.iter().find(|(known, _)| *known == place);
        if let Some(program) = found.and_then(|(_, program)| program.upgrade()) {
            let place_fits = options.attach == 0 || options.attach == program.attach;
            return if program.kind == kind && place_fits {
                Ok(program)
            } else {
                Err((
                    "cannot share the XDP program of another port",
                    io::Error::other(
                        "ports of one interface share it, so other=, ports= and attach= must be \
                         the same for all",
                    ),
                ))
            };
        }
        let program = Arc::new(Self::attach(interface, options, kind)?);
        attached.push((place, Arc::downgrade(&program)));
        Ok(program)
    }

    fn attach(interface: &Interface, options: &Options, kind: Kind) -> Result<Self, Step> {
        let failed = |error| ("cannot make a BPF map", error);
        let map = Map::of_sockets(QUEUES).map_err(failed)?;
        let drops = match kind.other {
            Other::Drop => Some(Map::of_counter().map_err(failed)?),
            Other::Port | Other::Kernel => None,
        };
        let filter = match (kind.other, &drops) {
            (Other::Port, _) => Filter::All,
            (Other::Drop, Some(counter)) => Filter::Udp {
                ports: kind.ports.clone(),
                rest: Rest::Drop(counter.as_fd()),
            },
            _ => Filter::Udp {
                ports: kind.ports.clone(),
                rest: Rest::Kernel,
            },
        };
        let code = program::assemble(map.as_fd(), &filter);
        let program = Program::load(&code).map_err(|error| ("cannot load a program", error))?;
        let link = patiently(|| Link::attach(&program, interface.index, options.attach))
            .map_err(|error| ("cannot attach a program", error))?;
        let drops = drops.map(|map| Drops {
            map,
            counted: AtomicU64::new(0),
        });
        Ok(Self {
            kind,
            attach: options.attach,
            map,
            drops: drops.map(Arc::new),
            queues: Mutex::default(),
            _link: link,
        })
    }

    /// The counter of the program's drops, if it drops frames.
    pub(super) fn drops(&self) -> Option<Arc<Drops>> {
        self.drops.clone()
    }

    /// Directs the frames of a queue of the NIC to a socket from now on.
    pub(super) fn give(&self, queue: u32, socket: &Socket) -> io::Result<()> {
        self.map.insert(queue, socket)?;
        self.queues().insert(queue);
        Ok(())
    }

    /// Directs the frames of these queues to the kernel from now on.
    pub(super) fn take_back(&self, queues: impl Iterator<Item = u32>) {
        for queue in queues {
            if self.queues().remove(&queue) {
                // A socket that was unbound, since its interface was removed, is in no map any
                // more.
                let _ = self.map.remove(queue);
            }
        }
    }

    /// Whether a queue of the NIC has a socket.
    pub(super) fn has(&self, queue: u32) -> bool {
        self.queues().contains(&queue)
    }

    fn queues(&self) -> std::sync::MutexGuard<'_, BTreeSet<u32>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
