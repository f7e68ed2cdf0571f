//! Once its buffers are there, the loop neither allocates nor frees.

use pollux_emulator::check::DecisionCheck;
use pollux_emulator::config::{EmulatorConfig, Faults};
use pollux_emulator::frames::Frame;
use pollux_emulator::link::{Link, PortLink, SentCounts};
use pollux_emulator::run::EmulatorLoop;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Ledger, PortConfig, Registry, StartedPort, TscClock};
use pollux_pmd_testkit::guard::allocator_calls;

/// Frames after which the buffers must be there.
const WARM: u64 = 10_000;

/// A link that looks at the allocator with every frame.
struct Watched {
    link: PortLink,
    frames: u64,
    warm: u64,
    last: u64,
}

impl Link for Watched {
    fn offer(&mut self, frame: &Frame) -> bool {
        self.frames += 1;
        self.last = allocator_calls();
        if self.frames == WARM {
            self.warm = self.last;
        }
        self.link.offer(frame)
    }

    fn flush(&mut self) -> usize {
        self.link.flush()
    }

    fn poll(&mut self, check: &mut DecisionCheck) {
        self.link.poll(check);
    }

    fn is_live(&self) -> bool {
        self.link.is_live()
    }

    fn can_receive(&self) -> bool {
        self.link.can_receive()
    }

    fn sent(&self) -> SentCounts {
        self.link.sent()
    }

    fn ledger(&self) -> Ledger {
        self.link.ledger()
    }
}

#[test]
fn the_loop_does_not_allocate() {
    let faults = Faults {
        lost: 0.01,
        late: 0.01,
        late_us: 100,
        duplicated: 0.01,
        reordered: 0.01,
        corrupted: 0.01,
    };
    let config = EmulatorConfig {
        events: 200_000,
        rate: 0,
        faults,
        ..EmulatorConfig::default()
    };
    let pool = Mempool::new(PoolConfig {
        buffers: 512,
        ..PoolConfig::default()
    })
    .unwrap();
    let port = Registry::builtin().open("null:size=0").unwrap();
    let port = port
        .configure(PortConfig {
            rx_queues: 0,
            ..PortConfig::new(pool.clone())
        })
        .unwrap();
    let StartedPort { port, rx, mut tx } = port.start().unwrap();
    let link = PortLink::new(
        &config,
        tx.pop().unwrap(),
        None,
        pool.cache(128).unwrap(),
        false,
    )
    .unwrap();
    let link = Watched {
        link,
        frames: 0,
        warm: 0,
        last: 0,
    };
    let mut emulator = EmulatorLoop::new(&config, link, TscClock::get(), StopFlag::new()).unwrap();
    let report = emulator.run();
    let link = emulator.into_link();
    assert!(report.complete && report.frames_sent > 2 * WARM);
    assert!(link.warm > 0, "the counter counts");
    assert_eq!(link.last - link.warm, 0, "calls of the allocator");
    port.stop(rx, vec![link.link.into_queues().0]).unwrap();
}
