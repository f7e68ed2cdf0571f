//! Receiving, demultiplexing and building events, fed by a port of ours or by sockets of the kernel:
//! what `scripts/compare-sockets` measures with. `sockets SIDE LINK FRAGMENTS SECONDS CPU CPU`, for
//! example `cargo run --release -p pollux-benches --example sockets -- loopback wire 1 2 0 1`.
//!
//! | side | link | the receiver takes datagrams from |
//! | --- | --- | --- |
//! | `loopback` | `wire` | our port inside the process |
//! | `sockets` | `wire` | sockets, on the kernel's loopback interface |
//! | `sockets`, `af_packet`, `af_xdp` | `veth` | one end of a veth pair, in namespaces of its own |
//!
//! The sender, on the second CPU, sends containers of so many fragments, made before, and is never
//! further ahead of the receiver than rings and buffers hold: nothing is lost, and the rate is that
//! of the slower one. Prints events a second, and cycles of the TSC for an event, over the
//! receiver's rounds that had datagrams.

mod failure;
mod traffic;
mod udp;

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pollux_mempool::time::Tsc;
use pollux_mempool::{Burst, Mbuf, Mempool, PoolCache, PoolConfig, prefetch};
use pollux_na62::l0::{Event, Frame, L0Stats};
use pollux_na62::stages::{Build, BuildOptions, Decompress, DecompressOptions};
use pollux_na62::{EVENT_CACHE, L0Env, stage_env};
use pollux_pipelines::{Batch, Each, Moment, Stage, StageEnv, StageExt};
use pollux_pmd::net::{ParseOptions, Parsed, classify};
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};
use pollux_pmd::{
    Clock, Port, PortConfig, RxQueue, Started, StartedPort, TscClock, TxQueue, lcore,
};
use pollux_pmd_testkit::netns::Cable;

use failure::Failure;
use traffic::{BOARDS, BURST, PORT, Traffic};

/// Most datagrams in flight: fewer than the rings, and the buffers of sockets, hold.
const WINDOW: u64 = 1024;
/// Warm-up, which is not counted.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long there may be nothing before the run has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rounds between two looks at the time.
const ROUNDS: usize = 64;

/// What sender and receiver know of each other.
#[derive(Default)]
struct Shared {
    /// Datagrams that were received.
    received: AtomicU64,
    /// Nothing more is to be sent.
    stop: AtomicBool,
}

fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [side, link, fragments, seconds, cpu, other] = &words[..] else {
        return Err("usage: sockets SIDE LINK FRAGMENTS SECONDS CPU CPU".into());
    };
    let duration = Duration::try_from_secs_f64(seconds.parse()?)?;
    let traffic = Traffic::new(fragments.parse()?)?;
    let pool = Mempool::new(PoolConfig::default())?;
    let open = |spec: &str, [rx, tx]: [u16; 2]| -> Result<StartedPort, Failure> {
        let config = PortConfig {
            ring: 4 * WINDOW as usize,
            rx_queues: rx,
            tx_queues: tx,
            ..PortConfig::new(pool.clone())
        };
        let port = pollux_benches::registry().open(spec)?;
        Ok(port.configure(config)?.start()?)
    };
    let cable = match (&side[..], &link[..]) {
        (_, "wire") => None,
        ("sockets", _) => Some(Cable::new(1500).ok_or("no cable")?),
        // The end has no address, so the kernel does not answer the frames.
        _ => Some(Cable::bare(1500).ok_or("no cable")?),
    };
    // Ports stay open until all loops have ended.
    let mut ports: Vec<Port<Started>> = Vec::new();
    let mut keep = |port: StartedPort| {
        ports.push(port.port);
        (port.rx, port.tx)
    };
    let (input, output) = match &cable {
        None if side == "sockets" => {
            let (receivers, senders) = udp::pairs()?;
            (Input::sockets(receivers), Output::Sockets(senders))
        }
        None => {
            let (rx, tx) = keep(open("loopback", [1, 1])?);
            (Input::port(rx)?, Output::Port(tx))
        }
        Some(cable) => {
            let (_, tx) = keep(cable.a.within(|| open("af_xdp:va", [0, 1]))?);
            let input = if side == "sockets" {
                Input::sockets(
                    cable
                        .b
                        .within(|| udp::receivers(pollux_pmd_testkit::netns::IP_B))?,
                )
            } else {
                let (rx, _) = keep(cable.b.within(|| open(&format!("{side}:vb"), [1, 0]))?);
                Input::port(rx)?
            };
            (input, Output::Port(tx))
        }
    };

    let shared = Arc::new(Shared::default());
    let (to, from, counters) = (pool.cache(512)?, pool.cache(512)?, Arc::clone(&shared));
    let mut receiver = Receiver::new(input, from, WINDOW as usize * traffic.fragments())?;
    let sender = lcore::launch("send", Some(other.parse()?), move || {
        output.send(traffic, to, &counters)
    })?;
    let receiver = lcore::launch("receive", Some(cpu.parse()?), move || {
        let result = receiver.run(duration, &shared);
        shared.stop.store(true, Ordering::Relaxed);
        // It stays until the sender has ended: nothing can be sent to a socket that is closed.
        (result, receiver)
    })?;
    let (result, _receiver) = receiver.join()?;
    sender.join()??;
    let (rate, cycles) = result?;
    println!("{rate:.0} {cycles:.1}");
    Ok(())
}

/// Where datagrams go.
enum Output {
    Port(Vec<TxQueue>),
    Sockets(udp::Senders),
}

impl Output {
    /// Sends until the stop flag is set, at most [`WINDOW`] ahead of the receiver.
    fn send(
        self,
        mut traffic: Traffic,
        mut cache: PoolCache,
        shared: &Shared,
    ) -> Result<(), Failure> {
        let room = |sent: u64| (WINDOW - (sent - shared.received.load(Ordering::Acquire))) as usize;
        let mut sent = 0;
        match self {
            Self::Port(mut tx) => {
                let tx = tx.first_mut().ok_or("no queue")?;
                let mut burst = Burst::<BURST>::new();
                while !shared.stop.load(Ordering::Relaxed) {
                    let waiting = burst.len();
                    let more = (BURST - waiting).min(room(sent + waiting as u64));
                    cache.alloc_burst(&mut burst, more);
                    // The receiver's core has had them.
                    for mbuf in &burst[waiting..] {
                        prefetch::prefetch_write(mbuf.data_ptr());
                        prefetch::prefetch_write(mbuf.data_ptr().wrapping_add(64));
                    }
                    for mbuf in &mut burst[waiting..] {
                        let frame = traffic.next_frame();
                        if let Some(place) = mbuf.append(frame.len()) {
                            place.copy_from_slice(frame);
                        }
                    }
                    let taken = tx.tx(&mut cache, &mut burst);
                    sent += taken as u64;
                    if taken == 0 {
                        spin_loop();
                    }
                }
                cache.free_burst(&mut burst);
            }
            Self::Sockets(mut sockets) => {
                while !shared.stop.load(Ordering::Relaxed) {
                    if room(sent) < BURST {
                        spin_loop();
                        continue;
                    }
                    sent += sockets.send(&mut traffic)?;
                }
            }
        }
        Ok(())
    }
}

/// Where datagrams come from.
enum Input {
    /// One port has the datagrams of all boards.
    Port(RxQueue, Box<Demux>),
    /// A socket for each board: the kernel has found out whose they are.
    Sockets(Box<udp::Receivers>),
}

impl Input {
    fn port(mut rx: Vec<RxQueue>) -> Result<Self, Failure> {
        let routes = (0..BOARDS.into()).fold(DemuxBuilder::new(), |routes, board| {
            routes.port(PORT + board, StreamId(board))
        });
        let rx = rx.pop().ok_or("no queue")?;
        Ok(Self::Port(rx, Box::new(routes.build()?)))
    }

    fn sockets(receivers: udp::Receivers) -> Self {
        Self::Sockets(Box::new(receivers))
    }

    /// Takes what is there.
    fn take(
        &mut self,
        cache: &mut PoolCache,
        frames: &mut Batch<Frame>,
        now: Tsc,
    ) -> Result<(), Failure> {
        match self {
            Self::Port(rx, demux) => {
                let mut burst = Burst::<BURST>::new();
                rx.rx(cache, &mut burst);
                burst.iter().for_each(Mbuf::prefetch_read);
                burst.take_all(|mbuf| {
                    let parsed = classify(&mbuf, &ParseOptions::default());
                    if let Ok(Parsed::Udp(udp)) = parsed
                        && let Some(stream) = demux.route(&udp)
                    {
                        let frame = Frame {
                            mbuf,
                            stream,
                            offset: udp.payload_offset,
                            len: udp.payload_len,
                            at: Moment(1),
                        };
                        // It fits: a batch holds a burst.
                        let _ = frames.push(frame);
                    } else {
                        cache.free(mbuf);
                    }
                });
                Ok(())
            }
            Self::Sockets(sockets) => sockets.take(cache, frames, now),
        }
    }
}

/// The loop that is measured.
struct Receiver<S> {
    input: Input,
    cache: PoolCache,
    chain: S,
    env: StageEnv,
    stats: Arc<L0Stats>,
    events: PoolCache,
    frames: Batch<Frame>,
}

impl Receiver<()> {
    fn new(
        input: Input,
        cache: PoolCache,
        max_open: usize,
    ) -> Result<Receiver<impl Stage<In = Frame, Out = Event>>, Failure> {
        let mut env = stage_env(BOARDS.into());
        // What is incomplete has been lost: nothing closes it.
        let options = BuildOptions {
            deadline_us: 60_000_000,
            horizon_us: 120_000_000,
            max_open,
            ..BuildOptions::default()
        };
        let decompress = Decompress::new(&DecompressOptions::default(), &mut env)?;
        let chain = decompress.then(Build::new(&options, &mut env)?);
        let trigger = env.get::<L0Env>()?;
        let stats = Arc::clone(&trigger.stats);
        let events = trigger.events.as_ref().ok_or("no events")?;
        let events = events.cache(EVENT_CACHE)?;
        Ok(Receiver {
            input,
            cache,
            chain,
            env,
            stats,
            events,
            frames: Batch::with_capacity(BURST),
        })
    }
}

impl<S: Stage<In = Frame, Out = Event>> Receiver<S> {
    /// Events a second, and cycles for each.
    fn run(&mut self, duration: Duration, shared: &Shared) -> Result<(f64, f64), Failure> {
        let clock = TscClock::get();
        let began = Instant::now();
        while self.rounds(&clock, shared)? == 0 {
            if began.elapsed() > PATIENCE {
                return Err("nothing comes".into());
            }
        }
        let warm = Instant::now();
        while warm.elapsed() < WARM_UP {
            self.rounds(&clock, shared)?;
        }
        let (before, began, mut busy) = (self.stats.events.built.get(), Instant::now(), 0);
        while began.elapsed() < duration {
            busy += self.rounds(&clock, shared)?;
        }
        let (seconds, counts) = (began.elapsed().as_secs_f64(), &self.stats.events);
        let events = (counts.built.get() - before) as f64;

        let sources = self.stats.sources.iter();
        let missing: u64 = sources.map(|source| source.missing.get()).sum();
        let lost = missing + counts.incomplete.get() + self.env.ledger.balance().dropped_total();
        if lost > 0 || events == 0.0 {
            return Err(format!("{lost} datagrams were lost, {events} events built").into());
        }
        Ok((events / seconds, busy as f64 / events))
    }

    /// Polls for a while; cycles of the rounds that had something.
    fn rounds(&mut self, clock: &TscClock, shared: &Shared) -> Result<u64, Failure> {
        let (mut busy, events) = (0, &mut self.events);
        for _ in 0..ROUNDS {
            let now = clock.now();
            self.input.take(&mut self.cache, &mut self.frames, now)?;
            let count = self.frames.as_slice().len();
            if count == 0 {
                spin_loop();
                continue;
            }
            let mut out = Each(|event: Event| events.free(event.into()));
            self.chain.process(&mut self.frames, &mut out);
            for frame in self.frames.drain() {
                self.cache.free(frame.mbuf);
            }
            shared.received.fetch_add(count as u64, Ordering::Release);
            busy += clock.now().since(now);
        }
        Ok(busy)
    }
}
