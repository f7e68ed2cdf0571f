#![allow(clippy::unwrap_used)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use pollux_app::{Reload, Service};
use pollux_mempool::time::Ns;
use pollux_pipelines::fan_out::{FanOut, FanOutOptions};
use pollux_pipelines::{Batch, Output, Stage};
use pollux_pmd::TscClock;

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::monitoring::Monitoring;
use crate::outputs::Naming;
use crate::registries::Registries;
use crate::report::Report;
use crate::run;
use crate::setup::Setup;
use crate::supervisor::Host;
use pollux_app::http::Listeners;

use super::*;

/// Behaviour of a worker at its first job.
#[derive(Clone)]
enum Fault {
    Panics,
    /// The job lasts until it is released.
    Waits(Arc<AtomicBool>),
}

impl Stage for Fault {
    type In = u64;
    type Out = u64;

    fn process(&mut self, _: &mut Batch<u64>, _: &mut impl Output<u64>) {
        match self {
            Self::Panics => panic!("as the test wants it"),
            Self::Waits(end) => {
                while !end.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }
}

/// A demonstration whose only worker behaves in this way; with its report, and its result.
fn run_with(fault: Fault, keeps: bool) -> (Report, Result<()>) {
    let cli = Cli::parse_from([
        "l0-trigger",
        "--quiet",
        "--events",
        "20000",
        "--workers",
        "1",
    ]);
    let registries = Registries::default();
    let plan = Plan::new(&cli, &registries).unwrap();
    let outputs = Naming::of(&cli).unwrap().name(None).unwrap();
    let (stop, clock) = (StopFlag::new(), RunClock::Tsc(TscClock::get()));
    let mut setup = Setup::new(&cli, &plan, &outputs, &registries, clock, &stop).unwrap();
    let options = FanOutOptions {
        workers: 1,
        patience: Ns(1),
        ..FanOutOptions::default()
    };
    // The stage is at the other end of these rings, with a job for the worker's loop.
    let (mut other, mut fated) = FanOut::new(fault.clone(), vec![fault.clone()], &options).unwrap();
    let mut batch = Batch::with_capacity(16);
    (0..16).for_each(|n| batch.push(n).unwrap());
    other.process(&mut batch, &mut Vec::new());
    let worker = std::mem::replace(&mut setup.workers[0].worker, fated.remove(0));
    // A waiting worker is still present for the trigger's stage, and does nothing.
    let _kept = keeps.then_some(worker);
    let monitoring = Monitoring::open(Listeners::default(), (&cli, &plan), &setup, None).unwrap();
    let host = Host {
        run: None,
        quit: stop.clone(),
        stop,
        reload: Reload::default(),
        service: &mut Service::from_env(),
        is_alone: true,
        prints_report: true,
    };
    let ended = run::run(
        &cli,
        &plan,
        &registries.stages,
        setup,
        (monitoring, None),
        host,
    );
    if let Fault::Waits(end) = fault {
        end.store(true, Ordering::Relaxed);
    }
    ended.unwrap()
}

#[track_caller]
fn assert_counted(report: &Report) {
    let events = &report.counted.events;
    assert!(events.built > 0 && report.counted.ledger.balanced);
    assert_eq!(
        events.accepted + events.rejected + events.undecided,
        events.built
    );
}

#[test]
fn a_worker_that_dies_fails_the_run_which_goes_on_without() {
    let (report, end) = run_with(Fault::Panics, false);
    assert_counted(&report);
    assert_eq!(report.end, "complete");
    assert!(end.unwrap_err().to_string().contains("worker 0"));
    // It received nothing: the loop saw that it was gone.
    let worker = &report.counted.workers[0];
    assert_eq!((worker.state, worker.undecided), ("gone", 0));
    assert!(report.to_text().contains("gone: 0 events undecided"));
}

#[test]
fn a_worker_that_is_stuck_is_left_behind_and_its_events_are_counted() {
    let (report, end) = run_with(Fault::Waits(Arc::default()), true);
    assert_counted(&report);
    let message = end.unwrap_err().to_string();
    assert!(message.contains("worker 0 did not end"), "{message}");
    let worker = &report.counted.workers[0];
    assert_eq!((worker.state, worker.stalls), ("stalled", 1));
    assert!(worker.undecided > 0 && report.counted.events.undecided == worker.undecided);
    let text = report.to_text();
    assert!(text.contains(" undecided: workers"), "{text}");
}

/// Each change of a worker is reported once, and at most once a second.
#[test]
fn each_change_of_a_worker_is_reported_once() {
    let (_, worker_pool) = FanOut::new(
        Fault::Panics,
        vec![Fault::Panics],
        &FanOutOptions {
            workers: 1,
            ..FanOutOptions::default()
        },
    )
    .unwrap();
    let view = WorkerView {
        name: "worker 0".into(),
        jobs: worker_pool[0].times(),
        gaps: worker_pool[0].times(),
        counts: worker_pool[0].counts(),
    };
    let mut warned = LastWarning::default();
    assert_eq!(warned.news(&view, false), None);
    view.counts.undecided.add(16);
    let news = warned.news(&view, false).unwrap();
    assert!(news.contains("16 events released undecided"), "{news}");
    view.counts.undecided.add(16);
    assert_eq!(warned.news(&view, false), None, "so soon again");
    let ended = warned.news(&view, true).unwrap();
    assert!(ended.contains("worker 0 has ended"), "{ended}");
    assert_eq!(warned.news(&view, true), None);
    warned.at = None;
    assert!(warned.news(&view, true).unwrap().contains("32 events"));
}
