//! Saturated crossbars.

use std::collections::BTreeMap;

use pollux_farm::sim::{PolicyName, Scenario};

use crate::{expect, run};

fn utilisation(policy: PolicyName, set: &str) -> f64 {
    let results = run(Scenario::Crossbar, Some(policy), set, 1);
    assert_eq!(results.unfinished, 0);
    assert_eq!(results.lost, 0);
    results.utilisation
}

/// Throughput of a saturated switch with input FIFOs, from the Markov chain of the numbers of first
/// packets for each output: in each slot an output serves one of them, and its input's next packet is
/// for an output at random (Karol, Hluchyj and Morgan 1987, section III).
fn fifo_throughput(ports: usize) -> f64 {
    // Numbers of packets, sorted: outputs are alike.
    let mut states = BTreeMap::from([(vec![1usize; ports], 1.0)]);
    let mut throughput = 0.0;
    for _ in 0..200 {
        throughput = 0.0;
        let mut next: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        for (state, share) in states {
            let served = state.iter().filter(|&&n| n > 0).count();
            throughput += share * served as f64 / ports as f64;
            let rest: Vec<_> = state.iter().map(|n| n.saturating_sub(1)).collect();
            let mut thrown = BTreeMap::from([(rest, share)]);
            for _ in 0..served {
                let mut more: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
                for (state, share) in thrown {
                    for output in 0..ports {
                        let mut state = state.clone();
                        state[output] += 1;
                        state.sort_unstable();
                        *more.entry(state).or_default() += share / ports as f64;
                    }
                }
                thrown = more;
            }
            for (state, share) in thrown {
                *next.entry(state).or_default() += share;
            }
        }
        states = next;
    }
    throughput
}

#[test]
fn saturation_of_input_fifos() {
    expect(fifo_throughput(2), 0.75, 1e-9);
    for (ports, events) in [(2, 60_000), (4, 20_000), (8, 10_000)] {
        let set = format!("traffic=uniform sizes=fixed ports={ports} events={events}");
        expect(
            utilisation(PolicyName::None, &set),
            fifo_throughput(ports),
            0.01,
        );
    }
    // Many ports: 2 - sqrt(2) (there, equation 14).
    let set = "traffic=uniform sizes=fixed ports=128 events=3000";
    expect(utilisation(PolicyName::None, set), 2.0 - 2f64.sqrt(), 0.01);
}

/// Many ports with packets of varying length: an output is an M/G/1 queue of first packets, whose
/// number is one for each port, r + r^2 (1 + c^2) / 2 (1 - r) = 1, with c^2 = 1 here.
#[test]
fn saturation_with_exponential_sizes_is_a_half() {
    let set = "traffic=uniform sizes=exponential ports=256 events=1000";
    expect(utilisation(PolicyName::None, set), 0.5, 0.02);
}

#[test]
fn slots_with_a_barrier_last_as_long_as_their_longest_transfer() {
    for (ports, events) in [(2u32, 60_000), (8, 20_000), (32, 6400)] {
        let set = format!("sizes=exponential ports={ports} events={events}");
        // Mean of the largest of N exponential times: the N-th harmonic number.
        let harmonic: f64 = (1..=ports).map(|k| 1.0 / f64::from(k)).sum();
        expect(utilisation(PolicyName::Slots, &set), 1.0 / harmonic, 0.01);
    }
}

#[test]
fn fixed_sizes_fill_the_slots() {
    for set in [
        "ports=8",
        "ports=32",
        "ports=8 barrier=off",
        "ports=5 nodes=5",
    ] {
        let set = format!("{set} sizes=fixed events=4000");
        expect(utilisation(PolicyName::Slots, &set), 1.0, 1e-9);
    }
    // Sources and nodes: the fewer limit the traffic.
    expect(
        utilisation(PolicyName::Slots, "sizes=fixed ports=4 nodes=8 events=4000"),
        1.0,
        1e-9,
    );
    expect(
        utilisation(PolicyName::Slots, "sizes=fixed ports=8 nodes=4 events=4000"),
        1.0,
        0.01,
    );
}

/// A closed cycle of N exponential servers with W customers: all states are equally likely (J. R.
/// Jackson 1963; W. J. Gordon and G. F. Newell 1967), and a server is idle in those without customer.
#[test]
fn a_ring_is_a_closed_cycle_of_queues() {
    for (ports, in_flight) in [(8, 1), (8, 4), (8, 16), (24, 48)] {
        let set = format!(
            "sizes=exponential ports={ports} nodes={} in_flight={in_flight} events={}",
            ports.max(in_flight),
            400_000 / ports
        );
        let (n, w) = (f64::from(ports), f64::from(in_flight));
        expect(utilisation(PolicyName::Ring, &set), w / (w + n - 1.0), 0.01);
    }
}

/// With one request each, nodes never wait for each other but in the queues of the sources: the closed
/// network of above, with N customers.
#[test]
fn nodes_with_one_request_each() {
    for ports in [2, 8, 32] {
        let set = format!(
            "traffic=uniform sizes=exponential ports={ports} in_flight=1 events={}",
            400_000 / ports
        );
        let n = f64::from(ports);
        expect(
            utilisation(PolicyName::Credits, &set),
            n / (2.0 * n - 1.0),
            0.01,
        );
    }
}

/// Many nodes with W requests each are a finite-source queue: a request is at its node's link, or on
/// its way through a source, for the time of a queue with the load of the link. The link is idle
/// with the probability e of A. K. Erlang's loss formula B(W, 1 / e).
#[test]
fn nodes_with_many_requests_each() {
    let loss = |servers: u32, load: f64| {
        (1..=servers).fold(1.0, |b, n| load * b / (f64::from(n) + load * b))
    };
    let idle = |requests| {
        let (mut low, mut high) = (1e-3, 1.0);
        while high - low > 1e-6 {
            let e = f64::midpoint(low, high);
            if loss(requests, 1.0 / e) > e {
                low = e;
            } else {
                high = e;
            }
        }
        low
    };
    expect(1.0 - idle(16), 0.9214, 1e-4);
    let set = "traffic=uniform sizes=exponential ports=32 in_flight=16 events=4000";
    expect(utilisation(PolicyName::Credits, set), 1.0 - idle(16), 0.01);
}

/// CMS found roughly 50 % (thesis, II.G).
#[test]
fn without_a_policy_varying_sizes_halve_the_throughput() {
    let found = utilisation(PolicyName::None, "ports=8 sizes=lognormal");
    assert!((found - 0.53).abs() <= 0.03, "{found}");
    // Fixed sizes order themselves.
    expect(
        utilisation(PolicyName::None, "ports=8 sizes=fixed"),
        1.0,
        1e-3,
    );
}

#[test]
fn credits_keep_varying_sizes_apart() {
    let set = "ports=32 in_flight=16 events=4000";
    for more in [
        "sizes=lognormal",
        "sizes=exponential",
        "sizes=fixed",
        "traffic=uniform",
    ] {
        let found = utilisation(PolicyName::Credits, &format!("{set} {more}"));
        assert!(found >= 0.85, "{more}: {found}");
    }
}

/// A window of one event: the next event waits for the end of the one before, whose fragments pass one
/// after another through the link of one node.
#[test]
fn a_window_of_one_event_serves_one_node_at_a_time() {
    let set = "ports=8 window=1 events=2000";
    expect(utilisation(PolicyName::None, set), 1.0 / 8.0, 1e-6);
}
