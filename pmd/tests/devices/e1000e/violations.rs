//! A device that does not keep to the datasheet.

use pollux_pmd::drivers::e1000e::registers::{RDBAH, RDBAL};
use pollux_pmd::ledger::Cause;
use pollux_pmd_testkit::adversary::{Choices, FaultModel};
use pollux_pmd_testkit::models::e1000e::trial;
use pollux_pmd_testkit::ports::pool;

use super::Bench;

/// Writes the receive descriptor that the driver looks at next.
fn give(bench: &Bench, number: usize, status: u32, len: u16) {
    let word = u64::from(len) << 32 | u64::from(status);
    bench.with(|card, world| {
        let base = u64::from(card.get(RDBAL.of(0))) | u64::from(card.get(RDBAH.of(0))) << 32;
        assert!(world.write(base + number as u64 * 16 + 8, &word.to_le_bytes()));
    });
}

#[test]
fn violations_cost_the_frame_and_are_counted() {
    const DD: u32 = 1;
    const EOP: u32 = 2;
    let mut bench = Bench::new("mtu=9000", 1, pool(512, 2048));
    // Longer than the buffer, of no length, a piece that is not full, what the link broke, and a
    // frame that never ends.
    give(&bench, 0, DD | EOP, 2049);
    give(&bench, 1, DD | EOP, 0);
    give(&bench, 2, DD, 100);
    give(&bench, 3, DD, 2048);
    give(&bench, 4, DD | EOP, 1);
    give(&bench, 5, DD | EOP | 1 << 24, 100);
    for number in 6..14 {
        give(&bench, number, DD, 2048);
    }
    give(&bench, 14, DD | EOP, 1);
    // An honest one.
    give(&bench, 15, DD | EOP, 60);
    assert_eq!(bench.receive().len(), 1);
    let (balance, _) = bench.stop();
    assert_eq!(balance.dropped_for(Cause::DeviceError), 4);
    assert_eq!(balance.dropped_for(Cause::Oversize), 1);
    assert_eq!(balance.from_wire, 6);
}

#[test]
fn an_adversary_breaks_no_promise() {
    for (seed, options, room) in [
        (1, "", 2048),
        (2, "mtu=9000", 1024),
        (3, "mtu=9000,descriptors=legacy", 512),
        (4, "promisc=on,multicast=all", 9216),
    ] {
        let pool = pool(200, room);
        let outcome = trial::run(&pool, options, Choices::Seeded(seed), 500_000);
        let violations = outcome.violations();
        let some = outcome
            .starts
            .min(outcome.sent)
            .min(outcome.received.delivered);
        assert!(some > 100 && violations > 100, "{outcome:?}");
    }
}

#[test]
fn what_was_not_posted_stays_as_it_is() {
    for (seed, options, room) in [
        (1, "", 2048),
        (2, "mtu=9000", 1024),
        (3, "mtu=9000,descriptors=legacy", 512),
    ] {
        let pool = pool(200, room);
        let plan = FaultModel::Confined.by(Choices::Seeded(seed));
        let outcome = trial::run(&pool, options, plan, 100_000);
        assert!(outcome.received.delivered > 1000, "{outcome:?}");
        assert!(outcome.violations() > 100, "{outcome:?}");
    }
}

#[test]
fn rings_that_change_while_they_are_looked_at_break_no_promise() {
    let pool = pool(200, 1024);
    let plan = FaultModel::AnyTime.by(Choices::Seeded(1));
    let outcome = trial::run(&pool, "mtu=9000", plan, 100_000);
    assert!(outcome.violations() > 0, "{outcome:?}");
}
