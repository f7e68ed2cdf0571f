//! A stage on several loops gives the same results as on one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pollux_mempool::time::Ns;
use pollux_pipelines::fan_out::{FanOut, FanOutOptions, Worker, WorkerCounts};
use pollux_pipelines::{Batch, Moment, Output, Stage};
use pollux_pmd_testkit::guard::listen;
use pollux_pmd_testkit::threads::Ends;
use proptest::prelude::*;

/// Says of each number what it is, some of them slowly.
#[derive(Clone)]
struct Slow(fn(u64));

impl Stage for Slow {
    type In = u64;
    type Out = (u64, u64);

    fn process(&mut self, batch: &mut Batch<u64>, out: &mut impl Output<(u64, u64)>) {
        for n in batch.drain() {
            (self.0)(n);
            out.push((n, n * n));
        }
    }
}

fn nothing(_: u64) {}

fn fan_out(workers: usize, work: fn(u64)) -> (FanOut<Slow>, Vec<Worker>) {
    let patience = Ns(60_000_000_000);
    patient(workers, work, patience)
}

/// The same, where the loop waits so long for a job.
fn patient(workers: usize, work: fn(u64), patience: Ns) -> (FanOut<Slow>, Vec<Worker>) {
    let options = FanOutOptions {
        workers,
        shares_cpus: true,
        patience,
    };
    FanOut::new(Slow(work), vec![Slow(work); workers], &options).unwrap()
}

/// Works until `stop`; how many jobs there were.
fn run(mut worker: Worker, stop: &AtomicBool) -> u64 {
    while !stop.load(Ordering::Relaxed) {
        if !worker.poll() {
            thread::yield_now();
        }
    }
    worker.times().percentiles().count
}

/// Feeds numbers in batches of so many, with a tick after each, then ends the input.
fn feed(stage: &mut FanOut<Slow>, count: u64, size: usize) -> Vec<(u64, u64)> {
    let (mut batch, mut out) = (
        Batch::with_capacity(size),
        Vec::with_capacity(count as usize),
    );
    for n in 0..count {
        batch.push(n).unwrap();
        if batch.is_full() {
            stage.process(&mut batch, &mut out);
            stage.tick(Moment(n), &mut out);
        }
    }
    stage.process(&mut batch, &mut out);
    stage.finish(&mut out);
    out
}

fn expected(count: u64) -> Vec<(u64, u64)> {
    (0..count).map(|n| (n, n * n)).collect()
}

#[test]
fn results_leave_in_the_order_of_their_items() {
    let uneven = |n: u64| {
        if n.is_multiple_of(37) {
            thread::sleep(Duration::from_micros(n % 300));
        }
    };
    for (workers, size) in [(0, 8), (1, 1), (2, 8), (3, 100)] {
        let (mut stage, pool) = fan_out(workers, uneven);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let pool: Vec<_> = pool
                .into_iter()
                .map(|worker| scope.spawn(|| run(worker, &stop)))
                .collect();
            let ends = Ends(&stop);
            assert!(
                feed(&mut stage, 3000, size) == expected(3000),
                "{workers} workers"
            );
            // Again: the end of an input is no end of the loops.
            assert!(feed(&mut stage, 50, size) == expected(50));
            drop(ends);
            let jobs: u64 = pool.into_iter().map(|worker| worker.join().unwrap()).sum();
            assert!(jobs > 0 || workers == 0);
        });
    }
}

#[test]
fn the_loop_works_itself_while_no_worker_does_and_waits_when_all_jobs_are_out() {
    let (mut stage, mut pool) = fan_out(1, nothing);
    let (mut batch, mut out) = (Batch::with_capacity(16), Vec::new());
    let mut fed = 0;
    // Four jobs wait for the worker, and five are done by the loop itself, behind them.
    for _ in 0..9 {
        (0..16).for_each(|n| batch.push(fed + n).unwrap());
        fed += 16;
        stage.process(&mut batch, &mut out);
        assert!(out.is_empty(), "nothing overtakes the first job");
    }
    thread::scope(|scope| {
        let mut worker = pool.remove(0);
        let working = scope.spawn(move || {
            thread::sleep(Duration::from_millis(20));
            // All that waited, and what came while it worked.
            while !worker.poll() {}
            while worker.poll() {}
            worker
        });
        (0..16).for_each(|n| batch.push(fed + n).unwrap());
        fed += 16;
        stage.process(&mut batch, &mut out);
        assert!(!out.is_empty(), "it has waited for the first job");
        let mut worker = working.join().unwrap();
        while worker.poll() {}
        stage.tick(Moment(0), &mut out);
        while worker.poll() {}
        stage.finish(&mut out);
    });
    assert_eq!(out, expected(fed));
}

#[test]
fn a_tick_hands_out_what_fills_no_job() {
    let (mut stage, mut pool) = fan_out(1, nothing);
    let (mut batch, mut out) = (Batch::with_capacity(3), Vec::new());
    (0..3).for_each(|n| batch.push(n).unwrap());
    stage.process(&mut batch, &mut out);
    assert!(!pool[0].poll(), "more may come");
    stage.tick(Moment(0), &mut out);
    assert!(pool[0].poll() && !pool[0].poll());
    assert!(out.is_empty());
    stage.tick(Moment(0), &mut out);
    assert_eq!(out, expected(3));
}

/// Items that left without a result, by what the loop counts of its workers.
fn undecided(counts: &[Arc<WorkerCounts>]) -> u64 {
    counts.iter().map(|counts| counts.undecided.get()).sum()
}

fn counts(pool: &[Worker]) -> Vec<Arc<WorkerCounts>> {
    pool.iter().map(Worker::counts).collect()
}

/// Feeds so many numbers, from `first`, sixteen at a time.
fn give(stage: &mut FanOut<Slow>, first: u64, count: u64, out: &mut Vec<(u64, u64)>) {
    let mut batch = Batch::with_capacity(16);
    for n in first..first + count {
        batch.push(n).unwrap();
        if batch.is_full() {
            stage.process(&mut batch, out);
        }
    }
    stage.process(&mut batch, out);
}

/// Results are in order, none is there twice, and what has none is counted.
#[track_caller]
fn assert_balanced(out: &[(u64, u64)], fed: u64, counts: &[Arc<WorkerCounts>]) {
    assert!(out.windows(2).all(|two| two[0].0 < two[1].0));
    assert!(out.iter().all(|&(n, square)| n < fed && square == n * n));
    assert_eq!(out.len() as u64 + undecided(counts), fed);
}

#[test]
fn a_worker_that_ends_holds_nothing_up() {
    let (mut stage, mut pool) = fan_out(2, nothing);
    let counts = counts(&pool);
    let mut out = Vec::new();
    give(&mut stage, 0, 16, &mut out);
    // The first has done its job, the second leaves with one.
    give(&mut stage, 16, 16, &mut out);
    assert!(pool[0].poll());
    assert!(!counts[0].is_gone());
    pool.clear();
    give(&mut stage, 32, 288, &mut out);
    stage.finish(&mut out);
    let all = expected(320);
    assert_eq!((&out[..16], &out[16..]), (&all[..16], &all[32..]));
    assert_eq!([&counts[0], &counts[1]].map(|c| c.undecided.get()), [0, 16]);
    assert!(counts.iter().all(|c| c.is_gone() && c.stalls.get() == 0));
    let again = feed(&mut stage, 100, 16);
    assert_eq!(again, expected(100), "the loop does all by itself");
    assert_balanced(&out, 320, &counts);
}

/// Also what fills no job leaves then, at the next tick.
#[test]
fn a_tick_needs_no_worker() {
    let (mut stage, mut pool) = fan_out(1, nothing);
    let mut out = Vec::new();
    pool.clear();
    give(&mut stage, 0, 3, &mut out);
    stage.tick(Moment(0), &mut out);
    assert_eq!(out, expected(3));
}

#[test]
fn a_worker_that_panics_takes_its_job_along_and_no_other_s() {
    let work = |n: u64| assert_ne!(n, 20, "as the test wants it");
    // Only on the thread of the worker: the loop is not to meet that number.
    let (mut stage, pool) = fan_out(1, work);
    let counts = counts(&pool);
    let mut out = Vec::new();
    give(&mut stage, 0, 48, &mut out);
    let mut pool = pool.into_iter();
    let mut worker = pool.next().unwrap();
    let ended = thread::spawn(move || while worker.poll() {}).join();
    assert!(ended.is_err());
    give(&mut stage, 48, 480, &mut out);
    stage.finish(&mut out);
    let all = expected(528);
    assert_eq!(out[..16], all[..16]);
    assert_eq!(out[16..], all[48..], "the job behind it is lost with it");
    assert_balanced(&out, 528, &counts);
    assert!(counts[0].is_gone());
}

#[test]
fn a_worker_that_stops_for_ever_costs_one_wait() {
    let (mut stage, pool) = patient(1, nothing, Ns(2_000_000));
    let counts = counts(&pool);
    let mut out = Vec::new();
    give(&mut stage, 0, 16 * 400, &mut out);
    stage.finish(&mut out);
    assert_balanced(&out, 16 * 400, &counts);
    let c = &counts[0];
    // Its ring was full when it was given up.
    assert_eq!((c.undecided.get(), c.stalls.get()), (4 * 16, 1));
    assert!(c.is_stalled() && !c.is_gone());
    drop(pool);
    let again = feed(&mut stage, 100, 16);
    assert_eq!(again, expected(100));
    assert!(c.is_gone() && !c.is_stalled());
    assert_eq!(undecided(&counts), 64, "counted once");
}

#[test]
fn ticks_give_a_job_up_where_nothing_else_comes() {
    let (mut stage, pool) = patient(1, nothing, Ns(2_000_000));
    let counts = counts(&pool);
    let mut out = Vec::new();
    give(&mut stage, 0, 16, &mut out);
    for round in 0.. {
        assert!(round < 1_000_000, "it waits for ever");
        stage.tick(Moment(0), &mut out);
        if counts[0].is_stalled() {
            break;
        }
        thread::sleep(Duration::from_micros(10));
    }
    assert_balanced(&out, 16, &counts);
}

/// Time in which the loop did not look is not the worker's.
#[test]
fn a_loop_that_stood_still_itself_waits_on() {
    let (mut stage, mut pool) = patient(1, nothing, Ns(1_000_000_000));
    let counts = counts(&pool);
    let mut out = Vec::new();
    give(&mut stage, 0, 16, &mut out);
    thread::sleep(Duration::from_millis(1100));
    stage.tick(Moment(0), &mut out);
    assert_eq!(undecided(&counts), 0);
    assert!(pool[0].poll());
    stage.tick(Moment(0), &mut out);
    assert_eq!(out, expected(16));
}

#[test]
fn what_comes_back_late_is_dropped_and_its_worker_used_again() {
    let (mut stage, mut pool) = patient(1, nothing, Ns(2_000_000));
    let counts = counts(&pool);
    let mut out = Vec::new();
    let (mut fed, mut jobs) = (0, 0);
    for round in 1..=5 {
        give(&mut stage, fed, 16 * 20, &mut out);
        stage.finish(&mut out);
        fed += 16 * 20;
        assert!(counts[0].is_stalled());
        assert_balanced(&out, fed, &counts);
        assert_eq!(counts[0].stalls.get(), round);
        // It comes back, with results that the loop has given up.
        while pool[0].poll() {
            jobs += 1;
        }
        stage.tick(Moment(0), &mut out);
        assert!(!counts[0].is_stalled());
        assert_balanced(&out, fed, &counts);
        // It has its turn at the next job.
        give(&mut stage, fed, 16, &mut out);
        fed += 16;
        assert!(pool[0].poll());
        jobs += 1;
        stage.tick(Moment(0), &mut out);
        assert_eq!(out.last().unwrap().0, fed - 1);
        assert_balanced(&out, fed, &counts);
    }
    assert_eq!(jobs, pool[0].times().percentiles().count);
}

/// What a worker does in a round of the loop.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Nothing,
    Job,
    All,
    Ends,
    /// The loop has no patience left.
    Late,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Whatever workers do, each item has a result once, in order, or is counted.
    #[test]
    fn items_are_worked_on_once_or_counted(
        workers in 1..4_usize,
        rounds in prop::collection::vec(
            (
                0..40_u64,
                any::<bool>(),
                prop::collection::vec(
                    prop_oneof![
                        4 => Just(Deed::Nothing),
                        4 => Just(Deed::Job),
                        3 => Just(Deed::All),
                        1 => Just(Deed::Ends),
                        2 => Just(Deed::Late),
                    ],
                    3,
                ),
            ),
            1..40,
        ),
    ) {
        let (mut stage, pool) = patient(workers, nothing, Ns(20_000));
        let counts = counts(&pool);
        let mut pool: Vec<_> = pool.into_iter().map(Some).collect();
        let (mut out, mut fed) = (Vec::new(), 0);
        for (count, ticks, deeds) in rounds {
            give(&mut stage, fed, count, &mut out);
            fed += count;
            for (worker, deed) in pool.iter_mut().zip(deeds) {
                match deed {
                    Deed::Nothing => {}
                    Deed::Job => drop(worker.as_mut().map(Worker::poll)),
                    Deed::All => while worker.as_mut().is_some_and(Worker::poll) {},
                    Deed::Ends => *worker = None,
                    Deed::Late => for _ in 0..5 {
                        thread::sleep(Duration::from_micros(10));
                        stage.tick(Moment(0), &mut out);
                    },
                }
            }
            if ticks {
                stage.tick(Moment(0), &mut out);
            }
        }
        stage.finish(&mut out);
        assert_balanced(&out, fed, &counts);
        // The workers that are left bring everything back.
        for worker in pool.iter_mut().flatten() {
            while worker.poll() {}
        }
        stage.tick(Moment(0), &mut out);
        prop_assert!(counts.iter().all(|c| !c.is_stalled()));
        assert_balanced(&out, fed, &counts);
    }
}

#[test]
fn neither_side_does_anything_but_work() {
    let (mut stage, mut pool) = fan_out(1, nothing);
    let (mut batch, mut out) = (Batch::with_capacity(8), Vec::with_capacity(10_000));
    let ((), noise) = listen(|ear| {
        ear.during(|| {
            for n in 0..5000 {
                batch.push(n).unwrap();
                if batch.is_full() {
                    stage.process(&mut batch, &mut out);
                    // Now and then it is late.
                    while n % 7 != 0 && pool[0].poll() {}
                }
            }
            stage.tick(Moment(0), &mut out);
            while pool[0].poll() {}
            stage.tick(Moment(0), &mut out);
        });
    });
    noise.assert_none();
    assert_eq!(out, expected(5000));
}

/// Neither does the loop when it gives jobs up, nor when they come back.
#[test]
fn giving_up_is_nothing_but_work() {
    let options = FanOutOptions {
        workers: 1,
        // It would give way while it waits.
        shares_cpus: false,
        patience: Ns(100_000),
    };
    let (mut stage, mut pool) = FanOut::new(Slow(nothing), vec![Slow(nothing)], &options).unwrap();
    let counts = counts(&pool);
    let mut batch = Batch::with_capacity(16);
    let mut out = Vec::with_capacity(10_000);
    let ((), noise) = listen(|ear| {
        ear.during(|| {
            for n in 0..3200 {
                batch.push(n).unwrap();
                if batch.is_full() {
                    stage.process(&mut batch, &mut out);
                }
                if n == 1600 {
                    while pool[0].poll() {}
                }
            }
            stage.finish(&mut out);
        });
    });
    noise.assert_none();
    assert_eq!(counts[0].stalls.get(), 2);
    assert_balanced(&out, 3200, &counts);
}
