//! Readers of what NA62's boards send: MEP with TEL62 data, and MTP primitives.

use std::ops::Range;

use crate::common::{Part, env, hit, l0, pool};
use pollux_mempool::time::Tsc;
use pollux_mempool::{PoolCache, PoolConfig};
use pollux_na62::formats::mep::MepWriter;
use pollux_na62::formats::mtp::{MtpWriter, Primitive, SOURCE_RICH};
use pollux_na62::formats::tel62::{Edge, write_tel62};
use pollux_na62::l0::{Decision, Fragments, Frame};
use pollux_na62::rich::Hit;
use pollux_na62::stage_registry;
use pollux_pipelines::{Batch, Moment, Pipeline, StageEnv};
use pollux_pmd::Cause;
use pollux_pmd::stream::StreamId;
use pollux_pmd_testkit::guard::listen;
use proptest::prelude::*;

/// Photomultipliers of each of four boards.
const PMS_OF_BOARD: u16 = 488;

fn tables(stages: &str) -> Vec<toml::Table> {
    let config: toml::Table = format!("stage = [{stages}]").parse().unwrap();
    config["stage"].clone().try_into().unwrap()
}

/// Stages from frames on, and what they are given.
struct Rig<Out> {
    env: StageEnv,
    pipeline: Pipeline<Frame, Out>,
    cache: PoolCache,
    frames: u64,
}

impl<Out: 'static> Rig<Out> {
    fn new(stages: &str) -> Self {
        let mut env = env(4);
        let pipeline = stage_registry().pipeline(&tables(stages), &mut env);
        Self {
            env,
            pipeline: pipeline.unwrap(),
            cache: pool(64, 2048).cache(16).unwrap(),
            frames: 0,
        }
    }

    fn put(&mut self, stream: u16, payload: &[u8], out: &mut Vec<Out>) {
        self.frames += 1;
        let bytes = [&[0xee; 42], payload].concat();
        let mut mbuf = self.cache.alloc_from(&bytes).unwrap();
        mbuf.set_arrival(Tsc(self.frames));
        let mut batch = Batch::with_capacity(1);
        batch
            .push(Frame {
                mbuf,
                stream: StreamId(stream),
                offset: 42,
                len: payload.len() as u16,
                at: Moment(1000 * self.frames),
            })
            .unwrap();
        self.pipeline.process(&mut batch, out);
    }

    fn dropped(&self, cause: Cause) -> u64 {
        self.env.ledger.balance().dropped_for(cause)
    }
}

impl Rig<Fragments> {
    /// The fragments of one packet.
    fn parts(&mut self, stream: u16, payload: &[u8]) -> Vec<Part> {
        let mut out = Vec::new();
        self.put(stream, payload, &mut out);
        let fragments = out.iter().flat_map(Fragments::iter);
        fragments.map(Part::from).collect()
    }
}

/// The leading edge of a hit, `slots` behind its event at `timestamp`.
fn edge(board: u8, timestamp: u32, hit: Hit, slots: i64) -> Edge {
    let channel = hit.pm - u16::from(board) * PMS_OF_BOARD;
    let slot = i64::from(timestamp) + slots;
    Edge {
        fpga: (channel >> 7) as u8,
        tdc: (channel >> 5) as u8 & 3,
        channel: channel as u8 & 31,
        leading: true,
        time: (slot as u64) << 8 | u64::from(hit.fine),
    }
}

/// A packet of a board with events of these edges, numbered from `first` on.
fn mep(board: u8, first: u32, events: &[(u32, Vec<Edge>)]) -> Vec<u8> {
    let mut writer = MepWriter::new(vec![0; 60_000], SOURCE_RICH, board, first).unwrap();
    let mut data = vec![0; 20_000];
    for (timestamp, edges) in events {
        let mut edges = edges.clone();
        edges.sort_by_key(|edge| (edge.fpga, edge.time));
        let len = write_tel62(&mut data, board, 1, *timestamp, &edges).unwrap();
        writer.push(*timestamp, false, &data[..len]).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

/// Packets of three events each, number `n` of a board.
fn packet(board: u8, n: u32) -> Vec<u8> {
    let events = (3 * n..3 * n + 3).map(|event| {
        let timestamp = 1000 + 40 * event;
        let pm = u16::from(board) * PMS_OF_BOARD + (event % 488) as u16;
        (timestamp, vec![edge(board, timestamp, hit(pm), 0)])
    });
    mep(board, 3 * n, &events.collect::<Vec<_>>())
}

const TEL62: &str = "{ name = 'read-mep' }, { name = 'read-tel62' }";

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
    // The next burst counts from 0 again, behind a shorter last packet.
    let last = mep(2, 75, &[(5000, vec![])]);
    assert_eq!(rig.parts(2, &last).len(), 1);
    for n in 0..20 {
        let events = [0, 1, 2].map(|i| (900_000 + 120 * n + i, vec![]));
        assert_eq!(rig.parts(2, &mep(2, 3 * n, &events)).len(), 3, "{n}");
    }
    assert_eq!(rig.dropped(Cause::Duplicate), 1);
}

/// A packet of primitives: each its identifier and slot.
fn mtp(detector: u8, board: u8, primitives: &[(u16, u32)]) -> Vec<u8> {
    let mut writer = MtpWriter::new(vec![0; 1472], detector, board).unwrap();
    for &(id, timestamp) in primitives {
        let primitive = Primitive {
            id,
            timestamp,
            fine: 77,
        };
        writer.push(primitive).unwrap();
    }
    let (mut bytes, len) = writer.finish();
    bytes.truncate(len);
    bytes
}

fn slots(parts: &[Part]) -> Vec<u64> {
    assert!(parts.iter().all(|part| part.hits.is_empty()));
    let ends: Vec<_> = parts.iter().map(|part| part.ends_frame).collect();
    assert!(ends.iter().rev().skip(1).all(|ends| !ends) && ends.last() != Some(&false));
    parts.iter().map(|part| part.timestamp).collect()
}

#[test]
fn primitives_are_fragments_of_their_slots() {
    let mut rig = Rig::<Fragments>::new("{ name = 'read-mtp' }");
    let primitives = [(0x100, 9), (0xffff, 9), (0x100, 10), (0x200, 70_000)];
    let parts = rig.parts(3, &mtp(SOURCE_RICH, 3, &primitives));
    assert_eq!(slots(&parts), [9, 10, 70_000]);
    assert!(parts.iter().all(|part| part.source == 3));
    assert_eq!(l0(&rig.env).stats.sources[3].events.get(), 4);
    let most: Vec<_> = (0..255).map(|slot| (0x100, slot)).collect();
    let parts = rig.parts(3, &mtp(SOURCE_RICH, 3, &most));
    assert_eq!(slots(&parts), (0..255).collect::<Vec<u64>>());
}

#[test]
fn primitives_are_selected_by_their_identifiers() {
    let select = "{ name = 'read-mtp', detectors = [0x1c, 0x18, 0x20, 0x30], select = [\
                  { source = 1, mask = 0x0f00, value = 0x0300 }, \
                  { source = 1, mask = 0x0001, value = 0x0001 }, \
                  { source = 2, mask = 0xffff, value = 0x1234 }] }";
    let mut rig = Rig::<Fragments>::new(select);
    let primitives = [
        (0x1300, 1),
        (0x0301, 2),
        (0x0400, 3),
        (0x8001, 4),
        (0x400, 5),
    ];
    let of = |rig: &mut Rig<_>, stream, detector| {
        slots(&rig.parts(stream, &mtp(detector, 200, &primitives)))
    };
    assert_eq!(of(&mut rig, 0, 0x1c), [1, 2, 3, 4, 5]);
    assert_eq!(of(&mut rig, 1, 0x18), [1, 2, 4]);
    // None is: the frame ends here.
    assert!(of(&mut rig, 2, 0x20).is_empty());
    assert_eq!(rig.env.ledger.balance().delivered, 1);
    assert!(of(&mut rig, 3, 0x18).is_empty());
    assert_eq!(rig.dropped(Cause::Misrouted), 1);
    assert!(of(&mut rig, 3, 0x40).is_empty());
    assert_eq!(rig.dropped(Cause::Unsupported), 1);
}

#[test]
fn packets_of_primitives_that_are_wrong_are_dropped() {
    let mut rig = Rig::<Fragments>::new("{ name = 'read-mtp' }");
    let good = mtp(SOURCE_RICH, 0, &[(0x100, 1), (0x100, 2)]);
    let mut more = good.clone();
    more[6] += 1;
    for bad in [&good[..good.len() - 4], &good[..3], &more] {
        assert_eq!(rig.parts(0, bad).len(), 0);
    }
    assert_eq!(rig.dropped(Cause::Malformed), 3);
    // A slot that steps back, also by a time stamp that begins anew; equal ones are one fragment.
    for times in [[7, 6], [u32::MAX, 0]] {
        let back = times.map(|time| (0x100, time));
        assert_eq!(rig.parts(0, &mtp(SOURCE_RICH, 0, &back)).len(), 0);
    }
    assert_eq!(rig.dropped(Cause::Malformed), 5);
    assert_eq!(rig.parts(0, &mtp(SOURCE_RICH, 0, &[])).len(), 0);
    assert_eq!(rig.env.ledger.balance().delivered, 1);
}

#[test]
fn options_that_are_wrong_are_named() {
    let refusal = |stages: &str| {
        let made = stage_registry().pipeline::<Frame, Fragments>(&tables(stages), &mut env(4));
        made.err().unwrap().to_string()
    };
    for (stages, message) in [
        (
            "{ name = 'read-mep', boards = [1] }, { name = 'read-tel62' }",
            "stage `read-mep`: 1 boards for 4 sources: one each",
        ),
        (
            "{ name = 'read-mep' }, { name = 'read-tel62', first_pm = [1] }",
            "stage `read-tel62`: first_pm: 1 numbers for 4 sources: one each",
        ),
        (
            "{ name = 'read-mep' }, { name = 'read-tel62', first_pm = [1, 2, 2, 3] }",
            "stage `read-tel62`: first_pm: 2: the numbers must differ, and be below 1952",
        ),
        (
            "{ name = 'read-mep' }, { name = 'read-tel62', first_pm = [1, 2, 3, 1952] }",
            "stage `read-tel62`: first_pm: 1952: the numbers must differ, and be below 1952",
        ),
        (
            "{ name = 'read-mep' }, { name = 'read-tel62', slots_around = 65 }",
            "stage `read-tel62`: slots_around = 65: it must be 0 to 64",
        ),
        (
            "{ name = 'read-tel62' }",
            "stage `read-tel62` takes multi-event packets, but the pipeline is given frames",
        ),
        (
            "{ name = 'read-mtp', boards = [0, 1, 2, 3], detectors = [1, 2, 3, 4] }",
            "stage `read-mtp`: boards and detectors: one of them, not both",
        ),
        (
            "{ name = 'read-mtp', detectors = [1, 2, 3, 3] }",
            "stage `read-mtp`: detector 3 is listed twice",
        ),
        (
            "{ name = 'read-mtp', select = [{ source = 4, mask = 1, value = 1 }] }",
            "stage `read-mtp`: select: source = 4: there are 4 sources, from 0 on",
        ),
        (
            "{ name = 'read-mtp', select = [{ source = 0, mask = 1, value = 2 }] }",
            "stage `read-mtp`: select: value = 0x0002 has bits that mask = 0x0001 does not: no \
             primitive would be taken",
        ),
        (
            "{ name = 'read-mtp' }, { name = 'merge' }",
            "stage `merge`: primitives have no hits to merge: take `build`",
        ),
    ] {
        assert_eq!(refusal(stages), message);
    }
}

#[test]
fn rules_that_need_hits_are_doubted_where_there_are_only_primitives() {
    let mut env = env(4);
    let stages = "{ name = 'read-mtp' }, { name = 'build' }, { name = 'rings' }, \
                  { name = 'decide', rule = [{ name = 'ring' }, { name = 'two', min_rings = 0, \
                  min_sources = 2 }] }";
    let made = stage_registry().pipeline::<Frame, Decision>(&tables(stages), &mut env);
    made.unwrap();
    assert_eq!(
        env.warnings,
        ["rule `ring` can never accept: primitives have no hits, and so no rings"]
    );
}

const CHAINS: [&str; 3] = [
    "{ name = 'read-mep' }, { name = 'read-tel62' }, { name = 'build' }",
    "{ name = 'read-mep' }, { name = 'read-tel62', slots_around = 3 }, { name = 'merge' }",
    "{ name = 'read-mtp' }, { name = 'build' }",
];

/// Stages from frames to decisions by what sources contributed.
fn decisions(chain: &str) -> Rig<Decision> {
    Rig::new(&format!(
        "{chain}, {{ name = 'rings' }}, {{ name = 'decide', rule = [\
         {{ name = 'three', min_rings = 0, min_sources = 3 }}, \
         {{ name = 'pair', min_rings = 0, sources = [0, 2] }}] }}"
    ))
}

#[test]
fn rules_ask_for_sources() {
    let mut rig = decisions(CHAINS[2]);
    let mut out = Vec::new();
    // Slot n is seen by the sources whose bits are in n.
    for source in 0..4 {
        let seen: Vec<_> = (1..16)
            .filter(|slot| slot >> source & 1 == 1)
            .map(|slot| (0x100, slot))
            .collect();
        rig.put(source, &mtp(SOURCE_RICH, source as u8, &seen), &mut out);
    }
    rig.pipeline.finish(&mut out);
    assert_eq!(out.len(), 15);
    for decision in &out {
        let slot = decision.head().timestamp;
        assert_eq!(u64::from(decision.head().sources), slot);
        let (three, pair) = (slot.count_ones() >= 3, slot & 5 == 5);
        let rules = u8::from(three) | u8::from(pair) << 1;
        assert_eq!(decision.verdict().rules, rules, "{slot:#b}");
    }
    let balance = rig.env.ledger.balance();
    assert_eq!((balance.delivered, balance.dropped_total()), (4, 0));
}

/// Payloads of all sorts, for each of the streams.
fn payloads() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let whole = |stream: u16, n: u32| {
        prop_oneof![
            Just(packet(stream as u8, n)),
            Just(mtp(
                SOURCE_RICH,
                stream as u8,
                &[(0x100, 9 * n), (0x777, 9 * n + 5)]
            )),
            prop::collection::vec(any::<u8>(), 0..200),
        ]
    };
    let damaged = (0..4u16, 0..30u32).prop_flat_map(move |(stream, n)| {
        let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
        (
            whole(stream, n),
            damage,
            any::<Option<prop::sample::Index>>(),
        )
            .prop_map(move |(mut bytes, damage, cut)| {
                for (at, value) in damage {
                    if !bytes.is_empty() {
                        let at = at.index(bytes.len());
                        bytes[at] = value;
                    }
                }
                if let Some(cut) = cut.filter(|_| n % 3 == 0) {
                    bytes.truncate(cut.index(bytes.len() + 1));
                }
                (stream, bytes)
            })
    });
    prop::collection::vec(damaged, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever comes, each frame is counted once, and every buffer returns.
    #[test]
    fn each_frame_is_delivered_or_dropped_for_a_cause(sent in payloads(), chain in 0..3usize) {
        let mut rig = decisions(CHAINS[chain]);
        let frames = pool(64, 2048);
        rig.cache = frames.cache(16).unwrap();
        let mut out = Vec::new();
        for (stream, payload) in &sent {
            rig.put(*stream, payload, &mut out);
        }
        rig.pipeline.finish(&mut out);
        let balance = rig.env.ledger.balance();
        prop_assert_eq!(balance.delivered + balance.dropped_total(), sent.len() as u64);
        let built = l0(&rig.env).stats.events.built.get();
        prop_assert_eq!(built, out.len() as u64);
        drop(rig);
        prop_assert_eq!(frames.available(), frames.buffers());
    }
}

#[test]
fn readers_only_work_after_the_start() {
    for chain in CHAINS {
        let (decided, noise) = listen(|ear| {
            let mut rig = decisions(chain);
            let mut out = Vec::with_capacity(1000);
            let mut frames = Vec::new();
            for n in 0..200 {
                for stream in 0..4 {
                    let primitives = [(0x100, 1000 + 9 * n)];
                    let payload = if chain.contains("mtp") {
                        mtp(SOURCE_RICH, stream as u8, &primitives)
                    } else {
                        packet(stream as u8, n)
                    };
                    let lost = if n % 50 == 17 { 4 } else { 0 };
                    let len = payload.len() - lost;
                    frames.push((stream, payload[..len].to_vec()));
                }
            }
            let cache = pollux_mempool::Mempool::new(PoolConfig {
                buffers: 1024,
                ..PoolConfig::default()
            });
            let mut cache = cache.unwrap().cache(64).unwrap();
            let mut batch = Batch::default();
            for (stream, payload) in &frames {
                let mut mbuf = cache.alloc_from(payload).unwrap();
                mbuf.set_arrival(Tsc(1));
                let frame = Frame {
                    mbuf,
                    stream: StreamId(*stream),
                    offset: 0,
                    len: payload.len() as u16,
                    at: Moment(1),
                };
                ear.during(|| {
                    assert!(batch.push(frame).is_ok());
                    rig.pipeline.process(&mut batch, &mut out);
                    batch.clear();
                });
            }
            out.len()
        });
        assert!(decided > 100, "{chain}: {decided}");
        noise.assert_none();
    }
}
