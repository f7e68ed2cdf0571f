//! Arbitrary bytes as a capture file, read through the pcap port.
//!
//! Each frame of it is delivered or dropped for a cause, by one queue, however damaged the file is.
#![no_main]

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;

use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Burst, Mempool};
use pollux_pmd::{Ledger, PortConfig, PortError, Registry, RxState, StartedPort, Tally};
use pollux_pmd_fuzz::{assert_full, pool};
use rustix::fs::{MemfdFlags, memfd_create};

thread_local! {
    // A frame of a capture may be as long as a chain of many buffers.
    static POOL: Mempool = pool(256, 512);
    static FILE: File = memfd_create("capture", MemfdFlags::CLOEXEC)
        .expect("memory for a small file")
        .into();
}

fn replay(path: &str, queues: u16, pool: &Mempool) -> Result<(), PortError> {
    let port = Registry::builtin().open(&format!("pcap:rx={path}"))?;
    let config = PortConfig {
        rx_queues: queues,
        tx_queues: 0,
        ..PortConfig::new(pool.clone())
    };
    let StartedPort { port, mut rx, tx } = port.configure(config)?.start()?;
    let (mut ledger, mut delivered) = (Ledger::new(), Tally::new());
    ledger.add("consumer", delivered.view());
    let mut cache = pool.cache(32).expect("a cache");
    let mut burst = Burst::<8>::new();
    for queue in &mut rx {
        ledger.add("queue", queue.tally());
        let mut latest = None;
        while queue.state() != RxState::Exhausted {
            delivered.count_delivered(queue.rx(&mut cache, &mut burst) as u64);
            for mbuf in &*burst {
                assert!(mbuf.wire_time() >= latest, "stamps never step back");
                latest = mbuf.wire_time();
            }
            cache.free_burst(&mut burst);
        }
    }
    let stopped = port.stop(rx, tx);
    ledger.check().expect("every frame has one fate");
    stopped.map(drop)
}

fuzz_target!(|data: &[u8]| {
    let [queues, capture @ ..] = data else { return };
    FILE.with(|mut file| {
        file.set_len(0).expect("an empty file");
        file.rewind().expect("its start");
        file.write_all(capture).expect("memory for it");
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        POOL.with(|pool| {
            // A damaged file is an error of `open` or of `stop`.
            let _ = replay(&path, 1 + u16::from(queues % 3), pool);
            assert_full(pool);
        });
    });
});
