//! Frame rate meter: frames that ports receive or send per second, with one queue on one core, for
//! `scripts/compare-pmds`. `rate SPEC rx|tx SECONDS [CPU [SIZE]]`, for example `cargo run --release
//! -p pollux-pmd --example rate -- af_xdp:eth0 rx 5 1`; prints one number. When it receives it
//! prints a second one: TSC cycles per frame, over the polls that had frames, which is the cost of
//! a frame, independent of the sender's rate.
//!
//! `rate SPEC loop SECONDS CPU SIZE SPEC` requires the two ends of one cable: frames received at
//! either end are sent at the other.
use std::time::{Duration, Instant};

use pollux_pmd::mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{
    Clock, MemoryGrant, PortConfig, Registry, RxQueue, StartedPort, TscClock, TxQueue, lcore,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The first frames are not counted: caches, buffers and the other side settle.
const WARM_UP: Duration = Duration::from_millis(500);

/// Time for the other end to appear.
const PATIENCE: Duration = Duration::from_secs(10);

/// Iterations between two clock readings.
const ROUNDS: usize = 256;

/// Frames that circulate in a loop.
const LOOP: usize = 512;

fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [spec, way, seconds, rest @ ..] = &words[..] else {
        return Err("usage: rate SPEC rx|tx|loop SECONDS [CPU [SIZE [SPEC]]]".into());
    };
    let cpu = rest.first().map(|cpu| cpu.parse()).transpose()?;
    let size = rest.get(1).map_or(Ok(64), |size| size.parse())?;
    let duration = Duration::try_from_secs_f64(seconds.parse()?)?;
    let pool = Mempool::new(PoolConfig::default())?;
    let mut ports = Vec::new();
    for spec in [spec].into_iter().chain(rest.get(2)) {
        let mut config = PortConfig::new(pool.clone());
        match &way[..] {
            "rx" => config.tx_queues = 0,
            "tx" => config.rx_queues = 0,
            _ => {}
        }
        // SAFETY: the user who names a port on the command line is responsible for its device or
        // peer.
        let registry = Registry::builtin().granting(unsafe { MemoryGrant::new() });
        let port = registry.open(spec)?;
        ports.push(port.configure(config)?.start()?);
    }
    let began = Instant::now();
    while let Some(down) = ports.iter().find(|port| !port.port.link().up) {
        if began.elapsed() > PATIENCE {
            return Err(format!("{}: the link is down", down.port.spec()).into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut cache = pool.cache(256)?;
    let way = way.clone();
    let mut source = Source::new(size)?;
    let work = move || -> Result<(f64, Busy), Failure> {
        let mut busy = Busy::default();
        let rate = match (&way[..], &mut ports[..]) {
            ("rx", [port]) => {
                let clock = TscClock::get();
                measure(duration, || {
                    let start = clock.now();
                    let frames = receive(&mut port.rx[0], &mut cache);
                    if frames > 0 {
                        busy.frames += frames;
                        busy.cycles += clock.now().since(start);
                    }
                    frames
                })
            }
            ("tx", [port]) => measure(duration, || send(&mut port.tx[0], &mut cache, &mut source)),
            ("loop", [a, b]) => {
                for _ in 0..LOOP / 32 {
                    let mut burst = source.burst(&mut cache);
                    a.tx[0].tx(&mut cache, &mut burst);
                }
                measure(duration, || {
                    forward(a, b, &mut cache) + forward(b, a, &mut cache)
                })
            }
            _ => return Err("rx and tx want one port, loop two".into()),
        };
        drop((cache, source));
        for port in ports {
            port.port.stop(port.rx, port.tx)?;
        }
        Ok((rate, busy))
    };
    let (rate, busy) = lcore::launch("rate", cpu, work)?.join()??;
    match busy.frames {
        0 => println!("{rate:.0}"),
        frames => println!("{rate:.0} {:.1}", busy.cycles as f64 / frames as f64),
    }
    Ok(())
}

/// Totals of the polls that had frames.
#[derive(Default)]
struct Busy {
    frames: u64,
    cycles: u64,
}

/// Frames per second of `round`, which returns its number of frames, from the first frames on.
fn measure(duration: Duration, mut round: impl FnMut() -> u64) -> f64 {
    let began = Instant::now();
    while round() == 0 && began.elapsed() < PATIENCE {}
    let warm = Instant::now();
    while warm.elapsed() < WARM_UP {
        round();
    }
    let (mut frames, began) = (0, Instant::now());
    while began.elapsed() < duration {
        frames += (0..ROUNDS).map(|_| round()).sum::<u64>();
    }
    frames as f64 / began.elapsed().as_secs_f64()
}

fn receive(rx: &mut RxQueue, cache: &mut PoolCache) -> u64 {
    let mut burst = Burst::<32>::new();
    let frames = rx.rx(cache, &mut burst);
    cache.free_burst(&mut burst);
    frames as u64
}

/// Frames that do not fit are dropped, as by a forwarder.
fn forward(from: &mut StartedPort, to: &mut StartedPort, cache: &mut PoolCache) -> u64 {
    let mut burst = Burst::<32>::new();
    let frames = from.rx[0].rx(cache, &mut burst);
    to.tx[0].tx(cache, &mut burst);
    cache.free_burst(&mut burst);
    frames as u64
}

fn send(tx: &mut TxQueue, cache: &mut PoolCache, source: &mut Source) -> u64 {
    let mut burst = source.burst(cache);
    let frames = tx.tx(cache, &mut burst);
    source.rest = burst;
    frames as u64
}

/// Generates identical datagrams.
struct Source {
    frame: Vec<u8>,
    /// Frames that did not fit.
    rest: Burst<32>,
}

impl Source {
    fn new(size: usize) -> Result<Self, Failure> {
        let payload = size.checked_sub(UDP_HEADERS);
        let payload = payload.ok_or("frames that short hold no UDP")?;
        let (mac, ip) = (MacAddr([2; 6]), [198, 18, 0, 1].into());
        let socket = std::net::SocketAddrV4::new(ip, 9);
        let end = UdpEndpoint { mac, socket };
        let mut frame = vec![0; size];
        let _ = UdpTemplate::new(end, end).write(&mut frame, payload);
        Ok(Self {
            frame,
            rest: Burst::new(),
        })
    }

    fn burst(&mut self, cache: &mut PoolCache) -> Burst<32> {
        let mut burst = std::mem::take(&mut self.rest);
        let kept = burst.len();
        cache.alloc_burst(&mut burst, 32 - kept);
        for mbuf in &mut burst[kept..] {
            if let Some(room) = mbuf.append(self.frame.len()) {
                room.copy_from_slice(&self.frame);
            }
        }
        burst
    }
}
