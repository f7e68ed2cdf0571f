//! Management datagrams of queue pair 1, which RDMA CM exchanges (InfiniBand, 13.2 and 13.5): handed to the
//! control side and taken from it.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pollux_mempool::time::Ns;
use pollux_pmd::net::MacAddr;
use pollux_pmd::net::roce::{Bth, Deth, Opcode, Packet};
use zerocopy::IntoBytes;

use super::drops::Drop;
use super::output::{Output, headers_to};

/// Bytes of a management datagram (13.4.2).
pub const MAD_BYTES: usize = 256;
/// Queue pair of general services.
pub(super) const QP: u32 = 1;
/// Its key (10.2.5).
const QUEUE_KEY: u32 = 0x8001_0000;
/// Datagrams that may wait, each way.
const ROOM: usize = 64;
/// Hosts whose MAC addresses are kept.
const HOSTS: usize = 32;
/// Time after which an ARP request is repeated, and after which a datagram is given up: the protocol above
/// repeats it.
const ARP_INTERVAL: u64 = 10_000_000;
const PATIENCE: u64 = 1_000_000_000;

/// A management datagram from or to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad {
    /// The other host.
    pub host: Ipv4Addr,
    /// Its bytes.
    pub bytes: [u8; MAD_BYTES],
}

#[derive(Default)]
struct Queues {
    received: VecDeque<Mad>,
    outgoing: VecDeque<(Mad, Option<Ns>)>,
}

/// The queues between the control side and the loop.
pub(super) struct Management {
    has_outgoing: AtomicBool,
    queues: Mutex<Queues>,
}

impl Management {
    pub(super) fn new() -> Self {
        Self {
            has_outgoing: AtomicBool::new(false),
            queues: Mutex::new(Queues {
                received: VecDeque::with_capacity(ROOM),
                outgoing: VecDeque::with_capacity(ROOM),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        // What it guards is whole between two statements of its users.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next datagram that was received.
    pub(super) fn receive(&self) -> Option<Mad> {
        self.lock().received.pop_front()
    }

    /// Sends a datagram; false if too many wait.
    pub(super) fn send(&self, mad: Mad) -> bool {
        let mut queues = self.lock();
        let has_room = queues.outgoing.len() < ROOM;
        if has_room {
            queues.outgoing.push_back((mad, None));
            // Release pairs with the Acquire in `transmit`.
            self.has_outgoing.store(true, Ordering::Release);
        }
        has_room
    }
}

/// A host to which datagrams go.
#[derive(Clone, Copy)]
struct Host {
    ip: Ipv4Addr,
    mac: Option<MacAddr>,
    /// When the next ARP request is due.
    request_at: Ns,
}

/// The loop's side.
pub(super) struct ManagementLoop {
    hosts: VecDeque<Host>,
    own_ip: Ipv4Addr,
    sent: u32,
}

impl ManagementLoop {
    pub(super) fn new(own_ip: Ipv4Addr) -> Self {
        Self {
            hosts: VecDeque::with_capacity(HOSTS),
            own_ip,
            sent: 0,
        }
    }

    /// Takes a packet for queue pair 1.
    #[cold]
    pub(super) fn take(
        &mut self,
        packet: &Packet<'_>,
        (host, mac): (Ipv4Addr, MacAddr),
        management: &Management,
    ) -> Result<(), Drop> {
        if packet.opcode != Opcode::UdSendOnly {
            return Err(Drop::Transport);
        }
        let key = packet.deth().map(|deth| deth.queue_key.get());
        let bytes = <[u8; MAD_BYTES]>::try_from(packet.payload);
        let (Some(QUEUE_KEY), Ok(bytes)) = (key, bytes) else {
            return Err(Drop::InvalidRequest);
        };
        let mut queues = management.lock();
        if queues.received.len() == ROOM {
            return Err(Drop::NotReady);
        }
        queues.received.push_back(Mad { host, bytes });
        drop(queues);
        self.host(host).mac = Some(mac);
        Ok(())
    }

    /// Learns the MAC address of a host, if it is one to which datagrams go.
    pub(super) fn observe_host(&mut self, ip: Ipv4Addr, mac: MacAddr) {
        let host = self.hosts.iter_mut().find(|host| host.ip == ip);
        if let Some(host) = host.filter(|_| mac.is_unicast()) {
            host.mac = Some(mac);
        }
    }

    /// Sends the datagrams that wait.
    #[inline]
    pub(super) fn transmit(&mut self, management: &Management, out: &mut Output, now: Ns) {
        // Acquire pairs with the Release in `send`.
        if management.has_outgoing.load(Ordering::Acquire) {
            self.transmit_all(management, out, now);
        }
    }

    #[cold]
    fn transmit_all(&mut self, management: &Management, out: &mut Output, now: Ns) {
        let mut queues = management.lock();
        queues.outgoing.retain_mut(|(mad, since)| {
            let since = since.get_or_insert(now).0;
            let is_over = now.0.saturating_sub(since) > PATIENCE;
            !is_over && !self.transmit_one(mad, out, now)
        });
        let is_left = !queues.outgoing.is_empty();
        management.has_outgoing.store(is_left, Ordering::Relaxed);
    }

    /// Sends a datagram; false if it has to wait.
    fn transmit_one(&mut self, mad: &Mad, out: &mut Output, now: Ns) -> bool {
        let host = self.host(mad.host);
        let Some(mac) = host.mac else {
            if now >= host.request_at {
                host.request_at = Ns(now.0.saturating_add(ARP_INTERVAL));
                out.host.request(mad.host, &mut out.cache);
            }
            return false;
        };
        let headers = headers_to(&out.host, self.own_ip, (mac, mad.host), QP);
        let bth = Bth::new(Opcode::UdSendOnly, QP, self.sent);
        let deth = Deth::new(QUEUE_KEY, QP);
        let is_sent = out.send(&headers, bth, &[deth.as_bytes()], MAD_BYTES, |to| {
            to.copy_from_slice(&mad.bytes);
            true
        });
        self.sent = self.sent.wrapping_add(u32::from(is_sent));
        is_sent
    }

    /// The entry of a host; a new one takes the place of the oldest.
    fn host(&mut self, ip: Ipv4Addr) -> &mut Host {
        let at = self.hosts.iter().position(|host| host.ip == ip);
        let at = at.unwrap_or_else(|| {
            if self.hosts.len() == HOSTS {
                self.hosts.pop_front();
            }
            self.hosts.push_back(Host {
                ip,
                mac: None,
                request_at: Ns(0),
            });
            self.hosts.len() - 1
        });
        &mut self.hosts[at]
    }
}
