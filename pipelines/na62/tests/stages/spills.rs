//! Identical spills: sequence numbers and time stamps restart, so that frames look like duplicates.

use std::collections::BTreeMap;

use crate::common::{container, env, frame, hit, l0, pool};
use pollux_mempool::PoolCache;
use pollux_na62::l0::{Event, Frame};
use pollux_na62::stages::{Build, BuildOptions, Decompress, DecompressOptions};
use pollux_pipelines::{Batch, Moment, Stage, StageEnv, StageExt};
use pollux_pmd::Cause;
use pollux_pmd::stream::StreamId;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

const BOARDS: u8 = 4;
/// Slots between frames of a board: 100 us.
const STEP: u64 = 4000;
/// A frame of a board: its number, and its time of sending.
#[derive(Clone, Copy, Debug)]
struct Sent {
    board: u8,
    number: u32,
    at: u64,
}

/// So many spills of so many frames of each board, in an order of the boards, with so many
/// microseconds between them.
fn spills(count: u64, length: u32, order: &[u8], pause_us: u64) -> Vec<Sent> {
    let spill = u64::from(length) * STEP * 25 + pause_us * 1000;
    let number = |from: u64| (0..length).map(move |n| (n, from + u64::from(n) * STEP * 25));
    let frames = (0..count).flat_map(|n| number(n * spill));
    let turn = |(number, at): (u32, u64)| {
        let each = order.iter().enumerate();
        each.map(move |(place, &board)| Sent {
            board,
            number,
            at: at + 1000 * place as u64,
        })
    };
    frames.flat_map(turn).collect()
}

struct Rig<S> {
    chain: S,
    env: StageEnv,
    cache: PoolCache,
    now: u64,
}

fn rig() -> Rig<impl Stage<In = Frame, Out = Event>> {
    let mut env = env(BOARDS.into());
    let decompress = Decompress::new(&DecompressOptions::default(), &mut env).unwrap();
    // Each run has memory of its own for the events that are open, of which there are few.
    let options = BuildOptions {
        max_open: 512,
        ..BuildOptions::default()
    };
    let build = Build::new(&options, &mut env).unwrap();
    Rig {
        chain: decompress.then(build),
        env,
        cache: pool(64, 2048).cache(16).unwrap(),
        now: 0,
    }
}

impl<S: Stage<In = Frame, Out = Event>> Rig<S> {
    fn put(&mut self, sent: Sent, out: &mut Vec<Event>) {
        while self.now + 100_000 < sent.at {
            self.now += 100_000;
            self.chain.tick(Moment(self.now), out);
        }
        self.now = self.now.max(sent.at);
        let start = u64::from(sent.number) * STEP;
        let shots: Vec<_> = (0..4)
            .map(|n| (start + n * STEP / 4, vec![hit(u16::from(sent.board) * 100)]))
            .collect();
        let payload = container(sent.board, sent.number, &shots);
        let mut frame: Frame = frame(&mut self.cache, &payload, 42, 0);
        frame.stream = StreamId(sent.board.into());
        frame.at = Moment(self.now);
        let mut batch = Batch::with_capacity(1);
        batch.push(frame).unwrap();
        self.chain.process(&mut batch, out);
    }
}

/// The number of events with all boards.
fn run(sent: &[Sent]) -> (StageEnv, u64) {
    let (env, bursts) = run_bursts(sent);
    (env, bursts.values().sum())
}

/// The number of events with all boards in each burst.
fn run_bursts(sent: &[Sent]) -> (StageEnv, BTreeMap<u16, u64>) {
    let mut rig = rig();
    let mut out = Vec::new();
    let mut whole = BTreeMap::new();
    let mut count = |out: &mut Vec<Event>| {
        let heads = out.drain(..).map(|event| event.head());
        for head in heads.filter(|head| head.sources == (1 << BOARDS) - 1) {
            *whole.entry(head.burst).or_default() += 1;
        }
    };
    for &sent in sent {
        rig.put(sent, &mut out);
        count(&mut out);
    }
    for _ in 0..20 {
        rig.now += 100_000;
        rig.chain.tick(Moment(rig.now), &mut out);
    }
    rig.chain.finish(&mut out);
    count(&mut out);
    let balance = rig.env.ledger.balance();
    assert_eq!(
        balance.delivered + balance.dropped_total(),
        sent.len() as u64,
        "each frame has one fate"
    );
    (rig.env, whole)
}

#[test]
fn nothing_is_lost_of_spills_that_are_all_alike() {
    for length in [5, 40, 100, 1000, 2000] {
        for (order, pause) in [([0, 1, 2, 3], 10_000), ([3, 1, 0, 2], 0)] {
            let sent = spills(10, length, &order, pause);
            let (env, bursts) = run_bursts(&sent);
            assert_eq!(env.ledger.balance().dropped_total(), 0, "{length}");
            let expected = (1..=10).map(|burst| (burst, 4 * u64::from(length)));
            assert_eq!(bursts, expected.collect(), "{length}");
            assert_eq!(l0(&env).stats.events.burst.get(), 10, "{length}");
            for (source, counts) in l0(&env).stats.sources.iter().enumerate() {
                assert_eq!((counts.resyncs.get(), counts.spills.get()), (9, 9));
                assert_eq!(l0(&env).stats.faults(source), [""; 0], "{length}");
            }
        }
    }
}

/// One board loses the first or the last frames of spills, and frames are delayed by a few
/// positions.
#[test]
fn a_board_that_loses_frames_at_the_edge_of_a_spill_sends_no_copies() {
    for seed in 0..400 {
        let mut rng = SmallRng::seed_from_u64(seed);
        // Few of the longest: what may go wrong is at their edges.
        let length = match seed % 20 {
            0 => 1000,
            other => [5, 40, 100][other as usize % 3],
        };
        let mut order = [0, 1, 2, 3];
        order.shuffle(&mut rng);
        let board = rng.random_range(0..BOARDS);
        let most = if length == 5 { 1 } else { 8 };
        let (mut first, mut last) = (rng.random_range(0..=most), length);
        if rng.random() {
            (first, last) = (0, length - first);
        }
        let mut sent = spills(4, length, &order, rng.random_range(0..20_000));
        sent.retain(|one| one.board != board || (first..last).contains(&one.number));
        // No frame overtakes another of its board.
        let lag = rng.random_range(0..50) * 1000;
        let mut before = [0; BOARDS as usize];
        for one in &mut sent {
            let before = &mut before[usize::from(one.board)];
            one.at = (one.at + rng.random_range(0..=lag)).max(*before);
            *before = one.at;
        }
        sent.sort_by_key(|one| one.at);
        let (env, _) = run(&sent);
        let what = format!("{seed}: {length} {order:?} {board} {first}..{last}");
        let balance = env.ledger.balance();
        assert_eq!(balance.dropped_for(Cause::Duplicate), 0, "{what}");
        let dropped = balance.dropped_total();
        assert!(
            dropped <= 4,
            "{what}: {:?}",
            balance.drops().collect::<Vec<_>>()
        );
        for (source, counts) in l0(&env).stats.sources.iter().enumerate() {
            assert_eq!(counts.duplicates.get(), 0, "{what}");
            let named = l0(&env).stats.faults(source);
            assert!(
                source == usize::from(board) || named.is_empty(),
                "{source}: {named:?} {what}"
            );
        }
    }
}

/// Duplicates are detected as before, in each spill.
#[test]
fn copies_are_found_in_spills_that_are_all_alike() {
    for length in [5, 40, 100, 1000] {
        let sent = spills(10, length, &[0, 1, 2, 3], 10_000);
        let twice: Vec<_> = sent.iter().flat_map(|&one| [one, one]).collect();
        let (env, whole) = run(&twice);
        let balance = env.ledger.balance();
        assert_eq!(balance.dropped_for(Cause::Duplicate), sent.len() as u64);
        assert_eq!(balance.dropped_total(), sent.len() as u64);
        assert_eq!(whole, 40 * u64::from(length), "{length}");
    }
}

/// A board that alone repeats its last 50 frames is named, and the others lose nothing.
#[test]
fn a_board_that_repeats_itself_is_named() {
    for length in [50, 60, 200, 1000] {
        let mut sent = spills(1, length, &[0, 1, 2, 3], 0);
        let own: Vec<_> = sent.iter().filter(|one| one.board == 2).copied().collect();
        let end = sent.last().unwrap().at;
        let again = own[own.len() - 50..].iter().zip(1..);
        sent.extend(again.map(|(&one, n)| Sent {
            at: end + n * 1000,
            ..one
        }));
        let (env, whole) = run(&sent);
        assert_eq!(whole, 4 * u64::from(length), "{length}");
        for source in 0..usize::from(BOARDS) {
            let named = l0(&env).stats.faults(source);
            assert_eq!(
                !named.is_empty(),
                source == 2,
                "{source} {length}: {named:?}"
            );
        }
    }
}
