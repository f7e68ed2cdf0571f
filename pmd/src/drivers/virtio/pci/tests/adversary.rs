//! Whatever the device does, no buffer is lost, and each frame is counted once.

use super::super::hostile::drive;
use super::*;
use crate::bus::adversary::Choices;

#[test]
fn millions_of_steps_against_devices_that_do_what_they_like() {
    let pool = pool(2048);
    for rings in 0..8 {
        let seed = 0x5eed + u64::from(rings);
        // Every other one polls, and is not told of buffers.
        let rings = rings | (rings & 1) << 3;
        let outcome = drive(rings, Choices::Seeded(seed), 250_000, &pool);
        assert!(outcome.starts > 10, "{rings}: {outcome:?}");
        assert!(outcome.received.delivered > 100, "{rings}: {outcome:?}");
        assert!(outcome.sent > 100, "{rings}: {outcome:?}");
        assert!(outcome.violations() > 10, "{rings}: {outcome:?}");
    }
}
