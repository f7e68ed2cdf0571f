//! The network endpoint: a port as a host, and frames of streams from any received frames.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, Mempool, PoolCache};
use pollux_pmd::driver::Capabilities;
use pollux_pmd::endpoint::{Classifier, Neighbour, PortEndpoint, Receiver, leave_groups};
use pollux_pmd::ledger::Balance;
use pollux_pmd::net::{MacAddr, ParseOptions, ReassemblyConfig, Responder};
use pollux_pmd::port::{Port, PortConfig, Started, StartedPort};
use pollux_pmd::stream::{DemuxBuilder, StreamId};
use pollux_pmd::{Cause, Ledger, Registry, RxQueue, TxQueue};
use pollux_pmd_testkit::frames::{DST_IP, Frame, SRC_IP, ethernet, naive_checksum};
use pollux_pmd_testkit::ports::pool;

const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const OLD: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const NEW: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);

fn neighbour(mac: Option<MacAddr>) -> Neighbour {
    let (to, from) = (SocketAddrV4::new(PEER, 7), SocketAddrV4::new(HOST, 8));
    Neighbour::new(to, from, mac, 1)
}

/// One endpoint for each: those that can send, and those that cannot.
fn endpoints(sends: &[bool]) -> Vec<PortEndpoint> {
    let config = PortConfig::new(pool(64, 2048));
    let endpoint = |(n, &sends): (usize, &bool)| {
        let port = Registry::builtin().open("null").unwrap();
        let capabilities = Capabilities {
            mac: Some(MacAddr([2, 0, 0, 0, 1, n as u8])),
            ..port.capabilities()
        };
        let mut tx = port.configure(config.clone()).unwrap().start().unwrap().tx;
        PortEndpoint::new(&capabilities, tx.pop().filter(|_| sends), HOST)
    };
    sends.iter().enumerate().map(endpoint).collect()
}

/// The MAC addresses in the headers of answers, destination and source, and the port.
fn route(peer: &mut Neighbour, endpoints: &[PortEndpoint]) -> Option<(MacAddr, MacAddr, usize)> {
    let route = peer.take_route(endpoints)?;
    let mut frame = [0; 64];
    route.headers.write(&mut frame, 0).unwrap();
    let mac = |at: usize| MacAddr(frame[at..at + 6].try_into().unwrap());
    Some((mac(0), mac(6), route.port))
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
    let (mut peer, endpoints) = (neighbour(None), endpoints(&[true, true]));
    assert_eq!(route(&mut peer, &endpoints), None);
    assert!(peer.observe_arp(&announcement(OLD), 0));
    assert_eq!(
        route(&mut peer, &endpoints),
        Some((OLD, endpoints[0].mac(), 0))
    );
    assert!(peer.observe_arp(&announcement(OLD), 0));
    assert_eq!(route(&mut peer, &endpoints), None, "nothing new");
    assert!(peer.observe_arp(&announcement(NEW), 0));
    assert_eq!(
        route(&mut peer, &endpoints),
        Some((NEW, endpoints[0].mac(), 0))
    );
    // It is learned from its datagrams too, not from those of others.
    let mut frame = [0; 64];
    frame[6..12].copy_from_slice(&OLD.0);
    peer.observe_datagram(IpAddr::V4(HOST), &frame, 0);
    assert_eq!(route(&mut peer, &endpoints), None);
    peer.observe_datagram(IpAddr::V4(PEER), &frame, 0);
    assert_eq!(
        route(&mut peer, &endpoints),
        Some((OLD, endpoints[0].mac(), 0))
    );
    frame[6..12].copy_from_slice(&[0xff; 6]);
    peer.observe_datagram(IpAddr::V4(PEER), &frame, 0);
    assert_eq!(
        route(&mut peer, &endpoints),
        None,
        "a broadcast address is no host"
    );
}

#[test]
fn answers_leave_where_the_peer_is_heard() {
    let (mut peer, endpoints) = (neighbour(None), endpoints(&[true, true, false]));
    for port in [1, 0] {
        peer.observe_arp(&announcement(OLD), port);
        let by = (OLD, endpoints[port].mac(), port);
        assert_eq!(route(&mut peer, &endpoints), Some(by));
    }
    peer.observe_arp(&announcement(OLD), 2);
    assert_eq!(
        route(&mut peer, &endpoints),
        Some((OLD, endpoints[0].mac(), 0))
    );
}

#[test]
fn a_configured_station_stays() {
    let (mut peer, endpoints) = (neighbour(Some(OLD)), endpoints(&[true, true]));
    assert_eq!(
        route(&mut peer, &endpoints),
        Some((OLD, endpoints[1].mac(), 1))
    );
    assert!(peer.observe_arp(&announcement(NEW), 0));
    assert_eq!(route(&mut peer, &endpoints), None);
}

/// A loopback port. What the other side sends comes by queue 0, what the endpoint sends by queue 1.
struct Rig {
    port: Port<Started>,
    pool: Mempool,
    cache: PoolCache,
    rx: Vec<RxQueue>,
    /// Of the other side.
    tx: TxQueue,
    endpoints: [PortEndpoint; 1],
    receiver: Receiver,
    ledger: Ledger,
    /// Payloads of the frames of stream 3.
    payloads: Vec<Vec<u8>>,
}

/// The MAC address of the endpoint, which is the destination of [`Frame`].
const LOCAL_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn rig(reassembles: bool) -> Rig {
    let pool = pool(256, 2048);
    let config = PortConfig {
        rx_queues: 2,
        tx_queues: 2,
        ..PortConfig::new(pool.clone())
    };
    let port = Registry::builtin().open("loopback").unwrap();
    let capabilities = Capabilities {
        mac: Some(LOCAL_MAC),
        ..port.capabilities()
    };
    let started = port.configure(config).unwrap().start().unwrap();
    let StartedPort { port, rx, mut tx } = started;
    let ip = Ipv4Addr::from(DST_IP);
    let endpoint = PortEndpoint::new(&capabilities, tx.pop(), ip);
    let mut classifier = Classifier::new(ParseOptions::default());
    if reassembles {
        let bounds = ReassemblyConfig::default();
        classifier = classifier.with_reassembly(bounds, 1).unwrap();
    }
    let demux = DemuxBuilder::new().port(2000, StreamId(3)).build().unwrap();
    let receiver = Receiver::new(classifier, demux, None);
    let mut ledger = Ledger::new();
    for queue in &rx {
        ledger.add("rx", queue.tally());
    }
    ledger.add("receiver", receiver.view());
    Rig {
        cache: pool.cache(32).unwrap(),
        port,
        pool,
        rx,
        tx: tx.pop().unwrap(),
        endpoints: [endpoint],
        receiver,
        ledger,
        payloads: Vec::new(),
    }
}

impl Rig {
    /// The other side sends a frame, and the endpoint receives it.
    fn give(&mut self, frame: &[u8]) {
        let mut burst = Burst::<1>::new();
        burst.push(self.cache.alloc_from(frame).unwrap()).unwrap();
        assert_eq!(self.tx.tx(&mut self.cache, &mut burst), 1);
        assert_eq!(self.rx[0].rx(&mut self.cache, &mut burst), 1);
        let mbuf = burst.pop().unwrap();
        let (endpoints, cache) = (&mut self.endpoints, &mut self.cache);
        if let Some(frame) = self.receiver.receive(mbuf, Ns(7), 0, endpoints, cache) {
            assert_eq!(frame.stream, StreamId(3));
            let bytes: Vec<u8> = frame.mbuf.segments().flatten().copied().collect();
            let (offset, len) = (usize::from(frame.offset), usize::from(frame.len));
            self.payloads.push(bytes[offset..offset + len].to_vec());
            cache.free(frame.mbuf);
            self.receiver.tally().count_delivered(1);
        }
    }

    /// What the endpoint has sent.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut burst = Burst::<32>::new();
        self.rx[1].rx(&mut self.cache, &mut burst);
        let sent: Vec<_> = burst.iter().map(|mbuf| mbuf.data().to_vec()).collect();
        self.receiver.tally().count_delivered(sent.len() as u64);
        self.cache.free_burst(&mut burst);
        sent
    }

    /// Every frame is accounted for, and no buffer is missing.
    fn end(mut self) -> Balance {
        self.receiver.finish(&mut self.cache);
        let [endpoint] = self.endpoints;
        let tx = vec![endpoint.into_tx().unwrap(), self.tx];
        self.port.stop(self.rx, tx).unwrap();
        drop(self.cache);
        assert_eq!(self.pool.available(), self.pool.buffers());
        self.ledger.check().unwrap()
    }
}

/// An ARP request of [`SRC_IP`] for an address.
fn arp_request(target: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![0; 60];
    let asker = Responder::new(NEW, SRC_IP.into());
    asker.request(target.into(), &mut frame).unwrap();
    frame
}

/// A ping to [`DST_IP`].
fn ping() -> Vec<u8> {
    let mut echo = vec![8, 0, 0, 0, 0, 1, 0, 2, b'p', b'o', b'l', b'l'];
    let checksum = naive_checksum(&echo).to_be_bytes();
    echo[2..4].copy_from_slice(&checksum);
    Frame::ip(1, echo).bytes()
}

/// The datagram in fragments of 400 bytes.
fn fragments(whole: &Frame) -> Vec<Vec<u8>> {
    let chunks = whole.body.chunks(400);
    let last = chunks.len() - 1;
    let part = |(n, body): (usize, &[u8])| {
        let more = if n < last { 0x2000 } else { 0 };
        let part = Frame {
            flags_offset: more + (n * 50) as u16,
            body: body.to_vec(),
            ..whole.clone()
        };
        part.bytes()
    };
    chunks.enumerate().map(part).collect()
}

#[test]
fn each_kind_of_frame_is_delivered_answered_or_dropped_for_its_cause() {
    let mut rig = rig(false);
    rig.give(&Frame::udp(b"of a stream").bytes());
    assert_eq!(rig.payloads, [b"of a stream"]);
    assert!(rig.sent().is_empty());

    rig.give(&arp_request(DST_IP));
    let replies = rig.sent();
    assert_eq!(replies.len(), 1);
    assert_eq!(
        (&replies[0][..6], &replies[0][6..12]),
        (&NEW.0[..], &LOCAL_MAC.0[..])
    );
    rig.give(&ping());
    let replies = rig.sent();
    assert_eq!(replies.len(), 1);
    assert_eq!(replies[0][26..34], [DST_IP, SRC_IP].concat());

    rig.give(&arp_request([10, 0, 0, 77]));
    let mut foreign = Frame::udp(b"of no stream");
    foreign.body[2..4].copy_from_slice(&2001u16.to_be_bytes());
    foreign.body[6..8].copy_from_slice(&[0, 0]);
    rig.give(&foreign.bytes());
    rig.give(&ethernet(&[], 0x88cc, &[1; 50]));
    rig.give(&Frame::udp(b"cut").bytes()[..30]);
    for part in fragments(&Frame::udp(&[5; 900])) {
        rig.give(&part);
    }
    assert!(rig.sent().is_empty());
    assert_eq!(rig.payloads.len(), 1);
    let balance = rig.end();
    let dropped: Vec<_> = balance.drops().collect();
    let mut expected = vec![
        (Cause::NotForUs, 2),
        (Cause::DemuxMiss, 1),
        (Cause::Malformed, 1),
        (Cause::IpFragment, 3),
    ];
    expected.sort_by_key(|&(cause, _)| cause);
    assert_eq!(dropped, expected);
    // The datagram, the ARP request, the ping, and both answers.
    assert_eq!(balance.delivered, 5);
}

#[test]
fn fragments_are_one_frame_of_a_stream_and_all_of_them_are_counted() {
    let mut rig = rig(true);
    let payload: Vec<u8> = (0..1500).map(|n| n as u8).collect();
    for part in fragments(&Frame::udp(&payload)) {
        rig.give(&part);
    }
    assert_eq!(rig.payloads, [payload]);
    // One that stays incomplete is dropped at the end, or when its time has come.
    rig.give(&fragments(&Frame::udp(&[1; 900]))[0]);
    rig.receiver.expire(Ns(10_000_000_000), &mut rig.cache);
    rig.give(&fragments(&Frame::udp(&[1; 900]))[1]);
    let balance = rig.end();
    assert_eq!((balance.delivered, balance.dropped_total()), (4, 2));
}

/// Frames of a port that the receiver knows nothing of have no endpoint and no reassembler.
#[test]
fn a_port_without_an_endpoint_answers_nothing_and_loses_nothing() {
    let mut rig = rig(true);
    let frames = [arp_request(DST_IP), ping(), ethernet(&[], 0x88cc, &[1; 50])];
    let parts = fragments(&Frame::udp(&[1; 900]));
    let all = frames.iter().chain(&parts);
    for frame in all.clone() {
        let mut burst = Burst::<1>::new();
        burst.push(rig.cache.alloc_from(frame).unwrap()).unwrap();
        rig.tx.tx(&mut rig.cache, &mut burst);
        rig.rx[0].rx(&mut rig.cache, &mut burst);
        let mbuf = burst.pop().unwrap();
        let taken = rig
            .receiver
            .receive(mbuf, Ns(0), 9, &mut [], &mut rig.cache);
        assert!(taken.is_none());
    }
    assert!(rig.sent().is_empty());
    let balance = rig.end();
    assert_eq!(balance.dropped_total(), all.count() as u64);
}

/// Damaged frames of every kind: the ledger balances and no buffer is lost, whatever they are.
#[test]
fn no_frame_and_no_buffer_is_lost_whatever_is_received() {
    let mut rig = rig(true);
    let mut good = vec![
        Frame::udp(b"of a stream").bytes(),
        arp_request(DST_IP),
        ping(),
        ethernet(&[(0x8100, 5)], 0x88cc, &[1; 50]),
    ];
    good.extend(fragments(&Frame::udp(&[5; 1300])));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % bound as u64) as usize
    };
    let mut given = 0;
    for _ in 0..20_000 {
        let mut frame = good[next(good.len())].clone();
        if next(4) > 0 {
            let at = next(frame.len());
            frame[at] ^= 1 << next(8);
        }
        if next(8) == 0 {
            frame.truncate(next(frame.len()).max(1));
        }
        rig.give(&frame);
        given += 1 + rig.sent().len() as u64;
    }
    assert!(rig.payloads.len() > 100);
    let balance = rig.end();
    assert_eq!(balance.from_wire, given);
}

#[test]
fn groups_are_joined_reported_and_left() {
    let group = Ipv4Addr::new(239, 1, 2, 3);
    let mut rig = rig(false);
    assert!(
        rig.endpoints[0]
            .join(&[Ipv4Addr::new(10, 0, 0, 9)])
            .is_err()
    );
    assert!(rig.endpoints[0].group_counts().is_none());
    assert_eq!(rig.endpoints[0].join(&[group]), Ok(true));
    rig.endpoints[0].report_groups(Ns(0), &mut rig.cache);
    let reports = rig.sent();
    assert_eq!(reports.len(), 1, "the first report is due at once");
    assert!(reports[0].windows(4).any(|part| part == group.octets()));
    leave_groups(&mut rig.endpoints, &mut rig.cache, {
        // Each look at the clock is 100 ms after the one before.
        let time = std::cell::Cell::new(1_000_000_000);
        move || Ns(time.replace(time.get() + 100_000_000))
    });
    assert!(!rig.sent().is_empty());
    let counts = rig.endpoints[0].group_counts().unwrap();
    assert_eq!((counts.joins.get(), counts.leaves.get()), (1, 1));
    rig.end();
    // One that cannot send cannot be a member.
    let mut mute = endpoints(&[false]).remove(0);
    assert_eq!(mute.join(&[group]), Ok(false));
}
