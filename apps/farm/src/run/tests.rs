//! Tests of a loop.

#![allow(clippy::unwrap_used)]

use clap::Parser;
use pollux_app::Failure;
use pollux_farm::carrier::Ethernet;
use pollux_mempool::Mempool;
use pollux_pmd::{Ledger, Tally};
use pollux_pmd_testkit::guard::listen;

use super::build::{Common, Own, Parts, station};
use super::config::FarmConfig;
use super::counters::Counts;
use super::outcome::Outcome;
use super::plan::{Plan, micros};
use super::run_clock::RunClock;
use super::station::Station;
use super::wiring::Wiring;
use super::work::Suspension;
use super::{RunOptions, run};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: RunOptions,
}

fn options(args: &str) -> RunOptions {
    let args = ["farm"].into_iter().chain(args.split_whitespace());
    Cli::try_parse_from(args).unwrap().options
}

/// A farm in one loop.
fn whole_farm(options: &RunOptions) -> Station<Ethernet> {
    let config = FarmConfig::of(options).unwrap();
    let plan = Plan::of(options, config).unwrap();
    let pool = Mempool::new(plan.pool()).unwrap();
    let mut ledger = Ledger::new();
    let mut wiring = Wiring::open(&plan, &[], &pool, &mut ledger).unwrap();
    let suspension = plan.asked.suspend.map(micros);
    let common = Common {
        control: std::sync::Arc::default(),
        counts: Counts::new(plan.topology.columns()).into(),
        pool,
        clock: RunClock::start(),
        suspension: suspension.map(|time| Suspension::new(time, plan.topology.nodes())),
    };
    let own = Own {
        lines: wiring.loops.remove(0),
        tally: Tally::new(),
        latency: None,
    };
    station(&Parts::of(&plan, 0).unwrap(), common, own).unwrap()
}

/// Runs a farm; the allocations and system calls of its loop are none.
fn only_work(args: &str) -> Outcome {
    let options = options(args);
    let (outcome, noise) = listen(|ear| {
        let mut station = whole_farm(&options);
        ear.during(|| while !station.round_to_end() {});
        Outcome::of(station)
    });
    noise.assert_none();
    outcome
}

#[test]
fn a_loop_does_nothing_but_work() {
    let outcome = only_work("--events 3000 --loops 1");
    let handed = outcome.left.results.clone().unwrap().handed;
    assert_eq!((handed.decided, handed.incomplete), (3000, 0));
    // Packed, with standing nodes, damaged messages and a dead node.
    let args = "--events 6000 --pack 4 --suspend 20 --corrupt 1e-4 --kill node:3@2000 --loops 1";
    let outcome = only_work(args);
    let handed = outcome.left.results.clone().unwrap().handed;
    assert_eq!((handed.decided, handed.incomplete), (6000, 0));
    assert_eq!((handed.twice, handed.out_of_order), (0, 0));
    let nodes = outcome.left.nodes;
    assert!(nodes[3].dead);
    assert!(nodes.iter().any(|node| node.suspended > 0));
    assert!(nodes.iter().all(|node| node.wrong == 0));
}

#[test]
fn what_cannot_be_is_refused() {
    for (args, text) in [
        ("--columns 0", "0 columns: a farm has 1 to 64"),
        ("--columns 65", "65 columns: a farm has 1 to 64"),
        ("--feeders 65", "65 feeders"),
        ("--nodes 0", "no node"),
        ("--buffers 0", "12 nodes x 0 buffers"),
        ("--buffers 6000", "12 nodes x 6000 buffers"),
        ("--pack 0", "0 events in a MEP"),
        ("--pack 65", "65 events in a MEP"),
        ("--fragment 1000 --slot 500", "a slot of 500 B"),
        (
            "--fragment 512k --pack 2",
            "fragments of 512000 B, 2 in a pack",
        ),
        ("--corrupt 2", "--corrupt: messages are damaged"),
        ("--kill node:12@0", "--kill node:12: the farm has 12"),
        ("--events 5 --kill feeder:1@5", "the run has 5 events"),
        ("--cores 9999", "--cores: cpu 9999"),
        ("--rate 50M --triggers bunches", "this source has at most"),
    ] {
        let Err(Failure::Usage(error)) = run(&options(args)) else {
            panic!("{args}");
        };
        let found = format!("{error:#}");
        assert!(found.contains(text), "{args}: {found}");
    }
}
