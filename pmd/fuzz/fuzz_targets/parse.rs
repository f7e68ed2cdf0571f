//! Arbitrary bytes as a received frame: parser, classifier, responder, ARP.
//!
//! All parsed ranges lie within the frame; a frame in segments parses as the whole frame; a reply
//! is no longer than its request, well formed, and not answered again; frames of the UDP template
//! are parsed back.
#![no_main]

use std::net::{Ipv4Addr, SocketAddrV4};

use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Mempool, PoolCache};
use pollux_pmd::net::{
    ArpTable, MacAddr, ParseOptions, Parsed, Responder, UDP_HEADERS, UdpEndpoint, UdpTemplate,
    classify, parse,
};
use pollux_pmd_fuzz::{assert_full, pool};

const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const PEER: UdpEndpoint = UdpEndpoint {
    mac: MacAddr([2, 0, 0, 0, 0, 1]),
    socket: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 1000),
};
const PORT: UdpEndpoint = UdpEndpoint {
    mac: MAC,
    socket: SocketAddrV4::new(IP, 2000),
};

/// Ethernet, two VLAN tags, the longest IPv4 header and UDP are 90 bytes: they fit the second.
const DATA_ROOMS: [usize; 2] = [64, 128];

thread_local! {
    static POOLS: [Mempool; 2] = DATA_ROOMS.map(|data_room| pool(1024, data_room));
}

fn parsed_lies_in_the_frame(frame: &[u8], total: usize, options: &ParseOptions) {
    if let Ok(Parsed::Udp(udp)) = parse(frame, total, options) {
        let [offset, len] = [udp.payload_offset, udp.payload_len].map(usize::from);
        assert!(offset <= frame.len() && offset + len <= total);
        assert_eq!(udp.payload(frame).len(), len.min(frame.len() - offset));
        if options.udp_checksum && offset + len <= frame.len() {
            assert!(udp.verify([frame]).is_ok());
        }
    }
}

fn segments_make_no_difference(cache: &mut PoolCache, frame: &[u8], options: &ParseOptions) {
    let Some(mbuf) = cache.alloc_from(frame) else {
        return;
    };
    let (whole, chained) = (
        parse(frame, frame.len(), options).map_err(Into::into),
        classify(&mbuf, options),
    );
    // Headers that a first segment cuts in two are refused.
    if chained.is_ok() || cache.pool().data_room() > 90 {
        assert_eq!(chained, whole);
    }
    cache.free(mbuf);
}

fn replies_are_tame(frame: &[u8], room: usize) {
    let responder = Responder::new(MAC, IP);
    let mut out = vec![0; room];
    let Some(n) = responder.reply(frame, &mut out) else {
        return;
    };
    assert!(n <= frame.len().max(60));
    let reply = &out[..n];
    assert_eq!(reply[0] & 1, 0, "to one station");
    assert_eq!(reply[6..12], MAC.0);
    assert!(matches!(
        parse(reply, n, &ParseOptions::default()),
        Ok(Parsed::Arp | Parsed::Other)
    ));
    assert_eq!(responder.reply(reply, &mut vec![0; room]), None);
}

fn what_is_sent_is_read_back(payload: &[u8]) {
    let mut frame = [&[0; UDP_HEADERS], payload].concat();
    let template = UdpTemplate::new(PEER, PORT);
    let len = frame.len();
    assert_eq!(template.write(&mut frame, payload.len()), Some(len));
    let options = ParseOptions {
        local: Some(IP),
        ..ParseOptions::default()
    };
    let Ok(Parsed::Udp(udp)) = parse(&frame, frame.len(), &options) else {
        panic!("our own datagram is refused");
    };
    assert_eq!((udp.src_port, udp.dst_port), (1000, 2000));
    assert_eq!(udp.payload(&frame), payload);
}

fuzz_target!(|data: &[u8]| {
    let [mode, more, frame @ ..] = data else {
        return;
    };
    let options = ParseOptions {
        ip_checksum: mode & 1 != 0,
        udp_checksum: mode & 2 != 0,
        local: (mode & 4 != 0).then_some(IP),
    };
    parsed_lies_in_the_frame(frame, frame.len(), &options);
    parsed_lies_in_the_frame(frame, frame.len() + usize::from(*more), &options);
    parsed_lies_in_the_frame(frame, frame.len().min((*more).into()), &options);
    POOLS.with(|pools| {
        for pool in pools {
            let mut cache = pool.cache(64).expect("a cache");
            segments_make_no_difference(&mut cache, frame, &options);
            drop(cache);
            assert_full(pool);
        }
    });
    replies_are_tame(frame, (*more).into());
    let mut table = ArpTable::new(&[IP]);
    assert_eq!(table.observe(frame), table.lookup(IP).is_some());
    what_is_sent_is_read_back(frame);
});
