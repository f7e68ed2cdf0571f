//! A port as a host on its network: the sending side, with ARP, ping and IGMP.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, Mbuf, PoolCache};

use crate::cause::Cause;
use crate::driver::Capabilities;
use crate::net::igmp::{GroupError, IgmpCounts, IgmpHost};
use crate::net::{MacAddr, Responder};
use crate::port::TxQueue;

/// Largest answer to a control frame: a ping of a full Ethernet frame.
const MAX_REPLY: usize = 1518;

/// Maximum duration of [`leave_groups`].
const LEAVE_TIMEOUT: Ns = Ns(1_000_000_000);

/// Interval at which [`leave_groups`] sends reports that are due.
const LEAVE_INTERVAL: Duration = Duration::from_millis(1);

/// A port as a host on its network. It owns the transmit queue, by which it answers ARP requests and
/// pings, requests MAC addresses, and reports its multicast groups.
pub struct PortEndpoint {
    /// Absent where the port cannot send.
    tx: Option<TxQueue>,
    /// Present where the port has a MAC address.
    responder: Option<Responder>,
    /// Present where the port has joined multicast groups.
    groups: Option<Box<IgmpHost>>,
    mac: Option<MacAddr>,
    ip: Ipv4Addr,
    /// The driver enters the kernel, which may refuse a frame at the first attempt.
    kernel_backed: bool,
}

impl PortEndpoint {
    /// The host with the address `ip` on a port with these capabilities and this transmit queue.
    /// Without a queue or a MAC address it sends nothing.
    #[must_use]
    pub fn new(port: &Capabilities, tx: Option<TxQueue>, ip: Ipv4Addr) -> Self {
        Self {
            tx,
            responder: port.mac.map(|mac| Responder::new(mac, ip)),
            groups: None,
            mac: port.mac,
            ip,
            kernel_backed: port.kernel_backed,
        }
    }

    /// Joins multicast groups; returns `false`, and joins none, where the port cannot send or has no
    /// MAC address. The first reports are due at time 0 of the loop. The MAC address seeds the delays of
    /// later reports, so that hosts do not report at the same time.
    ///
    /// # Errors
    /// An address that is not a multicast address.
    pub fn join(&mut self, groups: &[Ipv4Addr]) -> Result<bool, GroupError> {
        let (Some(mac), true) = (self.mac, self.can_send()) else {
            return Ok(false);
        };
        let [a, b, c, d, e, f] = mac.0;
        let seed = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let mut host = IgmpHost::new(mac, self.ip, seed);
        for &group in groups {
            host.join(group, Ns(0))?;
        }
        self.groups = Some(Box::new(host));
        Ok(true)
    }

    /// The MAC address; zero where the port has none, as a capture.
    #[must_use]
    pub fn mac(&self) -> MacAddr {
        self.mac.unwrap_or(MacAddr::ZERO)
    }

    /// Whether the port can send.
    #[must_use]
    pub fn can_send(&self) -> bool {
        self.tx.is_some()
    }

    /// The transmit queue.
    #[inline]
    pub fn tx(&mut self) -> Option<&mut TxQueue> {
        self.tx.as_mut()
    }

    /// Returns the transmit queue, with which the port is stopped.
    #[must_use]
    pub fn into_tx(self) -> Option<TxQueue> {
        self.tx
    }

    /// The counters of the multicast memberships, if groups were joined.
    #[must_use]
    pub fn group_counts(&self) -> Option<Arc<IgmpCounts>> {
        self.groups.as_ref().map(|host| host.counts())
    }

    /// Answers an ARP request or a ping that came by this port; returns whether an answer was sent.
    pub fn reply(&mut self, request: &Mbuf, cache: &mut PoolCache) -> bool {
        let (Some(responder), Some(tx)) = (&self.responder, &mut self.tx) else {
            return false;
        };
        send(tx, cache, |out| responder.reply(request.data(), out))
    }

    /// Requests the MAC address of a host by ARP; returns whether a request was sent.
    pub fn request(&mut self, ip: Ipv4Addr, cache: &mut PoolCache) -> bool {
        let (Some(responder), Some(tx)) = (&self.responder, &mut self.tx) else {
            return false;
        };
        send(tx, cache, |out| responder.request(ip, out))
    }

    /// Sends frames again that the kernel refused. To be called from time to time: without other
    /// traffic nothing else sends them.
    pub fn retry(&mut self, cache: &mut PoolCache) {
        if let Some(tx) = self.tx.as_mut().filter(|_| self.kernel_backed) {
            tx.tx(cache, &mut Burst::<1>::new());
        }
    }

    /// Takes a frame that is neither a datagram nor ARP nor ping: an IGMP message, if groups were joined.
    ///
    /// # Errors
    /// The cause for which the frame must be dropped.
    pub fn observe(&mut self, frame: &Mbuf, now: Ns) -> Result<(), Cause> {
        let host = self.groups.as_mut().ok_or(Cause::NotForUs)?;
        host.observe(frame.data(), now).map_err(Cause::from)
    }

    /// Sends the IGMP reports that are due.
    #[inline]
    pub fn report_groups(&mut self, now: Ns, cache: &mut PoolCache) {
        if self.groups.as_ref().is_some_and(|host| host.due() <= now) {
            self.send_reports(now, cache);
        }
    }

    #[cold]
    fn send_reports(&mut self, now: Ns, cache: &mut PoolCache) {
        let (Some(host), Some(tx)) = (&mut self.groups, &mut self.tx) else {
            return;
        };
        let mut send = |frame: &[u8]| {
            send(tx, cache, |out| {
                out.get_mut(..frame.len())?.copy_from_slice(frame);
                Some(frame.len())
            })
        };
        while host.poll(now, &mut send) {}
    }
}

/// Leaves all multicast groups after the loop has ended. It sleeps between the repetitions of the
/// reports that RFC 3376 asks for, and takes one second at most. `now` is the time of the loop.
pub fn leave_groups(endpoints: &mut [PortEndpoint], cache: &mut PoolCache, now: impl Fn() -> Ns) {
    let start = now();
    for endpoint in endpoints.iter_mut() {
        if let Some(host) = &mut endpoint.groups {
            host.leave_all(start);
        }
    }
    let end = Ns(start.0.saturating_add(LEAVE_TIMEOUT.0));
    loop {
        let time = now();
        let mut left = true;
        for endpoint in endpoints
            .iter_mut()
            .filter(|endpoint| endpoint.groups.is_some())
        {
            endpoint.report_groups(time, cache);
            endpoint.retry(cache);
            left &= endpoint.groups.as_ref().is_some_and(|host| host.has_left());
        }
        if left || time >= end {
            return;
        }
        std::thread::sleep(LEAVE_INTERVAL);
    }
}

/// Sends the frame that `write` writes; returns `false` where it writes none or nothing can be sent.
fn send(
    tx: &mut TxQueue,
    cache: &mut PoolCache,
    write: impl FnOnce(&mut [u8]) -> Option<usize>,
) -> bool {
    let Some(mut mbuf) = cache.alloc() else {
        return false;
    };
    let room = mbuf.tailroom().min(MAX_REPLY);
    let written = mbuf.append(room).and_then(write);
    mbuf.truncate(written.unwrap_or(0));
    let mut burst = Burst::<1>::new();
    // The burst is empty and holds one.
    drop(burst.push(mbuf));
    let sent = written.is_some() && tx.tx(cache, &mut burst) == 1;
    cache.free_burst(&mut burst);
    sent
}
