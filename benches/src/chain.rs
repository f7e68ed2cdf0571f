//! The loop of a trigger on one port: receive, demux, decompress, build, rings, decide, answer.

use std::net::SocketAddrV4;

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, Mbuf, Mempool, PoolCache};
use pollux_na62::formats::mtp::SOURCE_L0TP;
use pollux_na62::l0::{Decision, Frame};
use pollux_na62::stages::Answer;
use pollux_na62::{EVENT_CACHE, L0Env, stage_env, stage_registry};
use pollux_pipelines::fan_out::{FanOutOptions, Worker};
use pollux_pipelines::{Batch, Moment, Output, Pipeline, StageEnv};
use pollux_pmd::net::{MacAddr, ParseOptions, Parsed, UdpEndpoint, UdpTemplate, classify};
use pollux_pmd::stream::{Demux, DemuxBuilder, StreamId};
use pollux_pmd::{RxQueue, TxQueue};

use crate::witness::Witness;
use crate::{BOARDS, BUNCH, Error, STEP};

/// UDP port of the first board's frames.
pub const PORT: u16 = 58_913;

/// Frames in a burst.
pub const BURST: usize = 32;

/// Where decisions go.
struct DecisionSink {
    answer: Answer,
    tx: TxQueue,
    cache: PoolCache,
    events: PoolCache,
    decided: u64,
    witness: Option<Witness>,
}

impl DecisionSink {
    fn flush(&mut self) {
        self.answer.flush(Some(&mut self.tx), &mut self.cache);
        if let Some(witness) = &mut self.witness {
            witness.departed();
        }
    }
}

impl Output<Decision> for DecisionSink {
    fn push(&mut self, decision: Decision) {
        if !self.answer.push(&decision) {
            self.flush();
            // An empty packet has room.
            let _ = self.answer.push(&decision);
        }
        if let Some(witness) = &mut self.witness {
            witness.decided(decision.head().arrival);
        }
        self.events.free(decision.into());
        self.decided += 1;
    }
}

/// The loop.
pub struct Chain {
    rx: RxQueue,
    demux: Demux,
    pipeline: Pipeline<Frame, Decision>,
    sink: DecisionSink,
    frames: Batch<Frame>,
    env: StageEnv,
}

impl Chain {
    /// The loop over these queues, with so many workers beside it.
    ///
    /// # Errors
    /// Memory that cannot be had.
    pub fn new(rx: RxQueue, tx: TxQueue, pool: &Mempool, workers: usize) -> Result<Self, Error> {
        let mut env = stage_env(BOARDS.into());
        env.fan_out = FanOutOptions {
            workers,
            // A worker that the machine holds up makes a round slow, not wrong.
            patience: Ns(1_000_000_000),
            ..FanOutOptions::default()
        };
        let stages = ["decompress", "build", "rings", "decide"]
            .map(|name| [("name".to_owned(), name.into())].into_iter().collect());
        let pipeline = stage_registry().pipeline(&stages, &mut env)?;
        let decided = env
            .get::<L0Env>()?
            .events
            .as_ref()
            .ok_or("no stage builds events")?;
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
        Ok(Self {
            rx,
            demux: demux.build()?,
            pipeline,
            sink: DecisionSink {
                answer,
                tx,
                cache: pool.cache(512)?,
                events: decided.cache(EVENT_CACHE)?,
                decided: 0,
                witness: None,
            },
            frames: Batch::with_capacity(BURST),
            env,
        })
    }

    /// The workers, to be run by their loops.
    pub fn take_workers(&mut self) -> Vec<Worker> {
        std::mem::take(&mut self.env.worker_pool)
    }

    /// Takes a burst through all stages; how many frames there were.
    pub fn poll(&mut self, now: Moment) -> usize {
        let mut burst = Burst::<BURST>::new();
        let count = self.rx.rx(&mut self.sink.cache, &mut burst);
        if count == 0 {
            return 0;
        }
        burst.iter().for_each(Mbuf::prefetch_read);
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
        self.pipeline.process(&mut self.frames, &mut self.sink);
        for frame in self.frames.drain() {
            self.sink.cache.free(frame.mbuf);
        }
        count
    }

    /// Tells all stages the time.
    pub fn tick(&mut self, now: Moment) {
        self.pipeline.tick(now, &mut self.sink);
    }

    /// Sends what has been decided.
    pub fn flush(&mut self) {
        self.sink.flush();
    }

    /// The witness of the loop, if it has one.
    pub fn witness(&mut self) -> &mut Option<Witness> {
        &mut self.sink.witness
    }

    /// Events that were decided.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.sink.decided
    }

    /// Where decisions are sent.
    #[must_use]
    pub fn answer(&self) -> &Answer {
        &self.sink.answer
    }
}

/// Makes a container that of this bunch of events: its number, and its first time stamp.
pub fn renumber(container: &mut [u8], bunch: u64) {
    // As in docs/formats/rich-hits.md.
    container[8..12].copy_from_slice(&(bunch as u32).to_le_bytes());
    container[16..24].copy_from_slice(&(bunch * BUNCH * STEP).to_le_bytes());
}
