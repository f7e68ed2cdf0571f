//! What the trigger sends on one port: answers, and what makes it a host there.

use std::net::Ipv4Addr;

use pollux_mempool::{Burst, Mbuf, PoolCache};
use pollux_pmd::TxQueue;
use pollux_pmd::net::igmp::IgmpHost;
use pollux_pmd::net::{MacAddr, Responder};

/// Largest control frame that is answered: a ping of a full Ethernet frame.
const MAX_REPLY: usize = 1518;

/// The sending side of a port.
pub struct PortSide {
    /// Absent where the port cannot send.
    pub tx: Option<TxQueue>,
    /// Present where the port has a station address.
    pub responder: Option<Responder>,
    /// Present where the port has joined multicast groups.
    pub groups: Option<Box<IgmpHost>>,
    /// The station address; zero where there is none, as in a capture.
    pub mac: MacAddr,
    /// Its driver enters the kernel, which may have no room for a frame at the first try.
    pub kernel_backed: bool,
}

impl PortSide {
    /// Answers an ARP request or a ping, on the port that it came from; whether it was for us.
    pub fn reply(&mut self, request: &Mbuf, cache: &mut PoolCache) -> bool {
        let (Some(responder), Some(tx)) = (&self.responder, &mut self.tx) else {
            return false;
        };
        send(tx, cache, |out| responder.reply(request.data(), out))
    }

    /// Asks for the station of an address.
    pub fn ask_for(&mut self, ip: Ipv4Addr, cache: &mut PoolCache) {
        if let (Some(responder), Some(tx)) = (&self.responder, &mut self.tx) {
            send(tx, cache, |out| responder.request(ip, out));
        }
    }

    /// Has frames go out that the kernel had no room for: nobody else may send for a long time.
    pub fn retry(&mut self, cache: &mut PoolCache) {
        if let Some(tx) = self.tx.as_mut().filter(|_| self.kernel_backed) {
            tx.tx(cache, &mut Burst::<1>::new());
        }
    }
}

/// Sends one frame that `write` makes, if it makes one and there is room.
pub fn send(
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
    // There is room for one.
    drop(burst.push(mbuf));
    let sent = written.is_some() && tx.tx(cache, &mut burst) == 1;
    cache.free_burst(&mut burst);
    sent
}
