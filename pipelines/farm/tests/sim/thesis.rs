//! The farm of the thesis (chapter V) and its prototype (chapter IV), with the roles of this crate.

use pollux_farm::sim::{PolicyName, Results, Scenario};

use crate::{expect, run};

fn thesis(set: &str) -> Results {
    let results = run(Scenario::Thesis, Some(PolicyName::Ring), set, 1);
    assert_eq!((results.unfinished, results.lost), (0, 0), "{set}");
    results
}

fn prototype(policy: PolicyName, set: &str) -> Results {
    let results = run(Scenario::Prototype, Some(policy), set, 1);
    assert_eq!((results.unfinished, results.lost), (0, 0), "{set}");
    results
}

/// Below 15 us up to 2.1 MHz; the messages pass 24 buses of 465 ns one after another (V.F).
#[test]
fn events_are_built_in_less_than_15_us() {
    for rate in ["1e6", "2.1e6"] {
        let results = thesis(&format!("rate={rate} events=2000"));
        let latency = results.latency_us.mean;
        assert!((24.0 * 0.465..15.0).contains(&latency), "{latency}");
        expect(results.rate_hz, rate.parse().unwrap(), 0.01);
        assert_eq!(results.retries, Some(0));
    }
}

/// The bus of a feeder takes a burst in 31 clocks of 15 ns, and is in use for 23 of them.
#[test]
fn the_bus_of_a_feeder_limits_the_rate() {
    let results = thesis("rate=max events=2000");
    assert!(
        (2.14e6..2.16e6).contains(&results.rate_hz),
        "{}",
        results.rate_hz
    );
    expect(results.rate_hz, 1e9 / 465.0, 0.002);
    expect(results.bus_idle.unwrap(), 8.0 / 31.0, 0.01);
    assert_eq!(results.retries, Some(0));
}

#[test]
fn two_bursts_take_about_twice_as_long() {
    let ratio =
        thesis("bytes=256 events=1000").latency_us.mean / thesis("events=1000").latency_us.mean;
    assert!((1.7..2.1).contains(&ratio), "{ratio}");
}

/// Figure V-10.
#[test]
fn messages_bypass_feeders_with_large_fragments() {
    let mean = |bypass| {
        thesis(&format!(
            "big=0.005 big_factor=5 bypass={bypass} events=4000"
        ))
        .latency_us
        .mean
    };
    let (without, with) = (mean(0), mean(2));
    assert!(with <= 0.7 * without, "{with} and {without}");
}

/// Figure V-11.
#[test]
fn more_processors_do_not_cost_latency() {
    let [few, many] =
        ["550", "880"].map(|cpus| thesis(&format!("cpus={cpus} events=1000")).latency_us.mean);
    assert!((0.0..=0.3).contains(&(many - few)), "{few} and {many}");
}

/// J. D. C. Little 1961; figure V-12 has 500 of 550 processors.
#[test]
fn busy_processors_are_rate_times_time() {
    for (time, events) in [(50.0, 2000), (200.0, 4000)] {
        let results = thesis(&format!("time_us={time} events={events}"));
        expect(results.busy_mean.unwrap(), 1e6 * time * 1e-6, 0.01);
    }
}

#[test]
#[ignore = "takes half a minute without optimisation: cargo test --release -p pollux-farm --test sim -- --ignored"]
fn five_hundred_of_550_processors_are_busy() {
    expect(thesis("").busy_mean.unwrap(), 500.0, 0.01);
}

#[test]
fn broken_rules_make_receivers_refuse_packets() {
    let results = run(Scenario::Thesis, Some(PolicyName::None), "events=500", 1);
    assert!(results.retries > Some(100), "{:?}", results.retries);
    assert_eq!(results.built, 500);
    // Table IV-6: some 110 000 retries a second at 1.9 MHz, in an intentionally congested prototype.
    let results = prototype(PolicyName::None, "rate=1.9e6 events=5000");
    assert!(results.retries > Some(100), "{:?}", results.retries);
}

/// 7 us and the suspension (IV.D and table IV-3).
#[test]
fn latency_of_the_prototype() {
    for suspend in [0.0, 1.0, 2.0, 5.0] {
        let set = format!("suspend_us={suspend} rate=100000 events=2000");
        let beside = prototype(PolicyName::Ring, &set).system_us.unwrap() - suspend;
        assert!((beside - 7.0).abs() <= 0.3, "{suspend}: {beside}");
    }
}

/// 2.14 MHz and 25.9 % idle (IV.B and table IV-4).
#[test]
fn the_driver_takes_the_bus_of_the_prototype_at_times() {
    let results = prototype(PolicyName::Ring, "rate=max events=60000");
    expect(results.rate_hz, 1e9 / 465.0 * (1.0 - 324.0 * 10e-6), 0.001);
    assert!(
        (results.bus_idle.unwrap() - 0.259).abs() < 0.001,
        "{:?}",
        results.bus_idle
    );
    assert_eq!(results.retries, Some(0));
    let alone = prototype(PolicyName::Ring, "rate=max events=5000 driver=off");
    expect(alone.rate_hz, 1e9 / 465.0, 0.001);
}
