//! The connection of a queue pair: its peer, and how losses are treated.

use std::net::Ipv4Addr;

use pollux_mempool::time::Ns;
use pollux_pmd::net::roce::RnrTimer;
use pollux_pmd::net::{MacAddr, UdpTemplate};

use super::output::{Output, headers_to};
use crate::address::{Mtu, QpAddress, QpNumber};
use crate::endpoint::PathOptions;

/// Time after which an ARP request is repeated.
const ARP_INTERVAL: u64 = 100_000_000;
/// Unit of acknowledgement time-outs: 4.096 us (InfiniBand, 9.7.6.1.3).
const TIMEOUT_UNIT: u64 = 4096;
/// A number of retries that is without end.
const FOR_EVER: u8 = 7;

/// A connection.
pub(super) struct Connection {
    pub(super) peer: QpNumber,
    pub(super) ip: Ipv4Addr,
    pub(super) mtu: Mtu,
    /// Time-out of an acknowledgement; `None` without one.
    pub(super) timeout: Option<Ns>,
    pub(super) retry: u8,
    /// `None` for ever.
    pub(super) rnr_retry: Option<u8>,
    pub(super) rnr_timer: RnrTimer,
    own_ip: Ipv4Addr,
    own: QpNumber,
    mac: Option<MacAddr>,
    /// Headers of packets to the peer, while its MAC address is known.
    headers: Option<UdpTemplate>,
    /// When the next ARP request is due.
    request_at: Ns,
}

impl Connection {
    pub(super) fn new(
        own_ip: Ipv4Addr,
        own: QpNumber,
        peer: &QpAddress,
        path: &PathOptions,
    ) -> Self {
        let timeout = u64::from(path.timeout & 0x1f);
        Self {
            peer: peer.number,
            ip: peer.ip,
            mtu: path.mtu,
            timeout: (timeout != 0).then(|| Ns(TIMEOUT_UNIT << timeout)),
            retry: path.retry,
            rnr_retry: (path.rnr_retry != FOR_EVER).then_some(path.rnr_retry),
            rnr_timer: RnrTimer::new(path.rnr_timer),
            own_ip,
            own,
            mac: peer.mac,
            headers: None,
            request_at: Ns(0),
        }
    }

    /// Headers of packets to the peer; `None` while its MAC address is unknown, which is asked for.
    #[inline]
    pub(super) fn headers(&mut self, now: Ns, out: &mut Output) -> Option<UdpTemplate> {
        if self.headers.is_none() {
            self.resolve(now, out);
        }
        self.headers.clone()
    }

    /// Whether the MAC address of the peer is known.
    #[inline]
    pub(super) fn is_resolved(&self) -> bool {
        self.mac.is_some()
    }

    #[cold]
    fn resolve(&mut self, now: Ns, out: &mut Output) {
        if let Some(mac) = self.mac {
            let peer = (mac, self.ip);
            self.headers = Some(headers_to(&out.host, self.own_ip, peer, self.own.get()));
        } else if now >= self.request_at {
            self.request_at = Ns(now.0.saturating_add(ARP_INTERVAL));
            out.host.request(self.ip, &mut out.cache);
        }
    }

    /// Learns the MAC address of a host, if it is the peer.
    pub(super) fn observe_host(&mut self, ip: Ipv4Addr, mac: MacAddr) {
        if ip == self.ip && self.mac != Some(mac) && mac.is_unicast() {
            self.mac = Some(mac);
            self.headers = None;
        }
    }
}
