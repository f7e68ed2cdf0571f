//! A card that does what it likes.

use pollux_pmd_testkit::adversary::{Choices, FaultModel};
use pollux_pmd_testkit::models::card::trial;

use super::pool;

#[test]
fn an_adversary_costs_frames_and_nothing_else() {
    let pool = pool(400, 1024);
    let mut violations = 0;
    for (seed, options) in [(1, ""), (2, "mtu=9000"), (3, "promisc=on,multicast=all")] {
        let outcome = trial::run(&pool, options, Choices::Seeded(seed), 350_000);
        assert!(outcome.starts > 50, "{outcome:?}");
        assert!(outcome.received.delivered > 1000, "{outcome:?}");
        violations += outcome.violations();
    }
    assert!(violations > 0);
}

/// The card writes lists of its driver's own, and reads what is sent.
#[test]
fn what_was_not_posted_stays_as_it_is() {
    let pool = pool(400, 1024);
    let plan = FaultModel::Confined.by(Choices::Seeded(1));
    let outcome = trial::run(&pool, "mtu=9000", plan, 150_000);
    assert!(outcome.received.delivered > 500, "{outcome:?}");
}
