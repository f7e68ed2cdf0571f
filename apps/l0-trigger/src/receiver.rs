//! From received buffers to the frames of the pipeline.

use std::net::{IpAddr, SocketAddrV4};

use pollux_mempool::time::Ns;
use pollux_mempool::{Mbuf, PoolCache};
use pollux_na62::l0::Frame;
use pollux_pipelines::Moment;
use pollux_pmd::net::{
    ArpTable, MacAddr, ParseOptions, Parsed, Reassembler, UdpEndpoint, UdpTemplate, classify,
};
use pollux_pmd::stream::Demux;
use pollux_pmd::{Cause, Tally};

use crate::side::PortSide;

/// Classifies frames, puts datagrams together, demultiplexes them, answers ARP and ping, and hears who
/// asks for members of multicast groups.
pub struct Receiver {
    pub options: ParseOptions,
    pub demux: Demux,
    /// By place of the port, if fragments are not simply dropped: so that it does not matter to a
    /// recording how far another has been read.
    pub reassemblers: Vec<Reassembler>,
    /// Frames that are delivered or dropped before the pipeline.
    pub tally: Tally,
    pub peer: Option<PeerFinder>,
}

impl Receiver {
    /// The frame for the pipeline; `None`, counted, if it is none. `place` is the port's that it
    /// came from.
    #[inline]
    pub fn take(
        &mut self,
        mut mbuf: Mbuf,
        at: Moment,
        place: usize,
        sides: &mut [PortSide],
        cache: &mut PoolCache,
    ) -> Option<Frame> {
        let (mut parsed, mut frames) = (classify(&mbuf, &self.options), 1);
        if parsed == Err(Cause::IpFragment) && place < self.reassemblers.len() {
            let reassembler = &mut self.reassemblers[place];
            let whole = reassembler.take(mbuf, Ns(at.0), cache, &mut self.tally)?;
            (mbuf, frames) = (whole.mbuf, whole.frames);
            parsed = classify(&mbuf, &self.options);
        }
        let dropped = match parsed {
            Ok(Parsed::Udp(udp)) => {
                if let Some(peer) = &mut self.peer {
                    peer.observe_datagram(udp.addresses.src(), mbuf.data(), place);
                }
                match self.demux.route(&udp) {
                    Some(stream) => {
                        if frames > 1 {
                            // The datagram goes on as one frame, and ends as that.
                            self.tally.count_delivered(frames - 1);
                        }
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
            Ok(Parsed::Arp | Parsed::IcmpEcho) => self.control(&mbuf, place, sides, cache),
            Ok(Parsed::Other) => {
                let side = sides.get_mut(place);
                side.map_or(Some(Cause::NotForUs), |side| side.observe(&mbuf, Ns(at.0)))
            }
            Err(cause) => Some(cause),
        };
        match dropped {
            Some(cause) => self.tally.count_dropped(cause, frames),
            None => self.tally.count_delivered(frames),
        }
        cache.free(mbuf);
        None
    }

    /// Drops datagrams that were not complete in time.
    pub fn expire(&mut self, now: Moment, cache: &mut PoolCache) {
        for reassembler in &mut self.reassemblers {
            reassembler.expire(Ns(now.0), cache, &mut self.tally);
        }
    }

    /// Drops datagrams that are not complete, as nothing comes any more.
    pub fn finish(&mut self, cache: &mut PoolCache) {
        for reassembler in &mut self.reassemblers {
            reassembler.finish(cache, &mut self.tally);
        }
    }

    /// Looks at an ARP packet or a ping, and answers it if it is for us.
    #[cold]
    fn control(
        &mut self,
        request: &Mbuf,
        place: usize,
        sides: &mut [PortSide],
        cache: &mut PoolCache,
    ) -> Option<Cause> {
        let peer = self.peer.as_mut();
        let learned = peer.is_some_and(|peer| peer.observe_arp(request.data(), place));
        let side = sides.get_mut(place);
        let replied = side.is_some_and(|side| side.reply(request, cache));
        (!replied && !learned).then_some(Cause::NotForUs)
    }

    /// Asks for the station of the peer on every port, if it is not known.
    pub fn ask_for_peer(&self, sides: &mut [PortSide], cache: &mut PoolCache) {
        if let Some(peer) = self.peer.as_ref().filter(|peer| peer.station.is_none()) {
            for side in sides {
                side.ask_for(*peer.to.ip(), cache);
            }
        }
    }
}

/// Finds the station that answers are sent to, and the port that it is at: from its ARP packets
/// and its datagrams. Where it is heard last, it is: a peer may get another card, or another cable.
pub struct PeerFinder {
    arp: ArpTable,
    to: SocketAddrV4,
    from: SocketAddrV4,
    station: Option<MacAddr>,
    /// The port that it was heard on.
    place: usize,
    /// It is as configured, whatever is heard.
    configured: bool,
    /// Answers do not go there yet.
    moved: bool,
}

impl PeerFinder {
    /// For answers to one address from another. A configured station is at the port `place`.
    pub fn new(
        to: SocketAddrV4,
        from: SocketAddrV4,
        station: Option<MacAddr>,
        place: usize,
    ) -> Self {
        Self {
            arp: ArpTable::new(&[*to.ip()]),
            to,
            from,
            station,
            place,
            configured: station.is_some(),
            moved: station.is_some(),
        }
    }

    #[inline]
    fn heard(&mut self, station: MacAddr, place: usize) {
        let known = self.station == Some(station) && self.place == place;
        if !known && !self.configured && station.is_unicast() {
            (self.station, self.place, self.moved) = (Some(station), place, true);
        }
    }

    /// A datagram from the peer shows its station.
    #[inline]
    fn observe_datagram(&mut self, source: IpAddr, frame: &[u8], place: usize) {
        if source == IpAddr::V4(*self.to.ip())
            && let Some(&[.., a, b, c, d, e, f]) = frame.first_chunk::<12>()
        {
            self.heard(MacAddr([a, b, c, d, e, f]), place);
        }
    }

    /// So does an ARP packet; whether it was the peer's.
    fn observe_arp(&mut self, frame: &[u8], place: usize) -> bool {
        let learned = self.arp.observe(frame);
        if learned && let Some(station) = self.arp.lookup(*self.to.ip()) {
            self.heard(station, place);
        }
        learned
    }

    /// The headers for answers and the port to send them by, once for each change.
    #[inline]
    pub fn news(&mut self, sides: &[PortSide]) -> Option<(UdpTemplate, usize)> {
        if !self.moved {
            return None;
        }
        self.moved = false;
        let sends = |side: &PortSide| side.tx.is_some();
        // A recording cannot send: whom it lets us hear is answered by the first port that can.
        let place = if sides.get(self.place).is_some_and(sends) {
            self.place
        } else {
            sides.iter().position(sends)?
        };
        let from = UdpEndpoint {
            mac: sides.get(place)?.mac,
            socket: self.from,
        };
        let to = UdpEndpoint {
            mac: self.station?,
            socket: self.to,
        };
        Some((UdpTemplate::new(from, to), place))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::Ipv4Addr;

    use pollux_mempool::{Mempool, PoolConfig};
    use pollux_pmd::net::Responder;
    use pollux_pmd::{PortConfig, Registry};

    const TRIGGER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const OLD: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const NEW: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);

    fn finder(mac: Option<MacAddr>) -> PeerFinder {
        let (to, from) = (SocketAddrV4::new(PEER, 7), SocketAddrV4::new(TRIGGER, 8));
        PeerFinder::new(to, from, mac, 1)
    }

    /// One port for each name: those that can send, and those that cannot.
    fn sides(sends: &[bool]) -> Vec<PortSide> {
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        });
        let config = PortConfig::new(pool.unwrap());
        let mac = |n: usize| MacAddr([2, 0, 0, 0, 1, n as u8]);
        let side = |(n, &sends): (usize, &bool)| {
            let port = Registry::builtin().open("null").unwrap();
            let mut tx = port.configure(config.clone()).unwrap().start().unwrap().tx;
            PortSide {
                tx: tx.pop().filter(|_| sends),
                responder: Some(Responder::new(mac(n), TRIGGER)),
                groups: None,
                mac: mac(n),
                kernel_backed: false,
            }
        };
        sends.iter().enumerate().map(side).collect()
    }

    /// The stations of an answer's headers, to and from, and its port.
    fn told(finder: &mut PeerFinder, sides: &[PortSide]) -> Option<(MacAddr, MacAddr, usize)> {
        let (template, place) = finder.news(sides)?;
        let mut frame = [0; 64];
        template.write(&mut frame, 0).unwrap();
        let mac = |at: usize| MacAddr(frame[at..at + 6].try_into().unwrap());
        Some((mac(0), mac(6), place))
    }

    /// An announcement (RFC 5227, section 3): the peer asks for its own address.
    fn announcement(mac: MacAddr) -> Vec<u8> {
        let mut frame = vec![0; 60];
        let len = Responder::new(mac, PEER).request(PEER, &mut frame);
        frame.truncate(len.unwrap());
        frame
    }

    #[test]
    fn a_peer_with_another_card_is_found_again() {
        let (mut finder, sides) = (finder(None), sides(&[true, true]));
        assert_eq!(told(&mut finder, &sides), None);
        assert!(finder.observe_arp(&announcement(OLD), 0));
        assert_eq!(told(&mut finder, &sides), Some((OLD, sides[0].mac, 0)));
        assert!(finder.observe_arp(&announcement(OLD), 0));
        assert_eq!(told(&mut finder, &sides), None, "nothing new");
        assert!(finder.observe_arp(&announcement(NEW), 0));
        assert_eq!(told(&mut finder, &sides), Some((NEW, sides[0].mac, 0)));
        // Its datagrams tell as well; those of others do not.
        let mut frame = [0; 64];
        frame[6..12].copy_from_slice(&OLD.0);
        finder.observe_datagram(IpAddr::V4(TRIGGER), &frame, 0);
        assert_eq!(told(&mut finder, &sides), None);
        finder.observe_datagram(IpAddr::V4(PEER), &frame, 0);
        assert_eq!(told(&mut finder, &sides), Some((OLD, sides[0].mac, 0)));
        frame[6..12].copy_from_slice(&[0xff; 6]);
        finder.observe_datagram(IpAddr::V4(PEER), &frame, 0);
        assert_eq!(told(&mut finder, &sides), None, "not one station");
    }

    #[test]
    fn answers_leave_where_the_peer_is_heard() {
        let (mut finder, sides) = (finder(None), sides(&[true, true, false]));
        for place in [1, 0] {
            finder.observe_arp(&announcement(OLD), place);
            let by = (OLD, sides[place].mac, place);
            assert_eq!(told(&mut finder, &sides), Some(by));
        }
        finder.observe_arp(&announcement(OLD), 2);
        assert_eq!(told(&mut finder, &sides), Some((OLD, sides[0].mac, 0)));
    }

    #[test]
    fn a_configured_station_stays() {
        let (mut finder, sides) = (finder(Some(OLD)), sides(&[true, true]));
        assert_eq!(told(&mut finder, &sides), Some((OLD, sides[1].mac, 1)));
        assert!(finder.observe_arp(&announcement(NEW), 0));
        assert_eq!(told(&mut finder, &sides), None);
    }
}
