//! Chains from readers to decisions.

use crate::common::{env, l0, pool};
use pollux_mempool::PoolConfig;
use pollux_mempool::time::Tsc;
use pollux_na62::formats::mtp::SOURCE_RICH;
use pollux_na62::l0::{Decision, Frame};
use pollux_na62::stage_registry;
use pollux_pipelines::{Batch, Moment};
use pollux_pmd::stream::StreamId;
use pollux_pmd_testkit::guard::listen;
use proptest::prelude::*;

use super::{Rig, mtp, packet, tables};

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
