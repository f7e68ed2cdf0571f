//! The loop of a trigger, from frames on a port to answers on a port, does not allocate, free or
//! enter the kernel after its start.
//!
//! There is no warm-up: the check covers the first frame as well as the last. Stages allocate when
//! the pipeline is created.

use crate::common::{BOARDS, container, env, l0, pool, shots, template};
use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, PoolCache};
use pollux_na62::formats::mtp::{MtpPacket, SOURCE_L0TP};
use pollux_na62::l0::{Decision, Frame, L0Record};
use pollux_na62::stage_registry;
use pollux_na62::stages::Answer;
use pollux_pipelines::{Batch, DynStage, Moment, Output, Pipeline, Stage, StageRegistry};
use pollux_pmd::event::{EventProducer, EventQueue, RegionOptions};
use pollux_pmd::net::{ParseOptions, Parsed, UDP_HEADERS, UdpTemplate, classify};
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};
use pollux_pmd::{
    Cause, ClockChoice, PortConfig, Registry, RxQueue, StartedPort, Tally, TscClock, TxQueue,
};
use pollux_pmd_testkit::guard::{Noise, listen};

/// UDP port that the boards send to.
const PORT: u16 = 58_913;

const BUFFERS: usize = 1024;

const RING: usize = 256;

/// Frames that each board sends.
const FRAMES: u64 = 4000;

/// The boards: their frames are made before the start.
struct Boards {
    payloads: Vec<Vec<u8>>,
    to: [UdpTemplate; BOARDS as usize + 1],
    tx: TxQueue,
    next: usize,
}

impl Boards {
    fn new(tx: TxQueue) -> Self {
        let mut payloads = Vec::new();
        for n in 0..FRAMES {
            for board in 0..BOARDS {
                let mut payload = container(board, n as u32, &shots(board, n));
                match (n * u64::from(BOARDS) + u64::from(board)) % 97 {
                    // Lost, duplicate, and late.
                    5 => continue,
                    11 => payloads.push(payload.clone()),
                    17 if n > 100 => {
                        payloads.push(container(board, n as u32 - 80, &shots(board, n - 80)));
                    }
                    // Truncated, of another version, of another board.
                    23 => payload.truncate(payload.len() / 2),
                    29 => payload[4] = 9,
                    31 => payload = container(BOARDS, n as u32, &[]),
                    // No events; a time stamp far away.
                    37 => payload = container(board, n as u32, &[]),
                    41 => payload = container(board, n as u32, &[(1 << 40, Vec::new())]),
                    _ => {}
                }
                payloads.push(payload);
            }
        }
        Self {
            payloads,
            to: std::array::from_fn(|board| template(PORT + board as u16)),
            tx,
            next: 0,
        }
    }

    /// Sends up to a burst of frames; false at the end.
    fn send(&mut self, cache: &mut PoolCache) -> bool {
        let mut burst = Burst::<24>::new();
        while !burst.is_full()
            && let Some(payload) = self.payloads.get(self.next)
            && let Some(mut mbuf) = cache.alloc()
        {
            let frame = mbuf.append(UDP_HEADERS + payload.len()).unwrap();
            frame[UDP_HEADERS..].copy_from_slice(payload);
            // Some go to a port without a stream, and some cannot be classified.
            let board = payload.get(6).copied().filter(|&board| board < BOARDS);
            let to = match self.next % 61 {
                60 => &self.to[usize::from(BOARDS)],
                _ => &self.to[usize::from(board.unwrap_or(0))],
            };
            to.write(frame, payload.len()).unwrap();
            assert!(burst.push(mbuf).is_ok());
            self.next += 1;
        }
        self.tx.tx(cache, &mut burst);
        cache.free_burst(&mut burst);
        self.next < self.payloads.len()
    }
}

/// Sink of decisions: the link, and a tap.
struct DecisionSink {
    answer: Answer,
    tx: TxQueue,
    cache: PoolCache,
    events: PoolCache,
    tap: EventProducer,
    untapped: u64,
    decisions: u32,
}

impl Output<Decision> for DecisionSink {
    fn push(&mut self, decision: Decision) {
        let record = L0Record::of(&decision).to_event(self.decisions);
        self.untapped += u64::from(self.tap.push(&record).is_err());
        if !self.answer.push(&decision) {
            self.answer.flush(Some(&mut self.tx), &mut self.cache);
            assert!(self.answer.push(&decision));
        }
        self.decisions += 1;
        self.events.free(decision.into());
    }
}

/// The parts of the trigger's loop.
struct Trigger {
    rx: RxQueue,
    demux: Demux,
    tally: Tally,
    pipeline: Pipeline<Frame, Decision>,
    sink: DecisionSink,
    frames: Batch<Frame>,
}

impl Trigger {
    /// One iteration of the loop.
    fn poll(&mut self, now: Moment) -> bool {
        let mut burst = Burst::<32>::new();
        let n = self.rx.rx(&mut self.sink.cache, &mut burst);
        burst.take_all(|mbuf| {
            let cause = match classify(&mbuf, &ParseOptions::default()) {
                Ok(Parsed::Udp(udp)) => match self.demux.route(&udp) {
                    Some(stream) => {
                        let (offset, len) = (udp.payload_offset, udp.payload_len);
                        let frame = Frame {
                            mbuf,
                            stream,
                            offset,
                            len,
                            at: now,
                        };
                        self.frames.push(frame).unwrap();
                        return;
                    }
                    None => Cause::DemuxMiss,
                },
                Ok(_) => Cause::NotForUs,
                Err(cause) => cause,
            };
            self.tally.count_dropped(cause, 1);
            self.sink.cache.free(mbuf);
        });
        self.pipeline.process(&mut self.frames, &mut self.sink);
        for frame in self.frames.drain() {
            self.sink.cache.free(frame.mbuf);
        }
        self.pipeline.tick(now, &mut self.sink);
        self.sink
            .answer
            .flush(Some(&mut self.sink.tx), &mut self.sink.cache);
        n > 0
    }
}

const BUILD: &str = r#"name = "build", deadline_us = 100, horizon_us = 10000, max_open = 64"#;
const MERGE: &str = r#"name = "merge", deadline_us = 100, horizon_us = 10000, capacity = 64"#;

/// The tables of a chain with this builder, and `extra` as one more stage.
fn tables(builder: &str, extra: &str) -> Vec<toml::Table> {
    let chain = format!(
        r#"stage = [
            {{ name = "decompress" }},
            {{ {builder} }},
            {{ name = "rings" }},
            {{ name = "decide", downscale = 3, rule = [{{ name = "any", min_rings = 1, prescale = 2 }}] }},
            {extra}
        ]"#
    );
    let mut table: toml::Table = chain.parse().unwrap();
    table.remove("stage").unwrap().try_into().unwrap()
}

/// Whether loops read the time stamp counter: the kernel's clock may enter the kernel.
fn reads_the_counter() -> bool {
    let selected = TscClock::select(ClockChoice::Tsc).is_ok();
    if !selected {
        println!(
            "skipped: the kernel's clock is in use, as neither CPU nor kernel trusts the other"
        );
    }
    selected
}

/// Runs a chain of stages on a link, under observation.
fn run(registry: &StageRegistry, builder: &str, extra: &str) -> Noise {
    let stages = tables(builder, extra);
    listen(|ear| {
        let pool = pool(BUFFERS, 2048);
        let config = PortConfig {
            ring: RING,
            rx_queues: 2,
            tx_queues: 2,
            ..PortConfig::new(pool.clone())
        };
        let port = Registry::builtin().open("loopback").unwrap();
        let StartedPort {
            port,
            mut rx,
            mut tx,
        } = port.configure(config).unwrap().start().unwrap();
        let (mut answers, answer_tx) = (rx.pop().unwrap(), tx.pop().unwrap());
        let mut boards = Boards::new(tx.pop().unwrap());

        let mut env = env(usize::from(BOARDS));
        let queue = EventQueue::new(1024, &RegionOptions::default()).unwrap();
        let (tap, mut records) = queue.split();
        let mut answer = Answer::new(SOURCE_L0TP, Ns(1_000_000), true);
        let sent = answer.counts();
        answer.set_peer(template(4001));
        let mut trigger = Trigger {
            rx: rx.pop().unwrap(),
            demux: (0..u16::from(BOARDS))
                .fold(DemuxBuilder::new(), |demux, board| {
                    demux.port(PORT + board, StreamId(board))
                })
                .build()
                .unwrap(),
            tally: Tally::new(),
            pipeline: registry.pipeline(&stages, &mut env).unwrap(),
            sink: DecisionSink {
                answer,
                tx: answer_tx,
                cache: pool.cache(64).unwrap(),
                events: l0(&env).events.as_ref().unwrap().cache(64).unwrap(),
                tap,
                untapped: 0,
                decisions: 0,
            },
            frames: Batch::with_capacity(32),
        };
        env.ledger.add("rx", trigger.rx.tally());
        env.ledger.add("receive", trigger.tally.view());
        let mut cache = pool.cache(64).unwrap();

        let (mut told, mut tapped) = (0, 0_u32);
        ear.during(|| {
            let (mut round, mut more) = (0, true);
            while more {
                more = boards.send(&mut cache);
                round += 1;
                // A round sends 24 frames, six of each board, that are 20 us apart.
                while trigger.poll(Moment(round * 120_000)) {}
                // For a while answers and records are not taken, so that both queues become full.
                if round % 512 < 300 {
                    continue;
                }
                let mut burst = Burst::<32>::new();
                while answers.rx(&mut cache, &mut burst) > 0 {
                    for mbuf in burst.iter() {
                        let packet = MtpPacket::parse(&mbuf.data()[UDP_HEADERS..]).unwrap();
                        told += packet.primitives().count();
                    }
                    cache.free_burst(&mut burst);
                }
                while records.poll().is_some() {
                    tapped += 1;
                }
            }
            trigger.pipeline.finish(&mut trigger.sink);
        });

        // Every case has occurred.
        let balance = env.ledger.check().unwrap();
        for cause in [
            Cause::DemuxMiss,
            Cause::Duplicate,
            Cause::Malformed,
            Cause::BadVersion,
            Cause::Unsupported,
            Cause::OutOfWindow,
        ] {
            assert!(balance.dropped_for(cause) > 0, "{cause:?} in {balance}");
        }
        let events = &l0(&env).stats.events;
        assert!(events.complete.get() > 1000);
        if builder == BUILD {
            assert!(balance.dropped_for(Cause::Late) > 0 && events.incomplete.get() > 100);
        }
        assert!(events.rings.get() > 1000 && events.accepted.get() > 1000);
        assert!(told > 1000 && sent.no_room.get() > 0, "{sent:?}");
        assert!(tapped > 1000 && trigger.sink.untapped > 0);
        port.stop(vec![trigger.rx, answers], vec![boards.tx, trigger.sink.tx])
            .unwrap();
    })
    .1
}

#[test]
fn the_loop_of_a_trigger() {
    if !reads_the_counter() {
        return;
    }
    run(&stage_registry(), BUILD, "").assert_none();
}

#[test]
fn the_loop_of_a_trigger_that_merges_hits() {
    if !reads_the_counter() {
        return;
    }
    run(&stage_registry(), MERGE, "").assert_none();
}

/// A stage that allocates or enters the kernel once in a while.
struct Noisy {
    noise: fn(),
    n: u32,
}

impl Stage for Noisy {
    type In = Decision;
    type Out = Decision;

    fn process(&mut self, batch: &mut Batch<Decision>, out: &mut impl Output<Decision>) {
        for decision in batch.drain() {
            self.n += 1;
            if self.n == 5000 {
                (self.noise)();
            }
            out.push(decision);
        }
    }
}

/// The observation of a chain with a noisy stage at its end.
fn with(noise: fn()) -> Noise {
    let mut registry = stage_registry();
    registry.register("noisy", move |_: toml::Table, _| {
        Ok(DynStage::new("noisy", Noisy { noise, n: 0 }))
    });
    run(&registry, BUILD, r#"{ name = "noisy" }"#)
}

#[test]
fn a_stage_that_allocates_once_is_caught() {
    let noise = with(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(noise.allocator_calls, 2);
    assert!(noise.system_calls.is_empty() && !noise.is_none());
}

#[test]
fn a_stage_that_enters_the_kernel_once_is_caught() {
    let noise = with(|| {
        std::hint::black_box(std::process::id());
    });
    assert_eq!(noise.allocator_calls, 0);
    match &noise.deaf {
        None => assert_eq!(noise.system_calls.len(), 1),
        Some(error) => println!("skipped: system calls cannot be watched here: {error}"),
    }
}
