//! The loopback under the load of the adversary, which has no device here.
#![allow(clippy::unwrap_used)]

use pollux_pmd::Cause;
use pollux_pmd::bus::Ids;
use pollux_pmd::drivers::loopback::open;
use pollux_pmd_testkit::adversary::{Choices, Trial, run};
use pollux_pmd_testkit::fake::{Model, World};
use pollux_pmd_testkit::ports::pool;

/// There is no device.
struct Nothing;

impl Model for Nothing {
    fn ids(&self) -> Ids {
        Ids::default()
    }

    fn bars(&self) -> [usize; 6] {
        [0; 6]
    }

    fn read(&mut self, _: &mut World, _: u8, _: usize, _: usize) -> u32 {
        u32::MAX
    }

    fn write(&mut self, _: &mut World, _: u8, _: usize, _: usize, _: u32) {}

    fn reset(&mut self, _: &mut World) {}
}

/// The other end is the port's own, of the same process and safe code: all that it can do is
/// send what it likes, when it likes.
#[test]
fn whatever_is_sent_comes_back_or_is_counted() {
    let pool = pool(200, 1024);
    let trial = Trial {
        model: &|| Nothing,
        open: &|_| Ok(open(&"loopback".parse().unwrap())),
        arrive: &|_, _, _| {},
        pool: &pool,
        shortest: 0,
    };
    let outcome = run(&trial, Choices::Seeded(1), 1_000_000);
    let lost = outcome.received.dropped_for(Cause::Aborted);
    assert_eq!(outcome.received.delivered + lost, outcome.sent);
    assert!(outcome.received.delivered > 10_000, "{outcome:?}");
    assert!(outcome.starts > 100 && lost > 0, "{outcome:?}");
    assert_eq!(outcome.violations(), 0, "{outcome:?}");
}
