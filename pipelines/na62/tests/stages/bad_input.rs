//! Boards that send invalid data. The others are not affected, each frame is counted once, and
//! events are complete again when the invalid data ends. Both the builder of fragments and the
//! merger of hits are tested.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{BOARDS, Shot, container, env, frame, l0, pool, shots};
use pollux_na62::l0::{Event, Frame, L0Stats};
use pollux_na62::rich::geometry::board_of;
use pollux_na62::stage_registry;
use pollux_pipelines::{Batch, Moment, Pipeline};
use pollux_pmd::{Balance, Cause, Count};

/// Number of frames of each board. One board sends invalid data from `FROM` to `UNTIL`, and its
/// data is checked again from `AGAIN`.
const ROUNDS: u64 = 500;
const FROM: u64 = 100;
const UNTIL: u64 = 300;
/// Some deadlines later.
const AGAIN: u64 = 420;
/// Time between frames in us: that of five events, 40 slots apart.
const ROUND_US: u64 = 5;
const ROUND_SLOTS: u64 = 200;

/// The board with the invalid data.
const BAD: u8 = 3;

const BUILDERS: [&str; 2] = ["build", "merge"];

/// Result of a run.
struct Outcome {
    /// By time stamp: the sources that contributed, and the hits of each board.
    events: BTreeMap<u64, (u16, [usize; BOARDS as usize])>,
    balance: Balance,
    stats: Arc<L0Stats>,
}

/// Sends what `feed` returns for each round and board through a chain with this builder.
fn run(builder: &str, feed: impl Fn(u64, u8) -> Vec<Vec<u8>>) -> Outcome {
    let table = format!(r#"stage = [{{ name = "decompress" }}, {{ name = "{builder}" }}]"#);
    let mut table: toml::Table = table.parse().unwrap();
    let stages: Vec<toml::Table> = table.remove("stage").unwrap().try_into().unwrap();
    let mut env = env(BOARDS.into());
    let mut pipeline: Pipeline<Frame, Event> =
        stage_registry().pipeline(&stages, &mut env).unwrap();
    let frames = pool(64, 2048);
    let mut cache = frames.cache(16).unwrap();
    let (mut batch, mut out, mut sent) = (Batch::with_capacity(1), Vec::new(), 0);
    let mut events = BTreeMap::new();
    for n in 0..ROUNDS {
        let now = 1000 + n * ROUND_US;
        for payload in (0..BOARDS).flat_map(|board| feed(n, board)) {
            batch.push(frame(&mut cache, &payload, 42, now)).unwrap();
            pipeline.process(&mut batch, &mut out);
            batch.clear();
            sent += 1;
        }
        pipeline.tick(Moment(now * 1000), &mut out);
        if n + 1 == ROUNDS {
            pipeline.finish(&mut out);
        }
        for event in out.drain(..) {
            let mut hits = [0; BOARDS as usize];
            for hit in event.hits() {
                hits[usize::from(board_of(hit.pm, BOARDS))] += 1;
            }
            let head = event.head();
            let twice = events.insert(head.timestamp, (head.sources, hits));
            assert_eq!(
                twice, None,
                "{builder}: an event came twice at {}",
                head.timestamp
            );
        }
    }
    drop((batch, cache));
    assert_eq!(frames.available(), frames.buffers());
    let events_pool = l0(&env).events.as_ref().unwrap();
    drop(pipeline);
    assert_eq!(events_pool.available(), events_pool.buffers());
    let balance = env.ledger.balance();
    assert_eq!(
        balance.delivered + balance.dropped_total(),
        sent,
        "{balance:?}"
    );
    Outcome {
        events,
        balance,
        stats: Arc::clone(&l0(&env).stats),
    }
}

/// The data of a board in round `n`, with its time stamps mapped by `time`.
fn say(board: u8, n: u64, time: impl Fn(u64) -> u64) -> Vec<Shot> {
    let shots = shots(board, n).into_iter();
    shots
        .map(|(timestamp, hits)| (time(timestamp), hits))
        .collect()
}

fn honest(board: u8, n: u64) -> Vec<Vec<u8>> {
    vec![container(board, n as u32, &say(board, n, |time| time))]
}

fn is_bad(board: u8, n: u64) -> bool {
    board == BAD && (FROM..UNTIL).contains(&n)
}

/// Checks that all events of these boards are present in these rounds, with their hits, which have
/// the time `came`.
fn check(
    outcome: &Outcome,
    rounds: std::ops::Range<u64>,
    boards: &[u8],
    time: impl Fn(u64) -> u64,
) {
    for n in rounds {
        for &board in boards {
            for (timestamp, hits) in shots(board, n) {
                let event = outcome.events.get(&time(timestamp));
                let (sources, counts) = event.copied().unwrap_or_default();
                // A window without any hit is not an event.
                assert!(
                    sources >> board & 1 == 1 || event.is_none() && hits.is_empty(),
                    "{n}"
                );
                assert_eq!(counts[usize::from(board)], hits.len(), "{n}, board {board}");
            }
        }
    }
}

const OTHERS: [u8; 3] = [0, 1, 2];
const ALL: [u8; 4] = [0, 1, 2, 3];

/// A board whose time stamps are mapped by `time` in the bad period.
fn bad_times(time: impl Fn(u64) -> u64) {
    for builder in BUILDERS {
        let outcome = run(builder, |n, board| {
            if is_bad(board, n) {
                // Time stamps in a container ascend, without a gap of more than 0.41 ms.
                let shots = say(board, n, &time);
                let sequence = n as u32;
                let ascend = shots.is_sorted_by(|a, b| a.0 < b.0);
                let whole = ascend && shots[4].0 - shots[0].0 < 1000;
                let shots = if whole { &shots[..] } else { &shots[..1] };
                vec![container(board, sequence, shots)]
            } else {
                honest(board, n)
            }
        });
        check(&outcome, 0..ROUNDS, &OTHERS, |time| time);
        check(&outcome, 0..FROM - 10, &ALL, |time| time);
        check(&outcome, AGAIN..ROUNDS, &ALL, |time| time);
        let causes = [Cause::Late, Cause::OutOfWindow, Cause::ClockSkew];
        let refused = causes.map(|cause| outcome.balance.dropped_for(cause));
        assert!(
            refused.iter().sum::<u64>() > 100,
            "{builder}: {}",
            outcome.balance
        );
        assert!(outcome.stats.sources[usize::from(BAD)].absent.get() > 0);
    }
}

#[test]
fn time_stamps_that_run_backwards() {
    bad_times(|time| (2 * FROM * ROUND_SLOTS).saturating_sub(time));
}

#[test]
fn time_stamps_that_wrap() {
    bad_times(|time| time & 0x3FFF);
}

#[test]
fn time_stamps_that_jump_by_hours() {
    const HOURS: u64 = 5 * 3600 * 40_000_000;
    bad_times(|time| time + HOURS * (1 + time / ROUND_SLOTS % 3));
}

#[test]
fn all_boards_begin_anew() {
    for builder in BUILDERS {
        // Back to the beginning, and hours ahead from there.
        let time = |time: u64| match time / ROUND_SLOTS {
            0..FROM => time + (1 << 30),
            FROM..UNTIL => time,
            _ => time + (1 << 40),
        };
        let outcome = run(builder, |n, board| {
            vec![container(board, n as u32, &say(board, n, time))]
        });
        for rounds in [0..FROM - 10, FROM + 120..UNTIL - 10, AGAIN..ROUNDS] {
            check(&outcome, rounds, &ALL, time);
        }
    }
}

#[test]
fn a_board_that_repeats_old_packets() {
    for builder in BUILDERS {
        let outcome = run(builder, |n, board| {
            let mut payloads = honest(board, n);
            if is_bad(board, n) {
                payloads.extend(
                    [1, 3, 60]
                        .into_iter()
                        .flat_map(|ago| honest(board, n - ago)),
                );
            }
            payloads
        });
        check(&outcome, 0..ROUNDS, &ALL, |time| time);
        let again = 3 * (UNTIL - FROM);
        assert_eq!(
            outcome.balance.dropped_for(Cause::Duplicate),
            again,
            "{builder}"
        );
        assert_eq!(outcome.stats.events.incomplete.get(), 0, "{builder}");
    }
}

#[test]
fn two_boards_with_one_id() {
    for builder in BUILDERS {
        for ahead in [0, 7, 100_000] {
            let outcome = run(builder, |n, board| {
                let mut payloads = honest(board, n);
                if is_bad(board, n) {
                    payloads[0][6] = 2;
                    payloads[0][8..12].copy_from_slice(&(n as u32 + ahead).to_le_bytes());
                }
                payloads
            });
            check(&outcome, 0..ROUNDS, &[0, 1], |time| time);
            check(&outcome, 0..FROM - 10, &ALL, |time| time);
            check(&outcome, AGAIN..ROUNDS, &ALL, |time| time);
            let counts = &outcome.stats.sources;
            assert!(
                counts[usize::from(BAD)].absent.get() > 0,
                "{builder}, {ahead}"
            );
            // The sequence numbers of the frames show it.
            let seen = &counts[2];
            let seen =
                [&seen.duplicates, &seen.reordered, &seen.resyncs, &seen.gaps].map(Count::get);
            assert!(seen.iter().sum::<u64>() > 0, "{builder}, {ahead}");
        }
    }
}
