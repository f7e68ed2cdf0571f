//! Model of the event queue under all orders that the memory model allows, and mutants of it that
//! must fail: `RUSTFLAGS="--cfg loom" cargo test -p pollux-pmd --release --test loom`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loom::thread;
use pollux_pmd::event::{EventQueue, EventRecord, RegionOptions, mutant};

/// Events pushed: two and a half passes over a queue of two records, so that the phase flips and
/// records are used again.
const EVENTS: u32 = 5;

fn event(sequence: u32) -> EventRecord {
    EventRecord {
        sequence,
        index: !sequence,
        ..EventRecord::default()
    }
}

fn model() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let (mut producer, mut consumer) = EventQueue::new(2, &RegionOptions::default())
            .unwrap()
            .split();
        let pushing = thread::spawn(move || {
            for n in 0..EVENTS {
                while producer.push(&event(n)).is_err() {
                    thread::yield_now();
                }
            }
        });
        for n in 0..EVENTS {
            let taken = loop {
                match consumer.poll() {
                    Some(taken) => break taken,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(taken, event(n));
        }
        assert_eq!(consumer.poll(), None);
        pushing.join().unwrap();
    });
}

#[test]
fn every_event_arrives_once_and_whole() {
    mutant::set(None);
    model();
}

fn must_fail(site: &'static str) {
    mutant::set(Some(site));
    let outcome = std::panic::catch_unwind(model);
    mutant::set(None);
    assert!(
        outcome.is_err(),
        "the model does not notice the mutant `{site}`"
    );
}

#[test]
fn a_phase_bit_before_its_record_is_noticed() {
    must_fail("phase-first");
}

#[test]
fn a_relaxed_publication_is_noticed() {
    must_fail("publish");
}

#[test]
fn a_relaxed_look_at_the_phase_is_noticed() {
    must_fail("observe");
}

#[test]
fn a_relaxed_release_is_noticed() {
    must_fail("release");
}

#[test]
fn a_relaxed_look_at_the_released_index_is_noticed() {
    must_fail("released");
}
