//! Whatever the device does, no buffer is lost, and each frame is counted once.

use pollux_pmd_testkit::adversary::{Choices, FaultModel};
use pollux_pmd_testkit::models::virtio_net::trial::drive;

use super::*;

#[test]
fn millions_of_steps_against_devices_that_do_what_they_like() {
    let pool = pool(2048);
    for rings in 0..8 {
        let seed = 0x5eed + u64::from(rings);
        // Every other device polls, and gets no notifications.
        let rings = rings | (rings & 1) << 3;
        let outcome = drive(rings, Choices::Seeded(seed), 250_000, &pool);
        assert!(outcome.starts > 10, "{rings}: {outcome:?}");
        assert!(outcome.received.delivered > 100, "{rings}: {outcome:?}");
        assert!(outcome.sent > 100, "{rings}: {outcome:?}");
        assert!(outcome.violations() > 10, "{rings}: {outcome:?}");
    }
}

#[test]
fn what_was_not_posted_stays_as_it_is() {
    for rings in 0..8 {
        // Frames take several buffers where they may.
        let pool = pool(if rings & 4 == 0 { 2048 } else { 512 });
        let plan = FaultModel::Confined.by(Choices::Seeded(rings.into()));
        let outcome = drive(rings, plan, 50_000, &pool);
        assert!(outcome.received.delivered > 1000, "{rings}: {outcome:?}");
        assert!(outcome.violations() > 10, "{rings}: {outcome:?}");
    }
}

#[test]
fn rings_that_change_while_they_are_looked_at_break_no_promise() {
    let pool = pool(2048);
    for rings in 0..2 {
        let plan = FaultModel::AnyTime.by(Choices::Seeded(rings.into()));
        let outcome = drive(rings, plan, 100_000, &pool);
        assert!(outcome.violations() > 0, "{rings}: {outcome:?}");
    }
}
