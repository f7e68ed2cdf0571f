//! The hot loops of mempool and pmd, on fixed data.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context, Result};
use pollux_mempool::ring::{Mpmc, spsc};
use pollux_mempool::{Burst, Mbuf};
use pollux_pmd::event::{Clop, ClopConfig, EventQueue, EventRecord, PayloadInfo, RegionOptions};
use pollux_pmd::net::{Checksum, ParseOptions, Parsed, UDP_HEADERS, classify};
use pollux_pmd::stream::{DemuxBuilder, SequenceTracker, StreamId, Verdict};
use pollux_pmd::{Clock, TscClock};

use crate::loops::{Loop, Round, pool, port, template};

/// Elements in a burst.
const BURST: usize = 32;

pub(crate) fn all() -> Vec<Loop> {
    let burst = |name, element, make| Loop {
        name,
        element,
        elements: BURST as u64,
        rounds: 4096,
        make,
    };
    vec![
        burst(
            "pool_cached",
            "buffer allocated and freed",
            pool_cached as fn() -> Result<Round>,
        ),
        burst("pool_uncached", "buffer allocated and freed", pool_uncached),
        burst("ring_spsc", "item pushed and popped", ring_spsc),
        burst("ring_mpmc", "item pushed and popped", ring_mpmc),
        burst("loopback", "frame sent and received", loopback),
        burst("null", "frame received and sent", null),
        burst(
            "parse_demux_port",
            "datagram to one of 4 ports",
            parse_demux_port,
        ),
        burst(
            "parse_demux_address",
            "datagram to one of 1000 addresses",
            parse_demux_address,
        ),
        burst("udp_write", "datagram of 64 B", || Ok(udp_write())),
        burst("sequence", "number in order", || Ok(sequence())),
        burst("event_queue", "record pushed and taken", event_queue),
        burst("clop", "payload of 256 B stored and read", clop),
        Loop {
            name: "checksum",
            element: "1472 B",
            elements: 1,
            rounds: 4096,
            make: || Ok(checksum()),
        },
    ]
}

fn pool_cached() -> Result<Round> {
    let mut cache = pool()?.cache(512)?;
    let mut burst = Burst::<BURST>::new();
    Ok(Box::new(move || {
        let n = cache.alloc_burst(&mut burst, BURST);
        cache.free_burst(black_box(&mut burst));
        n == BURST
    }))
}

fn pool_uncached() -> Result<Round> {
    let pool = pool()?;
    let mut burst = Burst::<BURST>::new();
    Ok(Box::new(move || {
        let n = pool.alloc_burst(&mut burst, BURST);
        black_box(&mut burst).clear();
        n == BURST
    }))
}

fn ring_spsc() -> Result<Round> {
    let (mut producer, mut consumer) = spsc::channel::<u64>(1000)?;
    let items = [7; BURST];
    let mut out = [MaybeUninit::uninit(); BURST];
    Ok(Box::new(move || {
        let pushed = producer.push_burst(black_box(&items));
        pushed == BURST && consumer.pop_burst(black_box(&mut out)) == BURST
    }))
}

fn ring_mpmc() -> Result<Round> {
    let ring = Mpmc::<u64>::new(1000)?;
    let items = [7; BURST];
    let mut out = [MaybeUninit::uninit(); BURST];
    Ok(Box::new(move || {
        let pushed = ring.push_burst(black_box(&items));
        pushed == BURST && ring.pop_burst(black_box(&mut out)) == BURST
    }))
}

fn loopback() -> Result<Round> {
    let pool = pool()?;
    let mut port = port("loopback", &pool)?;
    let mut cache = pool.cache(512)?;
    let mut burst = Burst::<BURST>::new();
    cache.alloc_burst(&mut burst, BURST);
    burst.iter_mut().for_each(|mbuf| mbuf.truncate(64));
    Ok(Box::new(move || {
        let sent = port.tx[0].tx(&mut cache, &mut burst);
        sent == BURST && port.rx[0].rx(&mut cache, &mut burst) == BURST
    }))
}

fn null() -> Result<Round> {
    let pool = pool()?;
    let mut port = port("null", &pool)?;
    let mut cache = pool.cache(512)?;
    let mut burst = Burst::<BURST>::new();
    Ok(Box::new(move || {
        let received = port.rx[0].rx(&mut cache, &mut burst);
        received == BURST && port.tx[0].tx(&mut cache, &mut burst) == BURST
    }))
}

/// Datagrams of 64 B to 32 of the destinations.
fn parse_demux(routes: &DemuxBuilder, destination: fn(usize) -> SocketAddrV4) -> Result<Round> {
    let mut demux = routes.build()?;
    let mut cache = pool()?.cache(512)?;
    let mut burst = Burst::<BURST>::new();
    cache.alloc_burst(&mut burst, BURST);
    for (n, mbuf) in burst.iter_mut().enumerate() {
        let frame = mbuf.append(UDP_HEADERS + 64).context("a short buffer")?;
        frame.fill(n as u8);
        template(destination(n))
            .write(frame, 64)
            .context("a short buffer")?;
    }
    let options = ParseOptions::default();
    Ok(Box::new(move || {
        let found = |mbuf: &Mbuf| match classify(mbuf, &options) {
            Ok(Parsed::Udp(udp)) => black_box(demux.route(&udp)).is_some(),
            _ => false,
        };
        black_box(&burst).iter().all(found)
    }))
}

fn parse_demux_port() -> Result<Round> {
    let routes = |demux: DemuxBuilder, n| demux.port(9000 + n, StreamId(n));
    parse_demux(&(0..4).fold(DemuxBuilder::new(), routes), |n| {
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 9000 + n as u16 % 4)
    })
}

fn parse_demux_address() -> Result<Round> {
    let address = |n: u16| Ipv4Addr::from_bits(0x0a01_0000 + u32::from(n));
    let routes = |demux: DemuxBuilder, n| demux.address(address(n), 9000, StreamId(n));
    parse_demux(&(0..1000).fold(DemuxBuilder::new(), routes), |n| {
        SocketAddrV4::new(Ipv4Addr::from_bits(0x0a01_0000 + n as u32 * 31), 9000)
    })
}

fn udp_write() -> Round {
    let template = template(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 9000));
    let mut frame = [7; UDP_HEADERS + 64];
    // A length that is known would be known in there, where that is inlined.
    Box::new(move || {
        (0..BURST).all(|_| {
            template
                .write(black_box(&mut frame), black_box(64))
                .is_some()
        })
    })
}

fn sequence() -> Round {
    let (mut tracker, mut n) = (SequenceTracker::new(), 0);
    Box::new(move || {
        (0..BURST).all(|_| {
            n += 1;
            tracker.observe(black_box(n)) == Verdict::InOrder
        })
    })
}

fn event_queue() -> Result<Round> {
    let (mut producer, mut consumer) = EventQueue::new(1024, &RegionOptions::default())?.split();
    let record = EventRecord::default();
    let mut out = [EventRecord::default(); BURST];
    Ok(Box::new(move || {
        let pushed = (0..BURST).all(|_| producer.push(black_box(&record)).is_ok());
        pushed && consumer.poll_burst(black_box(&mut out)) == BURST
    }))
}

fn clop() -> Result<Round> {
    let clock = TscClock::get();
    let (mut writer, mut reader) = Clop::new(&ClopConfig::default(), &clock)?.split();
    let (mut events, mut announced) = EventQueue::new(64, &RegionOptions::default())?.split();
    let info = PayloadInfo {
        arrival: clock.now(),
        ..PayloadInfo::default()
    };
    let payload = [7; 256];
    Ok(Box::new(move || {
        let mut store = || {
            writer
                .append(&mut events, &info, black_box(&payload))
                .is_ok()
        };
        let stored = (0..BURST).all(|_| store());
        while let Some(event) = announced.poll() {
            let Ok(buffer) = reader.accept(&event) else {
                return false;
            };
            if !buffer.payloads().all(|payload| black_box(payload).is_ok()) {
                return false;
            }
        }
        stored
    }))
}

fn checksum() -> Round {
    let bytes: Vec<u8> = (0..1472).map(|n| n as u8).collect();
    Box::new(move || {
        let mut sum = Checksum::new();
        sum.add(black_box(&bytes));
        black_box(sum.finish()) != 0
    })
}
