//! A virtio PCI device with arbitrary behaviour: its registers, its capabilities and the rings.
//!
//! No buffer is lost or given out twice, each frame counts once, and every call of the driver ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::Mempool;
use pollux_pmd_testkit::adversary::Choices;
use pollux_pmd_testkit::models::virtio_net::trial::drive;
use pollux_pmd_fuzz::{assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(256, 2048);
}

fuzz_target!(|data: &[u8]| {
    let Some((&rings, rest)) = data.split_first() else {
        return;
    };
    POOL.with(|pool| {
        let _ = drive(rings, Choices::Bytes(rest.to_vec().into_iter()), 2000, pool);
        assert_full(pool);
    });
});
