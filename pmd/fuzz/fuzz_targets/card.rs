//! The driver of the project's own card, on a device that writes its queues, lists, registers and
//! frames as the input determines, and is unplugged.
//!
//! Every wait ends, no buffer is lost or given out twice, each frame counts once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::Mempool;
use pollux_pmd_testkit::adversary::Choices;
use pollux_pmd_testkit::models::card::trial;
use pollux_pmd_fuzz::{Input, assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(200, 1024);
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let options = match input.u8() % 3 {
        0 => "",
        1 => "mtu=9000,ip=10.0.0.1",
        _ => "promisc=on,multicast=all",
    };
    let choices = Choices::Bytes(input.0.to_vec().into_iter());
    POOL.with(|pool| {
        let _ = trial::run(pool, options, choices, 10_000);
        assert_full(pool);
    });
});
