//! Stages that are spread over several loops give what they would give on one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pollux_pipelines::spread::{Spread, Worker};
use pollux_pipelines::{Batch, Moment, Sink, Stage};
use pollux_quiet::listen;

/// Says of each number what it is, some of them slowly.
#[derive(Clone)]
struct Slow(fn(u64));

impl Stage for Slow {
    type In = u64;
    type Out = (u64, u64);

    fn process(&mut self, batch: &mut Batch<u64>, out: &mut impl Sink<(u64, u64)>) {
        for n in batch.drain() {
            (self.0)(n);
            out.push((n, n * n));
        }
    }
}

fn nothing(_: u64) {}

fn spread(workers: usize, work: fn(u64)) -> (Spread<Slow>, Vec<Worker>) {
    Spread::new(Slow(work), vec![Slow(work); workers], true).unwrap()
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
fn feed(stage: &mut Spread<Slow>, count: u64, size: usize) -> Vec<(u64, u64)> {
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
        let (mut stage, crew) = spread(workers, uneven);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let crew: Vec<_> = crew
                .into_iter()
                .map(|worker| scope.spawn(|| run(worker, &stop)))
                .collect();
            assert!(
                feed(&mut stage, 3000, size) == expected(3000),
                "{workers} workers"
            );
            // Again: the end of an input is no end of the loops.
            assert!(feed(&mut stage, 50, size) == expected(50));
            stop.store(true, Ordering::Relaxed);
            let jobs: u64 = crew.into_iter().map(|worker| worker.join().unwrap()).sum();
            assert!(jobs > 0 || workers == 0);
        });
    }
}

#[test]
fn the_loop_works_itself_while_no_worker_does_and_waits_when_all_jobs_are_out() {
    let (mut stage, mut crew) = spread(1, nothing);
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
        let mut worker = crew.remove(0);
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
    let (mut stage, mut crew) = spread(1, nothing);
    let (mut batch, mut out) = (Batch::with_capacity(3), Vec::new());
    (0..3).for_each(|n| batch.push(n).unwrap());
    stage.process(&mut batch, &mut out);
    assert!(!crew[0].poll(), "more may come");
    stage.tick(Moment(0), &mut out);
    assert!(crew[0].poll() && !crew[0].poll());
    assert!(out.is_empty());
    stage.tick(Moment(0), &mut out);
    assert_eq!(out, expected(3));
}

#[test]
fn a_worker_that_ends_holds_nothing_up() {
    let (mut stage, mut crew) = spread(2, nothing);
    let (mut batch, mut out) = (Batch::with_capacity(16), Vec::new());
    (0..16).for_each(|n| batch.push(n).unwrap());
    stage.process(&mut batch, &mut out);
    // The first has done its job, the second leaves with one.
    (16..32).for_each(|n| batch.push(n).unwrap());
    stage.process(&mut batch, &mut out);
    assert!(crew[0].poll());
    crew.clear();
    (32..320).for_each(|n| {
        batch.push(n).unwrap();
        if batch.is_full() {
            stage.process(&mut batch, &mut out);
        }
    });
    stage.finish(&mut out);
    let all = expected(320);
    assert_eq!(out[..16], all[..16]);
    assert!(out.is_sorted() && out.last() == all.last());
    let again = feed(&mut stage, 100, 16);
    assert_eq!(again, expected(100), "the loop does all by itself");
}

#[test]
fn neither_side_does_anything_but_work() {
    let (mut stage, mut crew) = spread(1, nothing);
    let (mut batch, mut out) = (Batch::with_capacity(8), Vec::with_capacity(10_000));
    let ((), noise) = listen(|ear| {
        ear.during(|| {
            for n in 0..5000 {
                batch.push(n).unwrap();
                if batch.is_full() {
                    stage.process(&mut batch, &mut out);
                    // Now and then it is late.
                    while n % 7 != 0 && crew[0].poll() {}
                }
            }
            stage.tick(Moment(0), &mut out);
            while crew[0].poll() {}
            stage.tick(Moment(0), &mut out);
        });
    });
    noise.assert_none();
    assert_eq!(out, expected(5000));
}
