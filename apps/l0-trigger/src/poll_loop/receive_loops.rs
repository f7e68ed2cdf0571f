//! Receive loops of live ports: every frame is decided or accounted for when the run is stopped.

#![allow(clippy::unwrap_used)]
use pollux_na62::stage_registry;
use pollux_pmd::RxQueue;

use super::standstill::{EVENTS, frames, setup_of};
use super::*;
use crate::receive_loop::Runner;

const ARGUMENTS: [&str; 9] = [
    "l0-trigger",
    "--port",
    "plain",
    "--port",
    "plain",
    "--rx-loops",
    "2",
    "--idle",
    "pause",
];

/// Times that the frames are there.
const ROUNDS: u64 = 20;

/// Runs a trigger with two receive loops on two ports, which share the frames, until its stop flag
/// is set: when the loops have received all frames, or in the middle.
fn run(to_the_end: bool) {
    let stop = StopFlag::new();
    let (setup, plain) = setup_of(&ARGUMENTS, stage_registry(), None, &stop);
    let (mut trigger, counters, ports) = (setup.trigger, setup.counters, setup.ports);
    // As many loops as there are here may share one CPU.
    if let Some(loops) = &mut trigger.receive_loops {
        loops.gives_way = true;
    }
    assert_eq!(counters.receivers.len(), 2);
    let boards = counters.stats.sources.len() as u8;
    let (finished, queues) = std::thread::scope(|scope| {
        let receivers: Vec<_> = setup
            .receivers
            .into_iter()
            .map(|runner: Runner| scope.spawn(move || runner.run()))
            .collect();
        let trigger = scope.spawn(move || trigger.run());
        let all = frames(boards);
        for _ in 0..ROUNDS {
            plain.0.lock().unwrap().extend(all.iter().cloned());
        }
        while if to_the_end {
            !plain.0.lock().unwrap().is_empty()
        } else {
            counters.stats.events.built.get() == 0
        } {
            assert!(!trigger.is_finished());
            std::thread::yield_now();
        }
        stop.stop();
        let queues = receivers.into_iter().flat_map(|it| it.join().unwrap());
        let queues: Vec<RxQueue> = queues.collect();
        (trigger.join().unwrap(), queues)
    });
    assert_eq!(finished.end, End::Stopped);
    assert_eq!(queues.len(), 2);
    let passed = counters.receivers.iter().map(|it| it.counts.frames.get());
    let balance = counters.ledgers.ledger.balance();
    assert!(balance.is_balanced(), "{balance}");
    assert_eq!(
        passed.sum::<u64>(),
        balance.from_wire,
        "none was dropped there"
    );
    assert_eq!(counters.stats.events.built.get(), finished.sink.decisions);
    // What the loops have received is decided; how much of it is late is up to the machine.
    assert_eq!(balance.dropped_for(Cause::Aborted), 0, "{balance}");
    let all = ROUNDS * EVENTS * u64::from(boards);
    assert!(balance.from_wire <= all);
    if to_the_end {
        assert_eq!(balance.from_wire, all);
    }
    drop((ports, queues));
}

#[test]
fn all_frames_of_several_loops_are_decided() {
    run(true);
}

#[test]
fn a_stop_in_the_middle_accounts_for_every_frame() {
    run(false);
}
