//! Events for unit tests.

use pollux_mempool::{Mempool, PoolCache, PoolConfig};
use pollux_na62::l0::{Decision, Draft, EventHead, Verdict, event_pool};
use pollux_na62::merge::Span;
use pollux_na62::rich::Hit;

/// Free buffers that a cache of these tests keeps.
pub(crate) const CACHE: usize = 8;

pub(crate) const ACCEPTED: Verdict = Verdict {
    rules: 1,
    rule_set: 1,
    monitored: false,
};

pub(crate) const MONITORED: Verdict = Verdict {
    rules: 0,
    rule_set: 1,
    monitored: true,
};

pub(crate) const REJECTED: Verdict = Verdict {
    monitored: false,
    ..MONITORED
};

/// A pool for so many events.
pub(crate) fn pool(events: usize) -> Mempool {
    event_pool(events + 2 * CACHE, PoolConfig::default()).unwrap()
}

/// A decided event with so many hits, each of which differs from the others.
pub(crate) fn event(
    timestamp: u64,
    hits: u16,
    verdict: Verdict,
    cache: &mut PoolCache,
) -> Decision {
    let head = EventHead {
        timestamp,
        sources: 0b1011,
        ..EventHead::default()
    };
    let mut draft = Draft::new(cache).unwrap();
    let hit = |n: u16| Hit {
        pm: n.wrapping_mul(7) % 1952,
        fine: n.wrapping_mul(13) % 256,
    };
    let hits: Vec<_> = (0..hits).map(hit).collect();
    assert!(draft.insert(0, &hits));
    let event = draft.finish(&head, Span::default());
    event.reconstructed(&[]).decided(verdict)
}
