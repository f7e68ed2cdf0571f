//! Boards with more hits than rings explain.

use std::sync::Arc;

use crate::common::event;
use pollux_mempool::{PoolCache, PoolConfig};
use pollux_pipelines::l0::{Draft, EventHead, L0Stats, Reconstructed, event_pool};
use pollux_pipelines::merge::Span;
use pollux_pipelines::rich::Hit;
use pollux_pipelines::rich::find::FinderConfig;
use pollux_pipelines::stages::FindRings;
use pollux_pipelines::{Batch, Stage};

/// The rings that are found in events of these hits.
fn found(stats: &Arc<L0Stats>, cache: &mut PoolCache, events: &[Vec<Hit>]) -> Vec<usize> {
    let mut stage = FindRings::with_stats(FinderConfig::default(), Arc::clone(stats)).unwrap();
    let mut batch = Batch::with_capacity(events.len());
    for hits in events {
        let mut draft = Draft::new(cache).unwrap();
        assert!(draft.insert(0, hits));
        let event = draft.finish(&EventHead::default(), Span::default());
        batch.push(event).unwrap();
    }
    let mut out = Vec::<Reconstructed>::new();
    stage.process(&mut batch, &mut out);
    for (event, hits) in out.iter().zip(events) {
        assert_eq!(event.hits(), hits, "the event keeps what it has");
    }
    out.iter().map(|event| event.rings().len()).collect()
}

#[test]
fn a_hot_board_is_passed_over_and_told_and_costs_no_ring() {
    let pool = event_pool(64, PoolConfig::default()).unwrap();
    let mut cache = pool.cache(32).unwrap();
    // Odd time stamps have their ring on disk 1, which boards 2 and 3 read.
    let clean: Vec<_> = (0..40).map(|n| event(2 * n + 1)).collect();
    let stats = L0Stats::new(4);
    let expected = found(&stats, &mut cache, &clean);
    assert!(expected.iter().sum::<usize>() >= 40);
    assert!(stats.sources.iter().all(|source| source.hot.get() == 0));
    let hot: Vec<_> = clean
        .iter()
        .map(|hits| {
            let ring = hits.iter().filter(|hit| hit.pm >= 976);
            let noise = (0..255).map(|pm| Hit { pm, fine: 104 });
            noise.chain(ring.copied()).collect()
        })
        .collect();
    let of_disk: Vec<Vec<_>> = clean
        .iter()
        .map(|hits| hits.iter().filter(|hit| hit.pm >= 976).copied().collect())
        .collect();
    let expected = found(&stats, &mut cache, &of_disk);
    assert_eq!(found(&stats, &mut cache, &hot), expected);
    let told: Vec<_> = stats
        .sources
        .iter()
        .map(|source| source.hot.get())
        .collect();
    assert_eq!(told, [40, 0, 0, 0]);
    stats.events.built.add(40);
    assert!(stats.faults(0).contains(&"hot") && !stats.faults(1).contains(&"hot"));
}
