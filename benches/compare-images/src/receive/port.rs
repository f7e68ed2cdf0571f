//! Ports of ours: frames are classified, sorted by UDP port, checked and placed by the assembler.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pollux_images::formats::{HEADER_LEN, Layout};
use pollux_images::receive::{ImageReader, PacketPlacer, ReceiveConfig, Route, images};
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pipelines::Moment;
use pollux_pmd::endpoint::{Classifier, Receiver};
use pollux_pmd::net::{MacAddr, ParseOptions, UDP_HEADERS, UdpChecksum, UdpEndpoint, UdpTemplate};
use pollux_pmd::port::{Port, Started};
use pollux_pmd::stream::{DemuxBuilder, StreamId};
use pollux_pmd::{Clock, PortConfig, Registry, RxQueue, StartedPort, TscClock, TxQueue};
use pollux_pmd_testkit::netns::{IP_A, IP_B, MAC_A, MAC_B};
use zerocopy::IntoBytes as _;

use super::packets::{BURST, Images, PIXELS, PORT, Receive, Take, WINDOW};
use super::sender::Transmit;

/// Packet buffers: those in flight, in rings and caches.
const BUFFERS: usize = 4 * WINDOW as usize;
/// Free buffers that a side keeps for itself.
const CACHE: usize = 128;
/// Bytes of a frame.
const FRAME: usize = UDP_HEADERS + HEADER_LEN + PIXELS;
/// Image buffers.
const IMAGES: usize = 8;
/// How long a ring may be full.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens a port with so many queues.
fn open(spec: &str, pool: &Mempool, [rx_queues, tx_queues]: [u16; 2]) -> Result<StartedPort> {
    let config = PortConfig {
        ring: 2 * WINDOW as usize,
        rx_queues,
        tx_queues,
        ..PortConfig::new(pool.clone())
    };
    let port = Registry::builtin().open(spec)?;
    Ok(port.configure(config)?.start()?)
}

fn pool() -> Result<Mempool> {
    Ok(Mempool::new(PoolConfig {
        buffers: BUFFERS,
        data_room: FRAME + 128,
        ..PoolConfig::default()
    })?)
}

/// A port, which is open until it is dropped, and what uses its queues.
pub(super) type Opened<T> = (T, Port<Started>);

/// Both ends of the port inside the process.
pub(super) fn loopback(
    layout: Layout,
    images: &Arc<Images>,
) -> Result<Opened<(PortTransmit, PortReceiver)>> {
    let pool = pool()?;
    let StartedPort { port, rx, tx } = open("loopback", &pool, [1, 1])?;
    let transmit = PortTransmit::new(tx, &pool, images)?;
    let receiver = PortReceiver::new(rx, &pool, layout)?;
    Ok(((transmit, receiver), port))
}

/// A port that sends.
pub(super) fn transmit(spec: &str, images: &Arc<Images>) -> Result<Opened<PortTransmit>> {
    let pool = pool()?;
    let StartedPort { port, tx, .. } = open(spec, &pool, [0, 1])?;
    Ok((PortTransmit::new(tx, &pool, images)?, port))
}

/// A port that receives.
pub(super) fn receive(spec: &str, layout: Layout) -> Result<Opened<PortReceiver>> {
    let pool = pool()?;
    let StartedPort { port, rx, .. } = open(spec, &pool, [1, 0])?;
    Ok((PortReceiver::new(rx, &pool, layout)?, port))
}

/// The sending end of a port.
pub(super) struct PortTransmit {
    tx: TxQueue,
    cache: PoolCache,
    images: Arc<Images>,
    headers: Vec<u8>,
}

impl PortTransmit {
    fn new(mut tx: Vec<TxQueue>, pool: &Mempool, images: &Arc<Images>) -> Result<Self> {
        let end = |mac, ip: [u8; 4], port| UdpEndpoint {
            mac: MacAddr(mac),
            socket: SocketAddrV4::new(ip.into(), port),
        };
        let to = end(MAC_B, IP_B, PORT);
        // No checksum, so that no side verifies one in software: a NIC would.
        let headers = UdpTemplate::new(end(MAC_A, IP_A, 4000), to);
        let headers = headers.with_checksum(UdpChecksum::Absent);
        let mut frame = vec![0; FRAME];
        headers
            .write(&mut frame, HEADER_LEN + PIXELS)
            .context("too long a frame")?;
        frame.truncate(UDP_HEADERS);
        Ok(Self {
            tx: tx.pop().context("no queue to send by")?,
            cache: pool.cache(CACHE)?,
            images: Arc::clone(images),
            headers: frame,
        })
    }
}

impl Transmit for PortTransmit {
    fn send(&mut self, first: u64, count: usize) -> Result<()> {
        let mut burst = Burst::<BURST>::new();
        let from = Instant::now();
        while self.cache.alloc_burst(&mut burst, count) == 0 {
            ensure!(from.elapsed() < PATIENCE, "no free buffers");
        }
        for (n, mbuf) in (first..).zip(burst.iter_mut()) {
            let (header, pixels) = self.images.packet(n);
            let frame = mbuf.append(FRAME).context("a buffer is too short")?;
            let (headers, rest) = frame.split_at_mut(UDP_HEADERS);
            headers.copy_from_slice(&self.headers);
            let (to, rest) = rest.split_at_mut(HEADER_LEN);
            to.copy_from_slice(header.as_bytes());
            rest.copy_from_slice(pixels);
        }
        while !burst.is_empty() {
            if self.tx.tx(&mut self.cache, &mut burst) == 0 {
                ensure!(from.elapsed() < PATIENCE, "the ring stays full");
            }
        }
        Ok(())
    }
}

/// The receiving end of a port, with the assembler.
pub(super) struct PortReceiver {
    rx: RxQueue,
    cache: PoolCache,
    receiver: Receiver,
    placer: PacketPlacer<u16>,
    reader: ImageReader<u16>,
    clock: TscClock,
    start: Tsc,
}

impl PortReceiver {
    fn new(mut rx: Vec<RxQueue>, pool: &Mempool, layout: Layout) -> Result<Self> {
        let stream = StreamId(0);
        let mut config = ReceiveConfig::new(layout, Route::Streams(vec![stream]));
        config.buffers = IMAGES;
        // A packet that is missing is an error of the turn.
        config.timeout = Ns(3_600_000_000_000);
        let (placer, reader) = images(&config)?;
        let demux = DemuxBuilder::new().port(PORT, stream).build()?;
        let clock = TscClock::get();
        Ok(Self {
            rx: rx.pop().context("no queue to receive by")?,
            cache: pool.cache(CACHE)?,
            receiver: Receiver::new(Classifier::new(ParseOptions::default()), demux, None),
            placer,
            reader,
            start: clock.now(),
            clock,
        })
    }
}

impl Receive for PortReceiver {
    fn poll(&mut self, take: Take) -> Result<usize> {
        let mut burst = Burst::<BURST>::new();
        let now = self.clock.now();
        if self.rx.rx_at(now, &mut self.cache, &mut burst, BURST) == 0 {
            return Ok(0);
        }
        let at = self.clock.to_ns(now.since(self.start));
        let mut placed = 0;
        let (receiver, cache, placer) = (&mut self.receiver, &mut self.cache, &mut self.placer);
        burst.take_all(|mbuf| {
            if let Some(frame) = receiver.receive(mbuf, at, 0, &mut [], cache) {
                placed += usize::from(placer.receive(&frame, Moment(at.0)).is_ok());
                cache.free(frame.mbuf);
            }
        });
        while let Some(image) = self.reader.poll(Moment(at.0)) {
            ensure!(image.is_complete(), "an image lacks packets");
            take(image.pixels().as_bytes())?;
        }
        Ok(placed)
    }
}
