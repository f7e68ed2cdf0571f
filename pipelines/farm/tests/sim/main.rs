//! The simulator against theory, and what holds of every simulation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crossbar;
mod histories;
mod networks;
mod queue;
mod thesis;

use pollux_farm::sim::{PolicyName, Results, Scenario, Settings};

/// Runs a scenario to its end.
fn run(scenario: Scenario, policy: Option<PolicyName>, set: &str, seed: u64) -> Results {
    let settings = Settings::read(scenario.keys(), set.split_whitespace()).unwrap();
    scenario
        .run(&settings, policy, seed, &mut |_| true)
        .unwrap()
}

/// Fails where a value is further from the expected one than a share of it.
#[track_caller]
fn expect(found: f64, expected: f64, within: f64) {
    assert!(
        (found / expected - 1.0).abs() <= within,
        "{found} instead of {expected}: off by {:.2} %",
        (found / expected - 1.0) * 100.0
    );
}
