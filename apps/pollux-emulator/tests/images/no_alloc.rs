//! The loop neither allocates nor frees.

use pollux_emulator::config::Faults;
use pollux_emulator::images::config::ImagesConfig;

use pollux_pmd_testkit::guard::allocator_calls;

use crate::receiver::{Bench, small, stack};

#[test]
fn the_loop_does_not_allocate() {
    let faults = Faults {
        lost: 0.01,
        late: 0.05,
        late_us: 1500,
        duplicated: 0.01,
        reordered: 0.01,
        corrupted: 0.01,
    };
    for (rate, faults) in [(0.0, faults), (5000.0, faults), (0.0, Faults::default())] {
        let config = ImagesConfig {
            modules: 2,
            interfaces: 2,
            frames: 100,
            rate,
            faults,
            ..small()
        };
        let (mut bench, tx) = Bench::new(2, 256);
        let mut source = bench.source(&config, stack(&config), tx);
        let before = allocator_calls();
        while source.poll() {
            bench.receive(|_, _| ());
        }
        assert_eq!(allocator_calls() - before, 0, "calls of the allocator");
        bench.receive(|_, _| ());
        let report = source.report();
        assert!(report.complete && report.packets_sent > 20_000);
        bench.stop(source.into_link().into_queues().0);
    }
}
