//! The whole chain of the trigger on one core: from frames on a loopback port to answers on it.
//!
//! What the boards send is made before it is measured, and answers are taken after it.
#![allow(missing_docs)]

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pollux_benches::{
    BOARDS, BUNCH, Error, STEP, containers, events, frame, noisy_events, pool, report, settings,
};
use pollux_emulator::physics::{Rings, TruthEvent};
use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, PoolCache};
use pollux_pipelines::formats::mtp::SOURCE_L0TP;
use pollux_pipelines::l0::{Decision, Frame};
use pollux_pipelines::stages::Answer;
use pollux_pipelines::{Batch, EVENT_CACHE, Moment, Pipeline, Sink, StageEnv, StageRegistry};
use pollux_pmd::net::{MacAddr, ParseOptions, Parsed, UdpEndpoint, UdpTemplate, classify};
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};
use pollux_pmd::{PortConfig, Registry, RxQueue, StartedPort, TxQueue};

/// UDP port of the first board's frames.
const PORT: u16 = 58_913;

/// Frames in a burst.
const BURST: usize = 32;

/// Events of a round.
const EVENTS: u64 = 32 * BUNCH;

/// Where decisions go.
struct Outlet {
    answer: Answer,
    tx: TxQueue,
    cache: PoolCache,
    events: PoolCache,
    decided: u64,
}

impl Sink<Decision> for Outlet {
    fn push(&mut self, decision: Decision) {
        if !self.answer.push(&decision) {
            self.answer.flush(Some(&mut self.tx), &mut self.cache);
            // An empty packet has room.
            let _ = self.answer.push(&decision);
        }
        self.events.free(decision.into());
        self.decided += 1;
    }
}

/// The loop of a trigger, and the boards that it listens to.
struct Trigger {
    rx: RxQueue,
    demux: Demux,
    pipeline: Pipeline<Frame, Decision>,
    outlet: Outlet,
    frames: Batch<Frame>,
    boards: TxQueue,
    answers: RxQueue,
    containers: Vec<Vec<u8>>,
    cache: PoolCache,
    round: u64,
}

impl Trigger {
    fn new(events: &[TruthEvent]) -> Result<Self, Error> {
        let pool = pool(4096)?;
        let port = Registry::builtin()
            .open("loopback")?
            .configure(PortConfig {
                rx_queues: 2,
                tx_queues: 2,
                ..PortConfig::new(pool.clone())
            })?;
        let StartedPort { rx, tx, .. } = port.start()?;
        let mut env = StageEnv::new(BOARDS.into());
        let stages = ["decompress", "build", "rings", "decide"]
            .map(|name| [("name".to_owned(), name.into())].into_iter().collect());
        let pipeline = StageRegistry::builtin().pipeline(&stages, &mut env)?;
        let decided = env.events.ok_or("no stage builds events")?;
        let mut answer = Answer::new(SOURCE_L0TP, Ns(1_000_000), true);
        let end = |last, port| UdpEndpoint {
            mac: MacAddr([2, 0, 0, 0, 0, last]),
            socket: SocketAddrV4::new([10, 0, 0, last].into(), port),
        };
        answer.set_peer(UdpTemplate::new(end(2, PORT), end(1, PORT)));
        let ports = (0..).zip(PORT..).take(BOARDS.into());
        let demux = ports.fold(DemuxBuilder::new(), |demux, (id, port)| {
            demux.port(port, StreamId(id))
        });
        let ([rx, answers], [boards, tx]) = (
            <[_; 2]>::try_from(rx).map_err(|_| "two queues")?,
            <[_; 2]>::try_from(tx).map_err(|_| "two queues")?,
        );
        Ok(Self {
            rx,
            demux: demux.build()?,
            pipeline,
            outlet: Outlet {
                answer,
                tx,
                cache: pool.cache(512)?,
                events: decided.cache(EVENT_CACHE)?,
                decided: 0,
            },
            frames: Batch::with_capacity(BURST),
            boards,
            answers,
            containers: containers(events)?,
            cache: pool.cache(512)?,
            round: 0,
        })
    }

    /// Puts the frames of one round on the wire: the same events, later.
    fn send(&mut self) -> Result<(), Error> {
        let bunches = self.containers.len() as u64 / u64::from(BOARDS);
        for (n, container) in (0..).zip(&mut self.containers) {
            // The sequence number and the first time stamp.
            let bunch = self.round * bunches + n / u64::from(BOARDS);
            container[8..12].copy_from_slice(&(bunch as u32).to_le_bytes());
            container[16..24].copy_from_slice(&(bunch * BUNCH * STEP).to_le_bytes());
            let frame = frame(PORT + (n % u64::from(BOARDS)) as u16, container);
            let mbuf = self.cache.alloc_from(&frame).ok_or("no buffer")?;
            let mut burst = Burst::<1>::new();
            burst.push(mbuf).map_err(|_| "no room")?;
            if self.boards.tx(&mut self.cache, &mut burst) == 0 {
                return Err("the wire is full".into());
            }
        }
        self.round += 1;
        Ok(())
    }

    /// Decides all that is on the wire.
    fn decide(&mut self) {
        let now = Moment(self.round * EVENTS * 1000);
        loop {
            let mut burst = Burst::<BURST>::new();
            if self.rx.rx(&mut self.outlet.cache, &mut burst) == 0 {
                break;
            }
            burst.take_all(|mbuf| {
                let Ok(Parsed::Udp(udp)) = classify(&mbuf, &ParseOptions::default()) else {
                    return;
                };
                let Some(stream) = self.demux.route(&udp) else {
                    return;
                };
                // It fits: a batch holds a burst.
                let _ = self.frames.push(Frame {
                    mbuf,
                    stream,
                    offset: udp.payload_offset,
                    len: udp.payload_len,
                    at: now,
                });
            });
            self.pipeline.process(&mut self.frames, &mut self.outlet);
            for frame in self.frames.drain() {
                self.outlet.cache.free(frame.mbuf);
            }
        }
        let Outlet {
            answer, tx, cache, ..
        } = &mut self.outlet;
        answer.flush(Some(tx), cache);
    }

    /// Takes the answers off the wire.
    fn listen(&mut self) {
        let mut burst = Burst::<BURST>::new();
        while self.answers.rx(&mut self.cache, &mut burst) > 0 {
            self.cache.free_burst(&mut burst);
        }
    }
}

fn chain(c: &mut Criterion) {
    let measure = |c: &mut Criterion| -> Result<(), Error> {
        let mut group = c.benchmark_group("trigger");
        group.throughput(Throughput::Elements(EVENTS));
        for (name, events) in [
            ("one ring, 10 % noise", events(Rings::Fixed(1), EVENTS)?),
            (
                "one ring, 20 % noise",
                noisy_events(Rings::Fixed(1), EVENTS)?,
            ),
            (
                "1.5 rings on average, 10 % noise",
                events(Rings::Poisson(1.5), EVENTS)?,
            ),
        ] {
            let mut trigger = Trigger::new(&events)?;
            let mut failed = None;
            group.bench_function(name, |b| {
                b.iter_custom(|rounds| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..rounds {
                        if let Err(error) = trigger.send() {
                            failed = Some(error);
                        }
                        let start = Instant::now();
                        trigger.decide();
                        spent += start.elapsed();
                        trigger.listen();
                    }
                    spent
                });
            });
            let (decided, sent) = (trigger.outlet.decided, trigger.round * EVENTS);
            if let Some(error) = failed {
                return Err(error);
            }
            if decided != sent || trigger.outlet.answer.counts().sent.get() != sent {
                return Err(format!("{decided} of {sent} events were decided").into());
            }
        }
        group.finish();
        Ok(())
    };
    report("trigger", measure(c));
}

criterion_group! { name = benches; config = settings(); targets = chain }
criterion_main!(benches);
