//! M/D/1: F. Pollaczek and A. Khinchine.

use pollux_farm::sim::Scenario;

use crate::{expect, run};

#[test]
fn waits_of_an_m_d_1_queue() {
    for (load, events) in [(0.3, 500_000), (0.8, 1_000_000), (0.9, 5_000_000)] {
        let service = 465.0;
        let set = format!("load={load} service_ns={service} events={events}");
        let results = run(Scenario::Queue, None, &set, 3);
        expect(
            results.wait_mean_ns.unwrap(),
            load * service / (2.0 * (1.0 - load)),
            0.02,
        );
        expect(results.utilisation, load, 0.01);
        expect(
            results.latency_us.mean * 1e3,
            results.wait_mean_ns.unwrap() + service,
            1e-9,
        );
    }
}
