//! Messages of all kinds and sizes over a wire that loses, reorders, duplicates and damages.

use pollux_faults::FaultRates;
use pollux_mempool::time::Ns;
use pollux_rdma::QpKind;

use crate::hub::Hub;
use crate::traffic::Traffic;

const RATES: FaultRates = FaultRates {
    loss: 0.01,
    delay: 0.0,
    delay_by: (Ns(0), Ns(0)),
    duplicate: 0.005,
    reorder: 0.005,
    corrupt: 0.001,
};

/// Runs so many messages each way, with faults and then without.
fn run(messages: u64, seed: u64) {
    let mut hub = Hub::new(RATES, seed);
    // Two queue pairs at each end, whose numbers wrap soon.
    let mut all = [0, 1].map(|n| {
        let numbers = [(100 + n, 0xff_fff0 - n), (200 + n, 0xff_0000 + n)];
        Traffic::new(&mut hub, QpKind::Reliable, numbers, seed + u64::from(n))
    });
    for traffic in &mut all {
        traffic.limit = messages / 4;
    }
    let mut steps = 0_u64;
    while !all.iter().all(Traffic::is_done) {
        steps += 1;
        assert!(steps < 3000 * messages, "it does not end");
        hub.step();
        for traffic in &mut all {
            traffic.run();
        }
    }
    for (host, faults) in hub.hosts.iter().zip(hub.faults()) {
        assert!(
            faults.lost > 0 && faults.duplicated > 0 && faults.reordered > 0,
            "{faults:?}"
        );
        let counts = host.counts();
        assert!(
            counts.retransmitted > 0 && counts.timeouts > 0,
            "{counts:?}"
        );
        assert_eq!(host.dropped("access") + host.dropped("invalid-request"), 0);
        println!("{faults:?} {counts:?} {}", host.balance());
    }
    // Behind the faults nothing is sent twice.
    hub.mend();
    let before = [0, 1].map(|n| hub.hosts[n].counts());
    for traffic in &mut all {
        traffic.limit += 500;
    }
    while !all.iter().all(Traffic::is_done) {
        hub.step();
        for traffic in &mut all {
            traffic.run();
        }
    }
    for (host, before) in hub.hosts.iter().zip(before) {
        let counts = host.counts();
        assert!(counts.requests > before.requests + 500);
        assert_eq!(counts.retransmitted, before.retransmitted, "{counts:?}");
    }
    drop(all);
    hub.stop();
}

#[test]
fn every_byte_is_right_and_each_request_is_done_once() {
    run(100_000, 1);
}

/// Takes minutes.
#[test]
#[ignore = "minutes long: ten times the messages"]
fn a_million_messages() {
    run(1_000_000, 2);
}

#[test]
fn unreliable_messages_come_whole_and_in_order_or_not_at_all() {
    let mut hub = Hub::new(RATES, 3);
    let numbers = [(5, 0xff_ff00), (6, 0xff_fff0)];
    let mut traffic = Traffic::new(&mut hub, QpKind::Unreliable, numbers, 3);
    traffic.limit = 5000;
    while !traffic.is_done() {
        hub.step();
        traffic.run();
    }
    for _ in 0..1000 {
        hub.step();
        traffic.run();
    }
    let (received, missed) = traffic.unreliable();
    assert!(received > 1000, "{received}");
    // Each missed packet is told with the message behind it; those behind the last are not.
    let counted = hub.hosts[1].counts().missed + hub.hosts[0].counts().missed;
    assert!(missed > 0 && missed <= counted, "{missed} of {counted}");
    drop(traffic);
    hub.stop();
}
