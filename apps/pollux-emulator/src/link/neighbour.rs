//! Neighbour resolution: finds the MAC address of the receiver by ARP, and answers ARP and ping for the
//! address that packets are sent from, so that a host at the other end of a real cable can find it.

use std::net::Ipv4Addr;

use pollux_mempool::time::Ns;
use pollux_mempool::{Mbuf, PoolCache};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::net::{ArpTable, MacAddr, ParseOptions, Responder, UdpEndpoint};
use pollux_pmd::{Clock, Timeout};

/// From one ARP request to the next.
const ARP_EVERY: Ns = Ns(250_000_000);
/// How many ARP requests are sent before the receiver counts as unreachable.
const ARP_REQUESTS: u32 = 20;

/// The MAC address of a receiver was not found.
#[derive(Debug, thiserror::Error)]
#[error(
    "no answer to ARP for {0}: check that the receiver runs and that the link is up, or give its MAC \
     address with --dst-mac"
)]
pub struct NoAnswer(pub Ipv4Addr);

/// The local address of a link, and its peer.
pub(crate) struct Neighbour {
    responder: Responder,
    table: ArpTable,
    peer: Ipv4Addr,
    options: ParseOptions,
}

impl Neighbour {
    pub(crate) fn new(local: &UdpEndpoint, peer: Ipv4Addr) -> Self {
        Self {
            responder: Responder::new(local.mac, *local.socket.ip()),
            table: ArpTable::new(&[peer]),
            peer,
            options: ParseOptions {
                local: Some(*local.socket.ip()),
                ..ParseOptions::default()
            },
        }
    }

    /// Options to parse received frames with.
    pub(crate) fn options(&self) -> &ParseOptions {
        &self.options
    }

    /// The MAC address of the peer, if it is known.
    pub(crate) fn peer(&self) -> Option<MacAddr> {
        self.table.lookup(self.peer)
    }

    /// Learns from a received frame.
    pub(crate) fn observe(&mut self, frame: &Mbuf) {
        self.table.observe(frame.data());
    }

    /// Makes the ARP request for the peer; `None` while the pool is empty.
    pub(crate) fn request(&self, cache: &mut PoolCache) -> Option<Mbuf> {
        write(cache, |out| self.responder.request(self.peer, out))
    }

    /// Makes the reply to a received frame; `None` where none is due, or while the pool is empty.
    pub(crate) fn reply(&self, cache: &mut PoolCache, request: &Mbuf) -> Option<Mbuf> {
        write(cache, |out| self.responder.reply(request.data(), out))
    }

    /// Resolves the address of a peer. `attempt` sends a request if its argument is true, takes what
    /// was received, and returns the MAC address once it is known. Waits for the answer: for the start
    /// of a run on an interface. `None` if `stop` was set meanwhile.
    ///
    /// # Errors
    /// No answer within five seconds.
    pub(crate) fn resolve(
        peer: Ipv4Addr,
        clock: &impl Clock,
        stop: &StopFlag,
        mut attempt: impl FnMut(bool) -> Option<MacAddr>,
    ) -> Result<Option<MacAddr>, NoAnswer> {
        for _ in 0..ARP_REQUESTS {
            let mut asks = true;
            let mut timeout = Timeout::new(clock, ARP_EVERY);
            while !timeout.is_over(clock) {
                let mac = attempt(asks);
                if mac.is_some() || stop.is_set() {
                    return Ok(mac);
                }
                asks = false;
                clock.relax();
            }
        }
        Err(NoAnswer(peer))
    }
}

/// Writes a frame to a buffer of the pool.
fn write(cache: &mut PoolCache, frame: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<Mbuf> {
    let mut mbuf = cache.alloc()?;
    let room = mbuf.tailroom();
    if let Some(len) = mbuf.append(room).and_then(frame) {
        mbuf.truncate(len);
        return Some(mbuf);
    }
    cache.free(mbuf);
    None
}
