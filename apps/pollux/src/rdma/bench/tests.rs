//! Measurements that end otherwise than by their time.

use std::time::Duration;

use clap::Parser;
use pollux_pmd::Registry;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::region::MemoryRegion;
use pollux_rdma::{Access, Memory};

use super::args::Args;
use super::ends::{Ends, Pair};
use super::loops;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: Args,
}

/// The ends of a bench with these options, and a connected pair for its first measurement.
fn open(options: &str) -> (Args, Ends, Pair) {
    let words = ["bench"].into_iter().chain(options.split_whitespace());
    let Command { args } = Command::parse_from(words);
    let mut ends = Ends::open(&args, &Registry::builtin()).unwrap();
    let pair = Pair::new(&args, args.plans()[0], &mut ends).unwrap();
    (args, ends, pair)
}

/// Runs the first measurement.
fn run((args, mut ends, pair): (Args, Ends, Pair), stop: &StopFlag) -> anyhow::Result<Option<u64>> {
    let outcome = loops::run(args.plans()[0], &mut ends, pair, &[None, None], stop);
    let (_, ledger) = ends.end().unwrap();
    ledger.check().unwrap();
    outcome.map(|outcome| outcome.map(|outcome| outcome.count))
}

#[test]
fn a_trial_has_a_request_whatever_its_size() {
    for ports in ["", "loopback"] {
        for what in ["put", "get", "send"] {
            for measure in ["rate", "latency"] {
                let options = format!(
                    "{ports} --operation {what} --measure {measure} --bytes 2M --depth 1 --trial 0.000001"
                );
                let count = run(open(&options), &StopFlag::new()).unwrap();
                assert!(count > Some(0), "{options}: {count:?}");
            }
        }
    }
}

#[test]
fn a_signal_ends_the_warm_up() {
    for ports in ["", "loopback"] {
        for measure in ["rate", "latency"] {
            let options =
                format!("{ports} --operation put --measure {measure} --bytes 8 --trial 1000");
            let bench = open(&options);
            let stop = StopFlag::new();
            let ended = std::thread::scope(|scope| {
                let running = scope.spawn(|| run(bench, &stop));
                std::thread::sleep(Duration::from_millis(50));
                stop.stop();
                running.join().unwrap()
            });
            assert_eq!(ended.unwrap(), None, "{options}");
        }
    }
}

#[test]
fn the_failure_of_the_responder_is_told() {
    for ports in ["", "loopback"] {
        for measure in ["rate", "latency"] {
            let (args, mut ends, mut pair) = open(&format!(
                "{ports} --operation send --measure {measure} --bytes 4096"
            ));
            // The receives of the responder are in a buffer that is not there any more.
            let memory = Memory::new(MemoryRegion::builder(4096).build().unwrap());
            let other = ends.endpoints[1].register_buffer(&memory, 0..4096, Access::ALL);
            pair.0[1].buffer = other.unwrap();
            let error = run((args, ends, pair), &StopFlag::new()).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("responder: the queue pair has failed: local-access"),
                "{error}"
            );
        }
    }
}
