//! Frames of every kind through port, parser and demux: each one is delivered to its stream or
//! dropped for a cause, and a damaged datagram is never delivered.

use std::net::SocketAddrV4;

use pollux_mempool::{Burst, Mbuf, MbufFlags, Mempool, PoolConfig};
use pollux_pmd::net::{
    MacAddr, ParseOptions, Parsed, UDP_HEADERS, UdpEndpoint, UdpTemplate, classify,
};
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};
use pollux_pmd::{Cause, Ledger, PortConfig, Registry, StartedPort, Tally};
use proptest::prelude::*;

const PORT: u16 = 2000;
/// Offsets in the frames made here, which have no tags and no IP options.
const IP_ADDRESSES: usize = 26;
const UDP_CHECKSUM: usize = 40;

fn datagram(dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let end = |host, port| UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, host]),
        socket: SocketAddrV4::new([10, 0, 0, host].into(), port),
    };
    let mut frame = [&[0; UDP_HEADERS][..], payload].concat();
    UdpTemplate::new(end(1, 1000), end(2, dst_port))
        .write(&mut frame, payload.len())
        .unwrap();
    frame
}

/// A fault applied to a frame, by the sender or on the path.
#[derive(Clone, Debug)]
enum Fault {
    None,
    /// One bit of the addresses, the ports or the payload.
    Bit(prop::sample::Index),
    /// One byte anywhere.
    Byte(prop::sample::Index, u8),
    Truncated(prop::sample::Index),
    Padded(usize),
    /// VLAN tags: more than two are not parsed.
    Tagged(usize),
    UnknownPort,
    /// Random bytes of the original length.
    Random(Vec<u8>),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        3 => Just(Fault::None),
        2 => any::<prop::sample::Index>().prop_map(Fault::Bit),
        2 => any::<(prop::sample::Index, u8)>().prop_map(|(at, byte)| Fault::Byte(at, byte)),
        2 => any::<prop::sample::Index>().prop_map(Fault::Truncated),
        1 => (1..100usize).prop_map(Fault::Padded),
        1 => (1..5usize).prop_map(Fault::Tagged),
        1 => Just(Fault::UnknownPort),
        2 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Fault::Random),
    ]
}

impl Fault {
    fn frame(&self, payload: &[u8]) -> Vec<u8> {
        let mut frame = datagram(PORT, payload);
        let len = frame.len();
        match self {
            Self::None => {}
            Self::Bit(at) => {
                let covered = (IP_ADDRESSES..38).chain(UDP_CHECKSUM + 2..len);
                let covered: Vec<_> = covered.collect();
                let bit = at.index(covered.len() * 8);
                frame[covered[bit / 8]] ^= 1 << (bit % 8);
            }
            Self::Byte(at, byte) => frame[at.index(len)] = *byte,
            Self::Truncated(at) => frame.truncate(at.index(len)),
            Self::Padded(n) => frame.extend(vec![0; *n]),
            Self::Tagged(n) => {
                let tags = [0x81, 0x00, 0, 7].repeat(*n);
                frame.splice(12..12, tags);
            }
            Self::UnknownPort => frame = datagram(PORT + 1, payload),
            Self::Random(bytes) => frame.clone_from(bytes),
        }
        frame
    }

    /// The required outcome; `None` where that depends on the bytes.
    fn outcome(&self, trusted: bool) -> Option<Result<(), Cause>> {
        match self {
            Self::None | Self::Padded(_) | Self::Tagged(1 | 2) => Some(Ok(())),
            Self::Tagged(_) => Some(Err(Cause::Unsupported)),
            Self::UnknownPort => Some(Err(Cause::DemuxMiss)),
            Self::Bit(_) if !trusted => Some(Err(Cause::BadChecksum)),
            Self::Truncated(_) => Some(Err(Cause::Malformed)),
            _ => None,
        }
    }
}

fn receive(mbuf: &Mbuf, demux: &mut Demux) -> Result<(), Cause> {
    match classify(mbuf, &ParseOptions::default())? {
        Parsed::Udp(udp) => demux.route(&udp).map(drop).ok_or(Cause::DemuxMiss),
        _ => Err(Cause::NotForUs),
    }
}

proptest! {
    #[test]
    fn no_frame_escapes_the_ledger(
        traffic in prop::collection::vec(
            (fault(), prop::collection::vec(any::<u8>(), 1..1000), any::<bool>()), 0..40,
        ),
        data_room in prop_oneof![Just(128usize), Just(500), Just(2048)],
    ) {
        let pool = Mempool::new(PoolConfig {
            buffers: 512, data_room, ..PoolConfig::default()
        }).unwrap();
        let mut cache = pool.cache(64).unwrap();
        let port = Registry::builtin().open("loopback").unwrap();
        let port = port.configure(PortConfig::new(pool.clone())).unwrap();
        let StartedPort { port, mut rx, mut tx } = port.start().unwrap();
        let mut demux = DemuxBuilder::new().port(PORT, StreamId(0)).build().unwrap();
        let (mut ledger, mut tally) = (Ledger::new(), Tally::new());
        ledger.add("rx", rx[0].tally());
        ledger.add("consumer", tally.view());

        let frames = traffic.len() as u64;
        for (fault, payload, trusted) in &traffic {
            let mut mbuf = cache.alloc_from(&fault.frame(payload)).unwrap();
            if *trusted {
                mbuf.add_flags(MbufFlags::CHECKSUM_TRUSTED);
            }
            let mut burst = Burst::<1>::new();
            burst.push(mbuf).unwrap();
            prop_assert_eq!(tx[0].tx(&mut cache, &mut burst), 1);
            prop_assert_eq!(rx[0].rx(&mut cache, &mut burst), 1);
            let found = receive(&burst[0], &mut demux);
            if let Some(outcome) = fault.outcome(*trusted) {
                prop_assert_eq!(found, outcome, "{:?}", fault);
            }
            match found {
                Ok(()) => tally.count_delivered(1),
                Err(cause) => tally.count_dropped(cause, 1),
            }
            cache.free_burst(&mut burst);
        }
        port.stop(rx, tx).unwrap();
        let sum = ledger.check().unwrap();
        prop_assert_eq!(sum.from_wire, frames);
        let streams: u64 = demux.view().counts().map(|(_, counts)| counts.packets).sum();
        prop_assert_eq!(sum.delivered, streams);
        drop(cache);
        prop_assert_eq!(pool.available(), 512);
    }
}
