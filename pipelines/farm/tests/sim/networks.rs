//! Networks with buffers.

use pollux_farm::sim::{PolicyName, Scenario};
use proptest::prelude::*;

use crate::{expect, run};

/// Time of a frame of 1024 B at 10 Gb/s, in us.
const FRAME_US: f64 = 1024.0 * 8.0 / 10e3;

#[test]
fn at_load_0_8_unscheduled_traffic_queues_over_four_times_as_much() {
    for seed in 1..4 {
        let go = |policy| run(Scenario::Ethernet, Some(policy), "load=0.8", seed);
        let [none, ring] = [PolicyName::None, PolicyName::Ring].map(go);
        let [queued, scheduled] = [&none, &ring].map(|r| r.queue_peak_bytes.unwrap());
        assert!(queued > 4 * scheduled, "{queued} and {scheduled}");
        assert!(none.wait_mean_ns.unwrap() > 4.0 * ring.wait_mean_ns.unwrap());
        for results in [none, ring] {
            assert_eq!(
                (results.built, results.lost, results.incomplete),
                (20_000, 0, 0)
            );
            expect(results.utilisation, 0.8, 0.01);
        }
    }
}

/// All sources send at once: the output queues all frames, but what it has sent meanwhile is nothing.
#[test]
fn incast_queues_one_frame_of_each_source() {
    let none = run(
        Scenario::Ethernet,
        Some(PolicyName::None),
        "load=0.1 events=100",
        1,
    );
    assert_eq!(none.queue_peak_bytes, Some(24 * 1024));
    // The last frame waits for the others; a frame of its own is sent twice.
    expect(none.latency_us.mean, 25.0 * FRAME_US + 0.5, 1e-9);
    // The k-th waits for k others.
    expect(none.wait_mean_ns.unwrap() / 1e3, 11.5 * FRAME_US, 1e-9);
}

/// The ring sends one frame after another: the message has 24 hops and 23 transfers before the last.
#[test]
fn a_ring_queues_one_frame_at_a_time() {
    let ring = run(
        Scenario::Ethernet,
        Some(PolicyName::Ring),
        "load=0.01 events=100",
        1,
    );
    assert_eq!(ring.queue_peak_bytes, Some(1024));
    assert!(ring.wait_mean_ns.unwrap().abs() < 1e-9);
    expect(
        ring.latency_us.mean,
        24.0 * 0.5 + 23.0 * FRAME_US + 2.0 * FRAME_US + 0.5,
        1e-9,
    );
}

#[test]
fn a_bounded_output_loses_frames_of_an_incast_alone() {
    let set = "load=0.8 ports=80 events=2000";
    let none = run(Scenario::Ethernet, Some(PolicyName::None), set, 1);
    // 64 of 80 frames fit into 64 KiB; what the output sends while the others come adds none, as all
    // come at once.
    assert_eq!(none.lost, 16 * 2000);
    assert_eq!(none.incomplete, 2000);
    for policy in [PolicyName::Ring, PolicyName::Credits] {
        let others = run(Scenario::Ethernet, Some(policy), set, 1);
        assert_eq!(
            (others.lost, others.incomplete, others.built),
            (0, 0, 2000),
            "{policy}"
        );
    }
}

/// A slot lasts as long as a transfer, its hops and the barrier. In one slot of a round servers send
/// to themselves, over their leaf alone.
#[test]
fn slots_of_a_fat_tree_waste_hops_and_barrier_alone() {
    for pack in [100.0, 1000.0, 5000.0] {
        let set =
            format!("ports=40 leaf=10 sizes=fixed hop_ns=300 sync_ns=2000 events=1200 pack={pack}");
        let results = run(Scenario::Run3, Some(PolicyName::Slots), &set, 1);
        let transfer = 267.0 * pack * 8.0 / 100.0;
        let hops = (39.0 * 4.0 + 2.0) / 40.0;
        expect(
            results.utilisation,
            transfer / (transfer + hops * 300.0 + 2000.0),
            1e-3,
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// A shift meets no other flow on any link of a tree with D-mod-k routes (Zahavi 2010).
    #[test]
    fn no_fragment_of_a_shift_waits(leaf in 1u32..6, leaves in 1u32..6, segment in 64u32..4000) {
        let set = format!(
            "ports={} leaf={leaf} sizes=fixed pack=20 events=60 segment={segment} buffer=100000",
            leaf * leaves
        );
        let results = run(Scenario::Run3, Some(PolicyName::Slots), &set, 1);
        prop_assert_eq!(results.built, 60);
        prop_assert!(results.wait_mean_ns.unwrap().abs() < 1e-9, "{}", results.wait_mean_ns.unwrap());
    }
}

/// LHCb Run 3 on a tree of 100 servers; [`run3_with_500_servers`] is the whole.
#[test]
fn run3_with_100_servers() {
    run3(100, 300, 1000);
}

#[test]
#[ignore = "takes minutes without optimisation: cargo test --release -p pollux-farm --test sim -- --ignored"]
fn run3_with_500_servers() {
    run3(500, 1500, 1500);
}

/// Saturated runs have `events` packs of events, the others `offered`.
fn run3(ports: u32, events: u32, offered: u32) {
    let go = |policy, events: u32, set: &str| {
        let set = format!("ports={ports} events={events} {set}");
        let results = run(Scenario::Run3, Some(policy), &set, 1);
        assert_eq!(
            (results.built, results.incomplete),
            (events.into(), 0),
            "{policy} {set}"
        );
        results
    };
    // 32 Tb/s of 500 servers.
    let gbps = 64.0 * f64::from(ports);
    for policy in [PolicyName::Slots, PolicyName::Credits] {
        let results = go(policy, offered, "load=0.64");
        assert_eq!(results.lost, 0, "{policy}");
        assert!(
            results.gbps >= 0.99 * gbps,
            "{policy}: {} of {gbps}",
            results.gbps
        );
    }
    let slots = go(PolicyName::Slots, events, "load=max").utilisation;
    assert!(slots >= 0.9, "{slots}");
    let none = go(PolicyName::None, events, "load=max").utilisation;
    assert!(none < 0.9, "{none}");
    // Without packing the longest of many fragments, and the barrier, take most of a slot.
    let unpacked = go(PolicyName::Slots, events, "load=max pack=1").utilisation;
    assert!(unpacked < 0.1, "{unpacked}");
}
