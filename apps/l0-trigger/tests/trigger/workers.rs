//! Rings found on more loops than one: nothing is lost, and the report says who did what.

use crate::common::{alone, drops, number, run, start};
use serde_json::Value;

/// What holds however a demonstration with so many workers ended.
#[track_caller]
fn assert_shared(report: &Value, workers: usize) {
    let (events, emulator) = (&report["events"], &report["emulator"]);
    let built = number(events, "built");
    assert!(built > 0);
    assert_eq!(
        number(events, "accepted") + number(events, "rejected") + number(events, "undecided"),
        built
    );
    assert_eq!(number(events, "undecided"), 0, "{report}");
    assert_eq!(number(&report["answers"], "sent"), built);
    // Loops that share CPUs stand still for longer than events wait: some may be built again.
    let decisions = &emulator["decisions"];
    let came_back = number(decisions, "decided") + number(decisions, "repeated");
    assert_eq!(came_back, built, "{report}");
    let lost: Vec<_> = drops(report)
        .into_iter()
        .filter(|(cause, _)| !["late", "aborted"].contains(cause))
        .collect();
    assert_eq!(lost, []);
    let roles = report["cores"].as_array().unwrap().iter();
    let roles: Vec<_> = roles.map(|core| core["role"].as_str().unwrap()).collect();
    let expected = ["trigger", "emulator", "worker 0", "worker 1"];
    assert_eq!(roles, expected[..2 + workers]);
    let of_workers = report["workers"].as_array().unwrap();
    assert_eq!(of_workers.len(), workers);
    let mut jobs = 0;
    for (n, worker) in of_workers.iter().enumerate() {
        assert_eq!(worker["core"], format!("worker {n}"));
        jobs += number(&worker["job_ns"], "count");
        assert!(number(&worker["jitter_ns"], "count") > 0);
        assert_eq!(worker["state"], "running");
    }
    assert!(jobs > 0, "{report}");
}

#[test]
fn the_demonstration_is_complete_with_workers() {
    let _alone = alone();
    for workers in [1, 2] {
        let count = workers.to_string();
        let arguments = ["--events", "20000", "--workers", &count, "--idle", "pause"];
        let ended = run(&arguments).expect(0);
        let report = ended.report();
        assert_eq!(report["end"], "complete");
        assert_shared(report, workers);
        assert!(ended.stdout.contains("worker 0"), "{}", ended.stdout);
    }
}

#[test]
fn a_signal_ends_a_run_with_workers_in_order() {
    let _alone = alone();
    let mut running = start(&[
        "--events",
        "50000000",
        "--workers",
        "1",
        "--metrics",
        "127.0.0.1:0",
    ]);
    running.wait_until("jobs are done", |running| {
        let page = running.metrics().unwrap_or_default();
        let jobs = "pollux_l0_job_seconds_count{core=\"worker 0\"} ";
        let sample = page.lines().find_map(|line| line.strip_prefix(jobs));
        sample.is_some_and(|n| n.parse::<u64>().unwrap() > 100)
    });
    running.signal("INT");
    let ended = running.wait().expect(0);
    assert_eq!(ended.report()["end"], "stopped");
    assert_shared(ended.report(), 1);
}
