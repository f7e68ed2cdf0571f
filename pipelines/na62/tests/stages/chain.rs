//! The whole chain, from frames to decisions: nothing is lost, and the output does not depend on
//! how the input is divided into bursts.

use crate::common::{BOARDS, container, env, event, frame, l0, pool, shots};
use pollux_na62::formats::hits::{HitsWriter, MAX_FRAME};
use pollux_na62::l0::{Decision, Frame, L0Record};
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::FinderConfig;
use pollux_na62::rich::geometry::board_of;
use pollux_na62::stage_registry;
use pollux_na62::stages::{
    Build, BuildOptions, Decide, DecideOptions, Decompress, DecompressOptions, FindRings,
};
use pollux_pipelines::{Batch, Moment, Stage, StageEnv, StageExt};
use pollux_pmd::{Balance, Cause, Ledger, Tally};
use proptest::prelude::*;

/// Disturbance of a frame.
#[derive(Clone, Debug)]
enum Fault {
    None,
    Lost,
    Twice(u64),
    Delayed(u64),
    Truncated(prop::sample::Index),
    Longer(usize),
    Version(u8),
    Corrupt(prop::sample::Index, u8),
    Random(Vec<u8>),
    UnknownBoard(u8),
    UnknownDetector(u8),
    Empty,
}

fn fault() -> impl Strategy<Value = Fault> {
    use Fault::{
        Corrupt, Delayed, Empty, Longer, Lost, None, Random, Truncated, Twice, UnknownBoard,
        UnknownDetector, Version,
    };
    prop_oneof![
        20 => Just(None),
        1 => Just(Lost),
        1 => (0u64..1000).prop_map(Twice),
        2 => (1u64..1000).prop_map(Delayed),
        1 => any::<prop::sample::Index>().prop_map(Truncated),
        1 => prop_oneof![1usize..10, 1500usize..9000].prop_map(Longer),
        1 => any::<u8>().prop_map(Version),
        1 => any::<(prop::sample::Index, u8)>().prop_map(|(at, to)| Corrupt(at, to)),
        1 => proptest::collection::vec(any::<u8>(), 0..300).prop_map(Random),
        1 => (BOARDS..=255).prop_map(UnknownBoard),
        1 => any::<u8>().prop_map(UnknownDetector),
        1 => Just(Empty),
    ]
}

/// The payloads that arrive, with their times in us; all boards send frame `n` at 20 n.
fn arrivals(faults: &[Fault]) -> Vec<(u64, Vec<u8>)> {
    let mut arrivals = Vec::new();
    for (i, fault) in faults.iter().enumerate() {
        let (board, n) = (
            (i % usize::from(BOARDS)) as u8,
            (i / usize::from(BOARDS)) as u64,
        );
        let (mut at, sequence, shots) = (10 + 20 * n, n as u32, shots(board, n));
        let mut payload = container(board, sequence, &shots);
        match fault {
            Fault::None => {}
            Fault::Lost => continue,
            Fault::Twice(by) => arrivals.push((at + by, payload.clone())),
            Fault::Delayed(by) => at += by,
            Fault::Truncated(to) => payload.truncate(to.index(payload.len())),
            Fault::Longer(by) => payload.resize(payload.len() + by, 0x55),
            Fault::Version(version) => payload[4] = *version,
            Fault::Corrupt(place, to) => {
                let place = place.index(payload.len());
                payload[place] = *to;
            }
            Fault::Random(bytes) => payload.clone_from(bytes),
            Fault::UnknownBoard(board) => payload = container(*board, sequence, &shots),
            Fault::UnknownDetector(detector) => {
                let writer = HitsWriter::new(vec![0; MAX_FRAME], *detector, board, sequence);
                let (bytes, len) = writer.unwrap().finish();
                payload = bytes[..len].to_vec();
            }
            Fault::Empty => payload = container(board, sequence, &[]),
        }
        arrivals.push((at, payload));
    }
    arrivals.sort_by_key(|&(at, _)| at);
    arrivals
}

/// A chain under test.
trait Chain {
    fn process(&mut self, batch: &mut Batch<Frame>, out: &mut Vec<Decision>);
    fn finish(&mut self, out: &mut Vec<Decision>);
}

impl Chain for pollux_pipelines::Pipeline<Frame, Decision> {
    fn process(&mut self, batch: &mut Batch<Frame>, out: &mut Vec<Decision>) {
        self.process(batch, out);
    }

    fn finish(&mut self, out: &mut Vec<Decision>) {
        self.finish(out);
    }
}

/// A chain with static types.
struct Compiled<S>(S);

impl<S: Stage<In = Frame, Out = Decision>> Chain for Compiled<S> {
    fn process(&mut self, batch: &mut Batch<Frame>, out: &mut Vec<Decision>) {
        self.0.process(batch, out);
    }

    fn finish(&mut self, out: &mut Vec<Decision>) {
        self.0.finish(out);
    }
}

fn from_registry(env: &mut StageEnv) -> Box<dyn Chain> {
    let toml = r#"
        stage = [
            { name = "decompress" },
            { name = "build", deadline_us = 100, max_open = 64 },
            { name = "rings" },
            { name = "decide", rule = [{ name = "small", radius_mm = [80, 150] }] },
        ]"#;
    let mut config: toml::Table = toml.parse().unwrap();
    let tables: Vec<toml::Table> = config.remove("stage").unwrap().try_into().unwrap();
    Box::new(
        stage_registry()
            .pipeline::<Frame, Decision>(&tables, env)
            .unwrap(),
    )
}

fn compiled(env: &mut StageEnv) -> Box<dyn Chain> {
    let build = BuildOptions {
        deadline_us: 100,
        max_open: 64,
        ..BuildOptions::default()
    };
    let mut decide = DecideOptions::default();
    decide.rules[0].radius_mm = [80.0, 150.0];
    Box::new(Compiled(
        Decompress::new(&DecompressOptions::default(), env)
            .unwrap()
            .then(Build::new(&build, env).unwrap())
            .then(FindRings::new(FinderConfig::default()).unwrap())
            .then(Decide::new(&decide, env).unwrap()),
    ))
}

/// Events of no hit, of one, of two, and of 2000 by eight boards, of which 500 fit, with normal
/// ones in between.
#[test]
fn events_of_few_hits_and_of_far_too_many_pass() {
    const BOARDS: u8 = 8;
    let time = |n: u64| 1000 + 40 * n;
    let hits = |board: u8, n: u64| -> Vec<Hit> {
        let all = |count: u16| {
            // Each hit once, as in a container.
            let mut pms: Vec<_> = (0..count)
                .map(|i| (7 * i + u16::from(board)) % 1952)
                .collect();
            pms.sort_unstable();
            pms.into_iter().map(|pm| Hit { pm, fine: 50 }).collect()
        };
        match n % 8 {
            1 => all(0),
            3 => all((board == 5).into()),
            5 => all((board == 2 || board == 6).into()),
            7 => all(250),
            _ => event(time(n))
                .into_iter()
                .filter(|hit| board_of(hit.pm, BOARDS) == board)
                .collect(),
        }
    };
    let frames = (0..400).flat_map(|n| (0..BOARDS).map(move |board| (n, board)));
    let payloads: Vec<_> = frames
        .map(|(n, board)| {
            (
                10 + n,
                container(board, n as u32, &[(time(n), hits(board, n))]),
            )
        })
        .collect();
    for make in [from_registry as fn(&mut StageEnv) -> _, compiled] {
        let outcome = run(make, usize::from(BOARDS), &payloads, 32, 2048);
        assert_eq!(outcome.balance.delivered, 400 * u64::from(BOARDS));
        outcome.ledger.check().unwrap();
        assert_eq!(outcome.decisions.len(), 400);
        for (n, decision) in outcome.decisions.iter().enumerate() {
            // Of the events with too many hits some hits are left out.
            let head = decision.head();
            assert_eq!((head.complete, head.truncated), (n % 8 != 7, n % 8 == 7));
            let (hits, rings) = (decision.hits().len(), decision.rings().len());
            match n % 8 {
                1 => assert_eq!((hits, rings), (0, 0)),
                3 => assert_eq!((hits, rings), (1, 0)),
                5 => assert_eq!((hits, rings), (2, 0)),
                7 => assert_eq!(hits, 500),
                _ => assert_eq!((hits, rings), (event(time(n as u64)).len(), 1)),
            }
        }
        // Of each of them the fragments of six boards.
        assert_eq!(l0(&outcome.env).stats.events.overfull.get(), 50 * 6);
    }
}

/// Result of a run.
struct Outcome {
    decisions: Vec<Decision>,
    /// The bytes of the decisions' records.
    records: Vec<u8>,
    /// The ledger, including the receiving side.
    ledger: Ledger,
    balance: Balance,
    env: StageEnv,
}

/// Processes payloads with a chain, `burst` frames at a time, in buffers with a data room of `room`
/// bytes.
fn run(
    make: fn(&mut StageEnv) -> Box<dyn Chain>,
    boards: usize,
    payloads: &[(u64, Vec<u8>)],
    burst: usize,
    room: usize,
) -> Outcome {
    const HEADERS: usize = 42;
    const CACHE: usize = 64;
    // The largest burst and the cache: memory for more would be most of what the test takes.
    let segments = |(_, payload): &(u64, Vec<u8>)| (HEADERS + payload.len()).div_ceil(room);
    let bursts = payloads.chunks(burst);
    let largest = bursts.map(|frames| frames.iter().map(segments).sum::<usize>());
    let buffers = 2 * CACHE + largest.max().unwrap_or(0);
    let mut env = env(boards);
    let mut chain = make(&mut env);
    let pool = pool(buffers, room);
    let mut cache = pool.cache(CACHE).unwrap();
    let mut rx = Tally::new();
    let (mut batch, mut decisions) = (Batch::with_capacity(burst), Vec::new());
    for frames in payloads.chunks(burst) {
        for (at, payload) in frames {
            rx.count_from_wire(1, (HEADERS + payload.len()) as u64);
            batch
                .push(frame(&mut cache, payload, HEADERS, *at))
                .unwrap();
        }
        chain.process(&mut batch, &mut decisions);
        batch.drain().for_each(|frame| cache.free(frame.mbuf));
    }
    chain.finish(&mut decisions);
    drop(cache);
    assert_eq!(pool.available(), buffers, "every buffer is back");

    let mut records = Vec::new();
    for (n, decision) in decisions.iter().enumerate() {
        records.extend(L0Record::of(decision).to_event(n as u32).to_bytes());
    }
    let mut ledger = env.ledger.clone();
    ledger.add("rx", rx.view());
    let balance = ledger.balance();
    Outcome {
        decisions,
        records,
        ledger,
        balance,
        env,
    }
}

#[test]
fn without_faults_every_event_is_complete_and_every_ring_is_found() {
    let payloads = arrivals(&vec![Fault::None; 400]);
    let outcome = run(from_registry, usize::from(BOARDS), &payloads, 32, 2048);
    assert_eq!(outcome.balance.delivered, 400);
    outcome.ledger.check().unwrap();
    assert_eq!(outcome.decisions.len(), 500);
    for (n, decision) in outcome.decisions.iter().enumerate() {
        let head = decision.head();
        assert_eq!(head.timestamp, 1000 + 40 * n as u64);
        assert!(head.complete);
        assert_eq!(usize::from(head.hits), event(head.timestamp).len());
        assert_eq!(decision.hits().len(), usize::from(head.hits));
        let r = 110.0 + (head.timestamp % 70) as f32;
        let ring = &decision.rings()[0];
        assert!((ring.r - r).abs() < 10.0, "{ring:?} at {r}");
        assert_eq!(decision.verdict().accepted(), ring.r <= 150.0);
    }
    let events = &l0(&outcome.env).stats.events;
    assert_eq!(events.accepted.get() + events.rejected.get(), 500);
    assert_eq!(events.rings.get(), 500);
}

#[test]
fn a_flood_of_nonsense_changes_nothing_for_the_others() {
    let good = arrivals(&vec![Fault::None; 400]);
    let mut flooded = Vec::new();
    for (n, (at, payload)) in good.iter().enumerate() {
        flooded.push((*at, vec![n as u8; n]));
        flooded.push((*at, payload.clone()));
        flooded.push((*at, container(100, n as u32, &[])));
    }
    let (good, flooded) = (
        run(compiled, usize::from(BOARDS), &good, 32, 2048),
        run(compiled, usize::from(BOARDS), &flooded, 32, 2048),
    );
    assert_eq!(good.records, flooded.records);
    flooded.ledger.check().unwrap();
    assert_eq!(flooded.balance.dropped_for(Cause::Malformed), 400);
    assert_eq!(flooded.balance.dropped_for(Cause::Unsupported), 400);
}

#[test]
fn a_source_that_stops_leaves_events_without_it() {
    let stops = |i: usize| {
        if i % 4 == 2 && i >= 200 {
            Fault::Lost
        } else {
            Fault::None
        }
    };
    let payloads = arrivals(&(0..400).map(stops).collect::<Vec<_>>());
    let outcome = run(from_registry, usize::from(BOARDS), &payloads, 32, 2048);
    outcome.ledger.check().unwrap();
    assert_eq!(
        (outcome.balance.delivered, outcome.balance.dropped_total()),
        (350, 0)
    );
    let (events, sources) = (
        &l0(&outcome.env).stats.events,
        &l0(&outcome.env).stats.sources,
    );
    assert_eq!((events.complete.get(), events.incomplete.get()), (250, 250));
    assert_eq!(sources[2].absent.get(), 250);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_the_ledger_balances_and_bursts_do_not_matter(
        faults in proptest::collection::vec(fault(), 1..400),
        bursts in proptest::collection::vec(1usize..100, 2),
        rooms in proptest::collection::vec(64usize..2048, 2),
    ) {
        let payloads = arrivals(&faults);
        let outcome = run(from_registry, usize::from(BOARDS), &payloads, 1, 2048);
        outcome.ledger.check().map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(outcome.balance.from_wire, payloads.len() as u64);
        let (events, sources) = (&l0(&outcome.env).stats.events, &l0(&outcome.env).stats.sources);
        prop_assert_eq!(events.built.get(), outcome.decisions.len() as u64);
        prop_assert_eq!(events.built.get(), events.accepted.get() + events.rejected.get());
        let late: u64 = sources.iter().map(|source| source.late.get()).sum();
        prop_assert_eq!(late, outcome.balance.dropped_for(Cause::Late));

        for (make, burst, room) in [
            (from_registry as fn(&mut StageEnv) -> Box<dyn Chain>, bursts[0], rooms[0]),
            (compiled, bursts[1], rooms[1]),
        ] {
            let other = run(make, usize::from(BOARDS), &payloads, burst, room);
            prop_assert_eq!(&other.records, &outcome.records);
            let mut balance = other.balance;
            balance.bytes = outcome.balance.bytes;
            prop_assert_eq!(balance, outcome.balance);
        }
    }
}

#[test]
fn time_alone_releases_what_is_held() {
    let mut env = env(usize::from(BOARDS));
    let mut chain = Decompress::new(&DecompressOptions::default(), &mut env)
        .unwrap()
        .then(Build::new(&BuildOptions::default(), &mut env).unwrap())
        .then(FindRings::new(FinderConfig::default()).unwrap())
        .then(Decide::new(&DecideOptions::default(), &mut env).unwrap());
    let mut cache = pool(16, 2048).cache(8).unwrap();
    let (mut batch, mut out) = (Batch::default(), Vec::<Decision>::new());
    batch
        .push(frame(&mut cache, &container(3, 0, &shots(3, 0)), 42, 10))
        .unwrap();
    chain.process(&mut batch, &mut out);
    chain.tick(Moment(309_999), &mut out);
    assert!(out.is_empty());
    chain.tick(Moment(310_000), &mut out);
    let times: Vec<_> = out
        .iter()
        .map(|decision| decision.head().timestamp)
        .collect();
    assert_eq!(times, [1000, 1040, 1080, 1120, 1160]);
}
