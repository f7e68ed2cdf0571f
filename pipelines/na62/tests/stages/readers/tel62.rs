//! MEP with TEL62 data: edges become hits of fragments.

use std::ops::Range;

use crate::common::{Part, hit, l0};
use pollux_mempool::time::Tsc;
use pollux_na62::formats::tel62::Edge;
use pollux_na62::l0::Fragments;
use pollux_na62::rich::Hit;
use pollux_pipelines::Moment;
use pollux_pmd::Cause;

use super::{Rig, TEL62, edge, mep, packet};

#[test]
fn edges_in_the_slot_of_their_event_are_its_hits() {
    let mut rig = Rig::<Fragments>::new(TEL62);
    // Around a wrap of the 16 bits that a frame of the data has of its slot.
    for (n, timestamp) in [(0, 0xffff), (1, 0x1_0000), (2, 70_000), (3, 0xffff_ff00)] {
        let hits = [hit(490), hit(700), hit(975)];
        let mut edges: Vec<_> = hits.iter().map(|hit| edge(1, timestamp, *hit, 0)).collect();
        // A trailing edge, other slots, a second edge of a channel, and channels without a cable.
        edges.push(Edge {
            leading: false,
            ..edge(1, timestamp, hit(600), 0)
        });
        edges.extend([-1, 1, 30].map(|slots| edge(1, timestamp, hit(601), slots)));
        let later = Hit {
            fine: hit(700).fine + 1,
            ..hit(700)
        };
        edges.push(edge(1, timestamp, later, 0));
        edges.push(edge(1, timestamp, hit(488 + 488), 0));
        edges.push(edge(1, timestamp, hit(488 + 511), 0));
        let parts = rig.parts(
            1,
            &mep(1, 2 * n, &[(timestamp, edges), (timestamp + 9, vec![])]),
        );
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].hits, hits, "{timestamp:#x}");
        assert_eq!(parts[0].timestamp, u64::from(timestamp));
        assert_eq!((parts[1].hits.len(), parts[1].ends_frame), (0, true));
        assert_eq!((parts[0].source, parts[0].ends_frame), (1, false));
        assert_eq!(parts[0].at, Moment(1000 * rig.frames));
        assert_eq!(parts[0].arrival, Tsc(rig.frames));
    }
    assert_eq!(rig.env.ledger.balance().dropped_total(), 0);
    let metrics = rig.env.metrics.all().iter();
    let metrics: Vec<_> = metrics.map(|m| (m.name(), m.unit(), m.value())).collect();
    let expected = [("unconnected", "edges", 4 * 2), ("outside", "edges", 4 * 3)];
    assert_eq!(metrics, expected);
}

#[test]
fn a_channel_reads_the_photomultiplier_that_its_cable_leads_to() {
    let stages = "{ name = 'read-mep', boards = [9, 2, 5, 7] }, \
                  { name = 'read-tel62', first_pm = [1464, 0, 976, 488] }";
    let mut rig = Rig::<Fragments>::new(stages);
    // As far as the edge says, board 0.
    let edges = [3, 487].map(|pm| edge(0, 50, hit(pm), 0)).to_vec();
    let mut payload = mep(9, 0, &[(50, edges)]);
    for (stream, board, first) in [(0, 9, 1464), (1, 2, 0), (2, 5, 976), (3, 7, 488)] {
        payload[7] = board;
        let parts = rig.parts(stream, &payload);
        let pms: Vec<_> = parts[0].hits.iter().map(|hit| hit.pm).collect();
        assert_eq!(pms, [first + 3, first + 487]);
    }
}

#[test]
fn slots_around_an_event_are_fragments_of_their_own() {
    let stages = "{ name = 'read-mep' }, { name = 'read-tel62', slots_around = 2 }";
    let mut rig = Rig::<Fragments>::new(stages);
    let hits = |timestamp, slots: Range<i64>| {
        let edge = move |slot: i64| edge(0, timestamp, hit((100 + slot) as u16), slot);
        (timestamp, slots.map(edge).collect::<Vec<_>>())
    };
    // The second event shares two slots with the first.
    let events = [hits(1000, -3..4), hits(1003, -3..4), (1100, vec![])];
    let parts = rig.parts(0, &mep(0, 0, &events));
    let found: Vec<_> = parts
        .iter()
        .map(|part| (part.timestamp, part.hits.iter().map(|hit| hit.pm).collect()))
        .collect();
    let one = |timestamp, pm| (timestamp, vec![pm]);
    assert_eq!(
        found,
        [
            one(998, 98),
            one(999, 99),
            one(1000, 100),
            one(1001, 101),
            one(1002, 102),
            one(1003, 100),
            one(1004, 101),
            one(1005, 102),
            (1100, vec![]),
        ]
    );
    assert!(parts.iter().rev().skip(1).all(|part| !part.ends_frame));
    // There is no slot before the first.
    let parts = rig.parts(0, &mep(0, 3, &[hits(1, 0..1)]));
    assert_eq!((parts.len(), parts[0].timestamp), (1, 1));
}

#[test]
fn an_event_with_more_hits_than_a_fragment_holds_keeps_as_many() {
    let mut rig = Rig::<Fragments>::new(TEL62);
    let edges = (0..488).map(|pm| edge(0, 50, hit(pm), 0)).collect();
    let parts = rig.parts(0, &mep(0, 0, &[(50, edges)]));
    let kept: Vec<_> = parts[0].hits.iter().map(|hit| hit.pm).collect();
    assert_eq!(kept, (0..255).collect::<Vec<_>>());
    assert_eq!(l0(&rig.env).stats.events.overfull.get(), 1);
}

/// Its fragments need several buffers, and are one frame all the same.
#[test]
fn a_packet_may_be_as_long_as_can_be() {
    let mut rig = Rig::<Fragments>::new(TEL62);
    let edges = |timestamp| {
        (0..50)
            .map(move |pm| edge(0, timestamp, hit(pm), 0))
            .collect()
    };
    let events: Vec<_> = (0..220).map(|n| (100 + n, edges(100 + n))).collect();
    let mut out = Vec::new();
    rig.put(0, &mep(0, 0, &events), &mut out);
    let parts: Vec<Part> = out
        .iter()
        .flat_map(Fragments::iter)
        .map(Part::from)
        .collect();
    assert_eq!(parts.len(), 220);
    assert!(parts.iter().all(|part| part.hits.len() == 50));
    let ends = parts.iter().filter(|part| part.ends_frame).count();
    assert!(ends == 1 && parts[219].ends_frame);
}

#[test]
fn a_special_trigger_is_an_event_without_hits() {
    let mut rig = Rig::<Fragments>::new(TEL62);
    let mut payload = mep(0, 0, &[(50, vec![edge(0, 50, hit(3), 0)])]);
    // The trigger type is in the second byte of the data, behind two headers.
    payload[17] |= 0x80;
    let parts = rig.parts(0, &payload);
    assert_eq!((parts.len(), parts[0].hits.len()), (1, 0));
}

#[test]
fn packets_that_are_wrong_are_dropped_whole_with_their_cause() {
    let mut rig = Rig::<Fragments>::new(TEL62);
    let good = packet(2, 0);
    assert_eq!(rig.parts(2, &good[..good.len() - 1]).len(), 0);
    // A TDC word of the last event that is no edge, and a wrong event number.
    let mut bad = good.clone();
    *bad.last_mut().unwrap() = 0xf0;
    assert_eq!(rig.parts(2, &bad).len(), 0);
    assert_eq!(rig.dropped(Cause::Malformed), 2);
    let mut bad = good.clone();
    bad[0] = 1;
    assert_eq!(rig.parts(2, &bad).len(), 0);
    assert_eq!(rig.dropped(Cause::Malformed), 3);
    // Of another detector, of an unknown board, on the port of another board.
    for (at, value) in [(3, 0x40), (7, 4)] {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(rig.parts(2, &bad).len(), 0);
    }
    assert_eq!(rig.dropped(Cause::Unsupported), 2);
    assert_eq!(rig.parts(1, &good).len(), 0);
    assert_eq!(rig.dropped(Cause::Misrouted), 1);
    let stats = &l0(&rig.env).stats;
    assert_eq!(stats.sources[1].misrouted.get(), 1);
    // Events whose slots do not ascend, of which none can be lost in silence.
    for (number, times) in [(3, [50, 49]), (6, [50, 50]), (9, [u32::MAX, 0])] {
        let back = times.map(|time| (time, Vec::new()));
        assert_eq!(rig.parts(2, &mep(2, number, &back)).len(), 0);
    }
    assert_eq!(rig.dropped(Cause::Malformed), 6);
    let stats = &l0(&rig.env).stats;
    assert_eq!(stats.sources[2].unreadable.get(), 6 + 2);
    // Without events it is delivered at once.
    assert_eq!(rig.parts(2, &mep(2, 0, &[])).len(), 0);
    let balance = rig.env.ledger.balance();
    assert_eq!((balance.delivered, balance.dropped_total()), (1, 9));
}

#[test]
fn event_numbers_tell_lost_repeated_and_late_packets() {
    let mut rig = Rig::<Fragments>::new(TEL62);
    let mut order = |n: u32| {
        let parts = rig.parts(2, &packet(2, n));
        let first = parts.first();
        first.map(|first| (first.lost, first.reordered))
    };
    for n in 0..20 {
        assert_eq!(order(n), Some((0, false)));
    }
    assert_eq!(order(19), None, "a copy");
    assert_eq!(order(23), Some((3, false)));
    assert_eq!(order(21), Some((0, true)));
    assert_eq!(order(24), Some((0, false)));
    rig.pipeline.finish(&mut Vec::new());
    let counts = &l0(&rig.env).stats.sources[2];
    assert_eq!(counts.missing.get(), 2);
    assert_eq!(counts.reordered.get(), 1);
    assert_eq!(counts.duplicates.get(), 1);
    assert_eq!(rig.dropped(Cause::Duplicate), 1);
    assert_eq!(counts.events.get(), 3 * 23, "those of the copy are none");
    // The next burst counts from 0 again, behind a shorter last packet.
    let last = mep(2, 75, &[(5000, vec![])]);
    assert_eq!(rig.parts(2, &last).len(), 1);
    for n in 0..20 {
        let events = [0, 1, 2].map(|i| (900_000 + 120 * n + i, vec![]));
        assert_eq!(rig.parts(2, &mep(2, 3 * n, &events)).len(), 3, "{n}");
    }
    assert_eq!(rig.dropped(Cause::Duplicate), 1);
}
