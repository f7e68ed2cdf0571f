//! For an external check: the card's output for a recording, and a recording of what it sends.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use pollux_card_model::registers::{clop, port};
use pollux_card_model::{FrameEnd, SimulatedCard, WireFrame};
use pollux_cosim::CosimDevice;
use pollux_cosim::pcie::Behaviour;
use pollux_cosim::rig::{DEFAULT_LIST, Form, Rig};
use pollux_cosim::verilated::VerilatedCard;
use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, Mbuf, Mempool, PoolCache, PoolConfig};
use pollux_pmd::drivers::card::{
    Datagram, DatagramChecksum, Generator, SendConfig, Streams, StreamsConfig,
};
use pollux_pmd::net::{Checksum, MacAddr, Responder, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{MemoryGrant, Port, PortConfig, Registry, Started, StartedPort};
use serde_json::{Value, json};

/// Shortest frame on a wire, without its FCS.
const SHORTEST: usize = 60;

/// Everything is received: promiscuous, all groups, both directions.
const MAC_CTRL: u32 = 0b1_1011;
/// Checksums are checked; frames without a stream go to the default list; the card answers nothing.
const NET_CTRL: u32 = 0b11_0100;

/// A capture file as a port.
fn open(spec: &str, rx_queues: u16, tx_queues: u16) -> anyhow::Result<(StartedPort, Mempool)> {
    let pool = Mempool::new(PoolConfig {
        buffers: 4096,
        ..PoolConfig::default()
    })?;
    let config = PortConfig {
        rx_queues,
        tx_queues,
        ..PortConfig::new(pool.clone())
    };
    let registry = Registry::builtin().granting(grant());
    let port = registry.open(spec)?.configure(config)?.start()?;
    Ok((port, pool))
}

/// The grant for the port that the command line names, and for the software card.
fn grant() -> MemoryGrant {
    // SAFETY: the user who names a port answers for its device, and the software card writes by
    // `HostMemory` into the memory mapped for it.
    unsafe { MemoryGrant::new() }
}

/// The frames of a recording.
fn recorded(file: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let (mut started, pool) = open(&format!("pcap:rx={}", file.display()), 1, 0)?;
    let mut cache = pool.cache(64)?;
    let (mut frames, mut burst) = (Vec::new(), Burst::<32>::new());
    for rx in &mut started.rx {
        while rx.rx(&mut cache, &mut burst) > 0 || !rx.state().is_final() {
            for mbuf in burst.iter() {
                let mut bytes = vec![0; mbuf.total_len()];
                mbuf.copy_to(0, &mut bytes);
                frames.push(bytes);
            }
            cache.free_burst(&mut burst);
        }
    }
    drop(cache);
    stop(started)?;
    Ok(frames)
}

fn stop(started: StartedPort) -> anyhow::Result<()> {
    let StartedPort { port, rx, tx } = started;
    let _: Port<_> = Port::<Started>::stop(port, rx, tx)?;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Puts a recording on a wire: payloads by UDP port, in their order, whole frames without a
/// stream, and losses by cause.
pub(crate) fn received(file: &Path, udp: &[u16]) -> anyhow::Result<Value> {
    let frames = recorded(file).with_context(|| file.display().to_string())?;
    let card = VerilatedCard::new(6, Behaviour::adversarial());
    let mut rig = Rig::new(CosimDevice::new(card))?;
    anyhow::ensure!(udp.len() <= port::STREAM.count, "a port has 16 streams");
    rig.add_list(DEFAULT_LIST, 64 << 10, 5000);
    for (stream, &udp) in (0..).zip(udp) {
        rig.add_list(stream, 64 << 10, 5000);
        rig.add_stream(0, stream.into(), udp, Form::Payload);
    }
    rig.enable(0);
    rig.write(&port::THIS, 0, port::NET_CTRL, 0, NET_CTRL);
    rig.write(&port::THIS, 0, port::MAC_CTRL, 0, MAC_CTRL);
    let offered = frames.len();
    for mut bytes in frames {
        // A recording of frames that were sent has them without padding.
        bytes.resize(bytes.len().max(SHORTEST), 0);
        rig.put(0, WireFrame::good(bytes));
    }
    let mut found = Vec::new();
    while rig.device.with(|card, _| card.coming(0)) > 0 {
        rig.advance(2_000_000);
        found.append(&mut rig.receive());
    }
    rig.advance(20_000_000);
    found.append(&mut rig.receive());
    found.append(&mut rig.flush());
    let mut payloads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for payload in &found {
        let udp = udp.get(usize::from(payload.list)).map(u16::to_string);
        let place = payloads.entry(udp.unwrap_or("whole".into()));
        place.or_default().push(hex(&payload.bytes));
    }
    let counters = port::THIS.registers.iter().filter(|one| {
        let is_loss = one.name.starts_with("DROP_") || one.name.starts_with("RX_");
        is_loss && !one.name.ends_with("_HIGH") && !one.name.contains("BYTES")
    });
    let counters: BTreeMap<_, _> = counters
        .map(|&one| (one.name.to_lowercase(), rig.read64(&port::THIS, 0, one, 0)))
        .collect();
    let refused: u64 = (0..=DEFAULT_LIST)
        .map(|list| rig.outcomes(list)[1..].iter().sum::<u64>())
        .sum();
    let broken = rig.device.with(|card, _| card.violations());
    anyhow::ensure!(
        broken.is_empty() && rig.wrong == 0,
        "the card breaks rules: {broken:?}"
    );
    let size = rig.read(&clop::THIS, 0, clop::LIST_SIZE, 0);
    Ok(json!({
        "offered": offered, "payloads": payloads, "counters": counters, "refused": refused, "buffer": size,
    }))
}

/// The card's peer.
const US: [u8; 4] = [10, 0, 0, 1];
const PEER: [u8; 4] = [10, 0, 0, 153];
const PEER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);

/// UDP ports: destination of datagrams and generated packets, and their source. No protocol uses
/// them, whose dissector would report malformed packets.
const DATAGRAMS: u16 = 45_001;
const GENERATED: u16 = 45_002;
const SOURCE: u16 = 45_000;

/// The peer's frames: an ARP request for the card's address, and pings of some lengths.
fn questions() -> anyhow::Result<Vec<Vec<u8>>> {
    let mut ask = vec![0; SHORTEST];
    let peer = Responder::new(PEER_MAC, PEER.into());
    peer.request(US.into(), &mut ask).context("no question")?;
    let from = UdpEndpoint {
        mac: PEER_MAC,
        socket: SocketAddrV4::new(PEER.into(), 0),
    };
    let to = UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        socket: SocketAddrV4::new(US.into(), 0),
    };
    let pings = [0, 1, 56, 1459].map(|len: usize| ping(&UdpTemplate::new(from, to), len));
    Ok([ask].into_iter().chain(pings).collect())
}

/// The headers of a datagram, converted to those of a ping (RFC 792).
fn ping(template: &UdpTemplate, len: usize) -> Vec<u8> {
    let mut frame = vec![0; UDP_HEADERS + len];
    let _ = template.write(&mut frame, len);
    frame[23] = 1;
    let message: Vec<u8> = [8, 0, 0, 0, 0xab, 0xcd, 0, 1]
        .into_iter()
        .chain((0..len).map(|i| i as u8))
        .collect();
    frame[34..].copy_from_slice(&message);
    for (at, range) in [(24, 14..34), (36, 34..frame.len())] {
        frame[at..at + 2].fill(0);
        let mut sum = Checksum::new();
        sum.add(&frame[range]);
        frame[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    }
    frame.resize(frame.len().max(SHORTEST), 0);
    frame
}

/// Makes the card answer, request, send datagrams and generate packets, writes all frames to a
/// capture file, and returns its contents.
pub(crate) fn sent(file: &Path) -> anyhow::Result<Value> {
    let device = CosimDevice::new(VerilatedCard::new(7, Behaviour::prompt()));
    let pool = Mempool::new(PoolConfig::default())?;
    let mut cache = pool.cache(64)?;
    let spec = "card-sim:ip=10.0.0.1,mac=02:00:00:00:00:01,mtu=9000".parse()?;
    let config = StreamsConfig {
        send: Some(SendConfig {
            ports: vec![0],
            ring: 64,
            pool: pool.clone(),
        }),
        ..StreamsConfig::default()
    };
    let mut streams = Streams::start(Arc::new(device.clone()), &spec, &config, grant())?;
    let mut frames = Vec::new();
    let mut collect = |ns| {
        device.advance(Ns(ns));
        while let Some(frame) = device.with(|card, _| card.take(0)) {
            anyhow::ensure!(frame.end == FrameEnd::Good, "a frame with a wrong FCS");
            frames.push(frame.bytes);
        }
        Ok(())
    };
    // The card does not know its peer yet, and sends an ARP request.
    let mut payloads = Vec::new();
    let lens = [18, 0, 1, 2, 17, 600, 1471, 1472, 8971, 8972];
    for checksum in [DatagramChecksum::Card, DatagramChecksum::None] {
        let mut burst = Burst::<16>::new();
        for len in lens {
            let payload: Vec<u8> = (0..len).map(|i: usize| (i * 7 + len) as u8).collect();
            drop(burst.push(in_buffers(&mut cache, &payload)?));
            payloads.push(hex(&payload));
        }
        let datagram = Datagram {
            to: SocketAddrV4::new(PEER.into(), DATAGRAMS),
            from: SOURCE,
            checksum,
        };
        let n = streams.send(0, &mut cache, &mut burst, &datagram);
        anyhow::ensure!(n == lens.len(), "{n} datagrams taken of {}", lens.len());
        collect(20_000)?;
        for frame in questions()? {
            device.with(|card, _| card.put(0, WireFrame::good(frame)));
        }
        collect(80_000)?;
    }
    let generator = Generator {
        size: 333,
        count: 20,
        gap: Ns(0),
        to: SocketAddrV4::new(PEER.into(), GENERATED),
        from: SOURCE,
    };
    anyhow::ensure!(streams.generate(0, &generator), "port 0 is not in use");
    collect(50_000)?;
    drop(cache);
    streams.stop()?;
    let broken = device.with(|card, _| card.violations());
    anyhow::ensure!(broken.is_empty(), "the card breaks rules: {broken:?}");
    write(file, &frames)?;
    Ok(json!({
        "frames": frames.len(), "payloads": payloads, "generated": 20, "pings": 8, "answers": 2,
    }))
}

/// Bytes in as many buffers as they need.
fn in_buffers(cache: &mut PoolCache, bytes: &[u8]) -> anyhow::Result<Mbuf> {
    let room = cache.pool().data_room();
    let (first, rest) = bytes.split_at(bytes.len().min(room));
    let mut mbuf = cache.alloc_from(first).context("no buffer")?;
    for piece in rest.chunks(room) {
        let piece = cache.alloc_from(piece).context("no buffer")?;
        anyhow::ensure!(mbuf.chain(piece).is_ok(), "more pieces than a chain has");
    }
    Ok(mbuf)
}

/// Writes frames into a capture file.
fn write(file: &Path, frames: &[Vec<u8>]) -> anyhow::Result<()> {
    let (mut started, pool) = open(&format!("pcap:tx={}", file.display()), 0, 1)?;
    let mut cache = pool.cache(64)?;
    for frame in frames {
        let mut burst = Burst::<1>::new();
        drop(burst.push(in_buffers(&mut cache, frame)?));
        for tx in &mut started.tx {
            anyhow::ensure!(
                tx.tx(&mut cache, &mut burst) == 1,
                "the file takes no frame"
            );
        }
    }
    drop(cache);
    stop(started)
}
