//! Shared parts of the tests of the stages.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::cell::RefCell;
use std::f32::consts::TAU;
use std::net::SocketAddrV4;
use std::sync::LazyLock;

use pollux_mempool::time::Tsc;
use pollux_mempool::{Mbuf, Mempool, PoolCache, PoolConfig};
use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME};
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::l0::{
    Draft, Event, EventHead, Fragment, Fragments, Frame, Reconstructed, SourceCounts, event_pool,
    fragment_pool,
};
use pollux_na62::merge::Span;
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::Ring;
use pollux_na62::rich::geometry::{board_of, pm_at};
use pollux_na62::stages::{Build, BuildOptions};
use pollux_na62::{L0Env, stage_env};
use pollux_pipelines::{Batch, Moment, Stage, StageEnv};
use pollux_pmd::Cause;
use pollux_pmd::net::{MacAddr, UdpEndpoint, UdpTemplate};
use pollux_pmd::stream::StreamId;

/// Maximum number of events that a test keeps.
const KEPT: usize = 1024;

/// The environment of stages for so many sources.
pub(crate) fn env(sources: usize) -> StageEnv {
    let mut env = stage_env(sources);
    env.under_way = KEPT;
    env
}

/// The trigger's extension of it.
pub(crate) fn l0(env: &StageEnv) -> &L0Env {
    env.get().unwrap()
}

/// An event after the ring search.
pub(crate) fn reconstructed(head: &EventHead, hits: &[Hit], rings: &[Ring]) -> Reconstructed {
    /// More than any test has at once.
    static EVENTS: LazyLock<Mempool> =
        LazyLock::new(|| event_pool(256, PoolConfig::default()).unwrap());
    let mut draft = Draft::new(&mut EVENTS.cache(2).unwrap()).unwrap();
    assert!(draft.insert(0, hits));
    draft.finish(head, Span::default()).reconstructed(rings)
}

/// A small pool.
pub(crate) fn pool(buffers: usize, data_room: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        ..PoolConfig::default()
    })
    .unwrap()
}

pub(crate) fn hit(pm: u16) -> Hit {
    Hit {
        pm,
        fine: (pm ^ 0x5a) % 256,
    }
}

/// A fragment with its hits.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) timestamp: u64,
    pub(crate) source: u16,
    pub(crate) ends_frame: bool,
    pub(crate) lost: u16,
    pub(crate) reordered: bool,
    pub(crate) at: Moment,
    pub(crate) arrival: Tsc,
    pub(crate) hits: Vec<Hit>,
}

impl From<Fragment<'_>> for Part {
    fn from(fragment: Fragment<'_>) -> Self {
        Self {
            timestamp: fragment.timestamp,
            source: fragment.source,
            ends_frame: fragment.ends_frame,
            lost: fragment.lost,
            reordered: fragment.reordered,
            at: fragment.at,
            arrival: fragment.arrival,
            hits: fragment.hits.to_vec(),
        }
    }
}

thread_local! {
    /// One pool for all fragments of a test.
    static FRAGMENTS: RefCell<PoolCache> = {
        let pool = fragment_pool(32, PoolConfig::default()).unwrap();
        RefCell::new(pool.cache(2).unwrap())
    };
}

/// Fragments in one buffer.
pub(crate) fn stored(parts: &[Part]) -> Fragments {
    let mut fragments = FRAGMENTS.with_borrow_mut(Fragments::new).unwrap();
    for part in parts {
        assert!(fragments.push(&Fragment {
            timestamp: part.timestamp,
            source: part.source,
            ends_frame: part.ends_frame,
            lost: part.lost,
            reordered: part.reordered,
            at: part.at,
            arrival: part.arrival,
            hits: &part.hits,
        }));
    }
    fragments
}

/// A whole frame of one event with one hit, which identifies source and time stamp.
pub(crate) fn fragment(source: u16, timestamp: u64, at_us: u64) -> Part {
    Part {
        timestamp,
        source,
        ends_frame: true,
        lost: 0,
        reordered: false,
        at: Moment(at_us * 1000),
        arrival: Tsc(at_us),
        hits: vec![hit((timestamp % 100) as u16 + 100 * source)],
    }
}

/// An event builder with its environment.
pub(crate) struct Rig {
    pub(crate) build: Build,
    pub(crate) env: StageEnv,
    pub(crate) out: Vec<Event>,
    pub(crate) frames: u64,
    /// Fragments of its sources, and whether no event is open.
    fragments: u64,
    finished: bool,
}

impl Rig {
    pub(crate) fn new(sources: usize, options: &BuildOptions) -> Self {
        let mut env = env(sources);
        let build = Build::new(options, &mut env).unwrap();
        Self {
            build,
            env,
            out: Vec::new(),
            frames: 0,
            fragments: 0,
            finished: false,
        }
    }

    /// Passes one fragment to it.
    pub(crate) fn put(&mut self, part: Part) {
        self.put_all(&[part]);
    }

    /// Passes some fragments in one buffer.
    pub(crate) fn put_all(&mut self, parts: &[Part]) {
        self.frames += parts.iter().filter(|part| part.ends_frame).count() as u64;
        let sources = l0(&self.env).stats.sources.len();
        let own = parts
            .iter()
            .filter(|part| usize::from(part.source) < sources);
        (self.fragments, self.finished) = (self.fragments + own.count() as u64, false);
        let mut batch = Batch::with_capacity(1);
        batch.push(stored(parts)).unwrap();
        self.build.process(&mut batch, &mut self.out);
    }

    /// Passes a frame of one event.
    pub(crate) fn frame(&mut self, source: u16, timestamp: u64, at_us: u64) {
        self.put(fragment(source, timestamp, at_us));
    }

    pub(crate) fn tick(&mut self, at_us: u64) {
        self.build.tick(Moment(at_us * 1000), &mut self.out);
    }

    pub(crate) fn finish(&mut self) {
        self.build.finish(&mut self.out);
        self.finished = true;
    }

    /// Time stamps and sources of the output since the last call.
    pub(crate) fn take(&mut self) -> Vec<(u64, u16)> {
        self.out
            .drain(..)
            .map(|event| (event.head().timestamp, event.head().sources))
            .collect()
    }

    pub(crate) fn dropped(&self, cause: Cause) -> u64 {
        self.env.ledger.balance().dropped_for(cause)
    }

    /// Fragments that are part of an event, and refused ones.
    pub(crate) fn accounted(&self) -> (u64, u64) {
        let stats = &l0(&self.env).stats;
        let built = stats.events.built.get();
        let used = stats.sources.iter().map(|it| built - it.absent.get());
        let refused = stats
            .sources
            .iter()
            .flat_map(SourceCounts::refused_fragments);
        (used.sum(), refused.map(|(_, n)| n).sum())
    }

    /// Checks that each frame and each fragment has one outcome, and the sums of the counters.
    pub(crate) fn check(&self) {
        let balance = self.env.ledger.balance();
        assert_eq!(
            balance.delivered + balance.dropped_total(),
            self.frames,
            "{balance:?}"
        );
        let (used, refused) = self.accounted();
        if self.finished {
            assert_eq!(used + refused, self.fragments);
        } else {
            assert!(used + refused <= self.fragments);
        }
        let events = &l0(&self.env).stats.events;
        assert_eq!(
            events.built.get(),
            events.complete.get() + events.incomplete.get()
        );
        assert!(events.forced.get() <= events.incomplete.get());
    }
}

/// An event for a container: a time stamp and its hits.
pub(crate) type Shot = (u64, Vec<Hit>);

/// A container with these events.
pub(crate) fn container(board: u8, sequence: u32, shots: &[Shot]) -> Vec<u8> {
    let mut writer = HitsWriter::new(vec![0; MAX_FRAME], SOURCE_RICH, board, sequence).unwrap();
    for (timestamp, hits) in shots {
        writer.push(*timestamp, hits).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

/// Boards of a small detector.
pub(crate) const BOARDS: u8 = 4;

/// Events in a frame.
pub(crate) const EVENTS: u64 = 5;

/// The hits of an event: a ring whose position depends on the time stamp, and some noise.
pub(crate) fn event(timestamp: u64) -> Vec<Hit> {
    let (x, y) = (
        (timestamp % 13) as f32 * 9.0 - 50.0,
        (timestamp % 7) as f32 * 12.0 - 40.0,
    );
    let r = 110.0 + (timestamp % 70) as f32;
    let mut pms: Vec<u16> = (0..16)
        .filter_map(|n| {
            let (sin, cos) = (TAU * n as f32 / 16.0).sin_cos();
            pm_at((timestamp % 2) as u8, x + r * cos, y + r * sin)
        })
        .chain([(timestamp * 37 % 1952) as u16])
        .collect();
    pms.sort_unstable();
    pms.dedup();
    pms.iter()
        .map(|&pm| Hit {
            pm,
            fine: 100 + pm % 8,
        })
        .collect()
}

/// The events of frame number `n` of board `board`.
pub(crate) fn shots(board: u8, n: u64) -> Vec<Shot> {
    let part = |t| {
        event(t)
            .into_iter()
            .filter(|hit| board_of(hit.pm, BOARDS) == board)
            .collect()
    };
    let times = (0..EVENTS).map(|i| 1000 + (n * EVENTS + i) * 40);
    times.map(|t| (t, part(t))).collect()
}

/// Headers to a UDP port of a receiver.
pub(crate) fn template(port: u16) -> UdpTemplate {
    let end = |last: u8, port| UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, last]),
        socket: SocketAddrV4::new([10, 0, 0, last].into(), port),
    };
    UdpTemplate::new(end(1, 4000), end(2, port))
}

/// A received frame, on the port of its board, with this payload after `offset` bytes of headers;
/// several segments if the buffers of the pool are short.
pub(crate) fn frame(cache: &mut PoolCache, payload: &[u8], offset: usize, at_us: u64) -> Frame {
    let mut mbuf: Mbuf = cache
        .alloc_from(&[&vec![0xee; offset], payload].concat())
        .unwrap();
    mbuf.set_arrival(Tsc(at_us));
    Frame {
        mbuf,
        stream: StreamId(payload.get(6).copied().unwrap_or(0).into()),
        offset: offset as u16,
        len: payload.len() as u16,
        at: Moment(at_us * 1000),
    }
}
