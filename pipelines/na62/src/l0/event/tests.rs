//! An event from its first hit to its last owner.
#![allow(clippy::unwrap_used)]
use pollux_mempool::{Mempool, PoolConfig};

use super::draft::{Draft, event_pool};
use super::*;

fn hits(pms: std::ops::Range<u16>) -> Vec<Hit> {
    pms.map(|pm| Hit { pm, fine: pm % 256 }).collect()
}

const HEAD: EventHead = EventHead {
    timestamp: 0x0102_0304_0506_0708,
    sources: 0b1011,
    complete: true,
    hits: 5,
    masked: 2,
    arrival: Tsc(9),
    truncated: false,
    disputed: false,
    burst: 1,
};

#[test]
fn an_event_is_one_buffer_from_its_first_hit_to_its_last_owner() {
    let pool = event_pool(8, PoolConfig::default()).unwrap();
    let mut cache = pool.cache(4).unwrap();
    // Twice, since the buffer is not fresh the second time.
    for n in [3_u16, 0] {
        let mut draft = Draft::new(&mut cache).unwrap();
        assert_eq!(draft.hits(), 0);
        assert!(draft.insert(0, &hits(7..9)) && draft.insert(0, &hits(0..2)));
        assert!(draft.insert(2, &hits(4..5)) && draft.insert(9, &[]));
        let span = Span { guard: 1, width: 0 };
        let event = draft.finish(&EventHead { hits: 999, ..HEAD }, span);
        assert_eq!(event.hits(), [hits(0..2), hits(4..5), hits(7..9)].concat());
        assert_eq!((event.head(), event.view().span()), (HEAD, span));

        let rings: Vec<_> = (0..n)
            .map(|hits| Ring {
                hits,
                ..Ring::default()
            })
            .collect();
        let event = event.reconstructed(&rings);
        assert!(event.rings() == rings && event.view().verdict() == Verdict::default());
        let verdict = Verdict {
            rules: n as u8,
            rule_set: 0x1234,
            monitored: n == 0,
        };
        let mut decision = event.decided(verdict);
        assert_eq!((decision.verdict(), decision.head()), (verdict, HEAD));
        assert!(!decision.view().is_late());
        decision.mark_late();

        let decision = Decision::try_from(Mbuf::from(decision)).unwrap();
        let frozen = Mbuf::from(decision).freeze();
        let (one, other) = (frozen.clone(), EventView::of(frozen.data()).unwrap());
        assert_eq!(
            format!("{other:?}"),
            format!("{:?}", EventView::of(one.data()).unwrap())
        );
        assert_eq!((other.hits().len(), other.rings()), (5, &rings[..]));
        assert!(other.is_late() && other.verdict() == verdict);
        drop((frozen, one));
    }
    drop(cache);
    assert_eq!(pool.available(), 8);
}

#[test]
fn hits_are_added_whole_or_not_at_all_and_rings_up_to_their_room() {
    let pool = event_pool(8, PoolConfig::default()).unwrap();
    let mut draft = Draft::new(&mut pool.cache(2).unwrap()).unwrap();
    let places: [Hit; 40] = std::array::from_fn(|n| hits(0..40)[n]);
    assert!(draft.append(&places, 40) && draft.append(&places, 3) && draft.append(&places, 0));
    assert!(draft.insert(43, &hits(43..500)));
    assert!(!draft.insert(500, &hits(0..13)) && !draft.append(&places, 13));
    assert!(draft.insert(500, &hits(500..505)) && draft.append(&places, 7));
    assert!(!draft.insert(0, &hits(0..1)) && !draft.append(&places, 1));
    let event = draft.finish(&EventHead::default(), Span::default());
    let expected = [hits(0..40), hits(0..3), hits(43..505), hits(0..7)].concat();
    assert_eq!(event.hits(), expected);
    let event = event.reconstructed(&[Ring::default(); MAX_RINGS + 1]);
    assert_eq!(event.rings().len(), MAX_RINGS);
}

#[test]
fn other_buffers_are_no_events() {
    let small = Mempool::new(PoolConfig {
        buffers: 2,
        data_room: 64,
        headroom: 0,
        ..PoolConfig::default()
    });
    let small = small.unwrap();
    assert!(Draft::new(&mut small.cache(2).unwrap()).is_none());
    assert_eq!(small.available(), 2);

    let pool = event_pool(4, PoolConfig::default()).unwrap();
    let mut cache = pool.cache(4).unwrap();
    let draft = Draft::new(&mut cache).unwrap();
    let built = draft.finish(&EventHead::default(), Span::default());
    assert!(built.view().rings().is_empty() && built.hits().is_empty());
    let built = Decision::try_from(Mbuf::from(built)).unwrap_err();
    let event = Event::try_from(built).unwrap();
    let decided = event.reconstructed(&[]).decided(Verdict::default());
    assert!(Event::try_from(Mbuf::from(decided)).is_err());
    let empty = cache.alloc().unwrap();
    let empty = Event::try_from(empty).unwrap_err();
    assert!(EventView::of(empty.data()).is_none());
    let bytes = [0_u64; FRONT / 8 + 1];
    assert!(EventView::of(bytes.as_bytes()).is_some());
    assert!(
        EventView::of(&bytes.as_bytes()[4..]).is_none(),
        "misaligned"
    );
    assert!(
        EventView::of(&bytes.as_bytes()[..FRONT + 3]).is_none(),
        "half a hit"
    );
}

/// The time of an event at slot 1000 with these rings (hits, time), in such a window.
fn time(span: Span, rings: &[(u16, f32)]) -> (u64, u8) {
    let pool = event_pool(8, PoolConfig::default()).unwrap();
    let draft = Draft::new(&mut pool.cache(4).unwrap()).unwrap();
    let head = EventHead {
        timestamp: 1000,
        ..HEAD
    };
    let mut event = draft.finish(&head, span).reconstructed(&[]);
    // Also rings that are not of the event, which `reconstructed` would ignore.
    let front = event.0.front_mut().unwrap();
    front.head.ring_count = rings.len() as u8;
    for (place, &(hits, time)) in front.rings.iter_mut().zip(rings) {
        (place.hits, place.time) = (hits, time);
    }
    let EventTime { slot, fine } = event.view().time();
    (slot, fine)
}

#[test]
fn the_time_of_an_event_is_that_of_its_strongest_ring() {
    let slot = Span::default();
    assert_eq!(time(slot, &[]), (1000, 0));
    assert_eq!(time(slot, &[(9, 100.0)]), (1000, 100));
    assert_eq!(time(slot, &[(9, 10.0), (12, 20.0), (12, 30.0)]), (1000, 20));
    assert_eq!(time(slot, &[(9, 99.4)]).1, 99);
    assert_eq!(time(slot, &[(9, 99.5)]).1, 100);
    // The time stays in the slot, in spite of rounding and invalid values.
    for (wrong, fine) in [
        (255.0, 255),
        (255.6, 255),
        (1e9, 255),
        (f32::INFINITY, 255),
        (-0.4, 0),
        (-300.0, 0),
        (f32::NAN, 0),
    ] {
        assert_eq!(time(slot, &[(9, wrong)]), (1000, fine), "{wrong}");
    }
}

#[test]
fn the_time_in_a_window_counts_from_behind_its_guard() {
    let narrow = Span {
        guard: 20,
        width: 256,
    };
    let wide = Span {
        guard: 20,
        width: 1024,
    };
    for span in [narrow, wide] {
        assert_eq!(time(span, &[]), (1000, 0));
        assert_eq!(time(span, &[(9, 20.0)]), (1000, 0));
        assert_eq!(time(span, &[(9, 19.0)]), (1000, 0), "in the guard");
        assert_eq!(time(span, &[(9, 275.4)]), (1000, 255));
    }
    assert_eq!(time(narrow, &[(9, 275.9)]), (1000, 255));
    assert_eq!(time(wide, &[(9, 275.9)]), (1001, 0));
    assert_eq!(time(wide, &[(9, 20.0 + 700.0)]), (1002, 188));
    assert_eq!(time(wide, &[(9, 1043.9)]), (1003, 255));
    assert_eq!(time(wide, &[(9, 2000.0)]), (1003, 255));
}
