//! From received buffers to the frames of the pipeline.

use std::net::{IpAddr, Ipv4Addr};

use pollux_mempool::{Burst, Mbuf, PoolCache};
use pollux_pipelines::Moment;
use pollux_pipelines::l0::Frame;
use pollux_pmd::net::{
    ArpTable, MacAddr, ParseOptions, Parsed, Responder, UdpEndpoint, UdpTemplate, classify,
};
use pollux_pmd::stream::Demux;
use pollux_pmd::{Cause, Tally, TxQueue};

use crate::config::AnswerTo;

/// Largest control frame that is answered: a ping of a full Ethernet frame.
const MAX_REPLY: usize = 1518;

/// Classifies frames, demultiplexes datagrams, and answers ARP and ping.
pub struct Receiver {
    pub options: ParseOptions,
    pub demux: Demux,
    /// Frames that are delivered or dropped before the pipeline.
    pub tally: Tally,
    /// Present where the port has a station address.
    pub responder: Option<Responder>,
    pub peer: Option<PeerFinder>,
}

impl Receiver {
    /// The frame for the pipeline; `None`, counted, if it is none.
    #[inline]
    pub fn take(
        &mut self,
        mbuf: Mbuf,
        at: Moment,
        tx: Option<&mut TxQueue>,
        cache: &mut PoolCache,
    ) -> Option<Frame> {
        let dropped = match classify(&mbuf, &self.options) {
            Ok(Parsed::Udp(udp)) => {
                if let Some(peer) = &mut self.peer {
                    peer.observe_datagram(udp.addresses.src(), mbuf.data());
                }
                match self.demux.route(&udp) {
                    Some(stream) => {
                        let (offset, len) = (udp.payload_offset, udp.payload_len);
                        return Some(Frame {
                            mbuf,
                            stream,
                            offset,
                            len,
                            at,
                        });
                    }
                    None => Some(Cause::DemuxMiss),
                }
            }
            Ok(Parsed::Arp | Parsed::IcmpEcho) => self.control(&mbuf, tx, cache),
            Ok(Parsed::Other) => Some(Cause::NotForUs),
            Err(cause) => Some(cause),
        };
        match dropped {
            Some(cause) => self.tally.count_dropped(cause, 1),
            None => self.tally.count_delivered(1),
        }
        cache.free(mbuf);
        None
    }

    /// Looks at an ARP packet or a ping, and answers it if it is for us.
    #[cold]
    fn control(
        &mut self,
        request: &Mbuf,
        tx: Option<&mut TxQueue>,
        cache: &mut PoolCache,
    ) -> Option<Cause> {
        let learned = self
            .peer
            .as_mut()
            .is_some_and(|peer| peer.arp.observe(request.data()));
        let (Some(responder), Some(tx)) = (&self.responder, tx) else {
            return (!learned).then_some(Cause::NotForUs);
        };
        let replied = send(tx, cache, |out| responder.reply(request.data(), out));
        (!replied && !learned).then_some(Cause::NotForUs)
    }

    /// Asks for the station of the peer, if it is not known.
    pub fn ask_for_peer(&self, tx: &mut TxQueue, cache: &mut PoolCache) {
        if let (Some(responder), Some(peer)) = (&self.responder, &self.peer) {
            for ip in peer.arp.unresolved() {
                send(tx, cache, |out| responder.request(ip, out));
            }
        }
    }
}

/// Sends one frame that `write` makes, if it makes one and there is room.
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
    // There is room for one.
    drop(burst.push(mbuf));
    let sent = written.is_some() && tx.tx(cache, &mut burst) == 1;
    cache.free_burst(&mut burst);
    sent
}

/// Finds the station that answers are sent to: from its ARP packets, or from its datagrams.
pub struct PeerFinder {
    arp: ArpTable,
    ip: Ipv4Addr,
    to: UdpEndpoint,
    from: UdpEndpoint,
    found: bool,
}

impl PeerFinder {
    /// For answers from the port with address `mac` and `ip`.
    pub fn new(answer: &AnswerTo, mac: MacAddr, ip: Ipv4Addr, station: Option<MacAddr>) -> Self {
        let peer = *answer.to.ip();
        let mut arp = ArpTable::new(&[peer]);
        if let Some(station) = station {
            arp.learn(peer, station);
        }
        let socket = std::net::SocketAddrV4::new(ip, answer.from_port);
        Self {
            arp,
            ip: peer,
            to: UdpEndpoint {
                mac: MacAddr::ZERO,
                socket: answer.to,
            },
            from: UdpEndpoint { mac, socket },
            found: false,
        }
    }

    /// While the station is unknown, a datagram from its address shows it.
    #[inline]
    fn observe_datagram(&mut self, source: IpAddr, frame: &[u8]) {
        if !self.found
            && source == IpAddr::V4(self.ip)
            && let Some(&[.., a, b, c, d, e, f]) = frame.first_chunk::<12>()
        {
            self.arp.learn(self.ip, MacAddr([a, b, c, d, e, f]));
        }
    }

    /// The headers for answers, once: when the station becomes known.
    #[inline]
    pub fn newly_found(&mut self) -> Option<UdpTemplate> {
        if self.found {
            return None;
        }
        self.to.mac = self.arp.lookup(self.ip)?;
        self.found = true;
        Some(UdpTemplate::new(self.from, self.to))
    }
}
