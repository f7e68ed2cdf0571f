//! A card that does what it likes.

use super::pool;
use crate::bus::adversary::Choices;
use crate::drivers::card::hostile;

#[test]
fn an_adversary_costs_frames_and_nothing_else() {
    let pool = pool(400, 1024);
    let mut violations = 0;
    for (seed, options) in [(1, ""), (2, "mtu=9000"), (3, "promisc=on,multicast=all")] {
        let outcome = hostile::run(&pool, options, Choices::Seeded(seed), 20_000);
        assert!(outcome.starts > 5, "{outcome:?}");
        assert!(outcome.received.delivered > 100, "{outcome:?}");
        violations += outcome.violations();
    }
    assert!(violations > 0);
}
