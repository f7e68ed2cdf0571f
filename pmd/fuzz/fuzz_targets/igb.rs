//! The drivers of the 82576, of its physical function and of a virtual one, on a device that writes
//! its rings, registers and frames as the input determines; and the physical function's mailboxes,
//! into which virtual functions write arbitrary messages.
//!
//! Every wait ends, no buffer is lost or given out twice, each frame counts once, and no function
//! gets the address of another.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::Mempool;
use pollux_pmd_testkit::adversary::Choices;
use pollux_pmd_testkit::models::igb::trial::{mailboxes, physical, virtual_function};
use pollux_pmd_fuzz::{Input, assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(200, 2048);
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (what, answers) = (input.u8() % 4, u64::from(input.u8()));
    let choices = Choices::Bytes(input.0.to_vec().into_iter());
    POOL.with(|pool| {
        match what {
            0 => drop(physical(pool, "", choices, 10_000)),
            1 => drop(physical(pool, ",mtu=9000,promisc", choices, 10_000)),
            2 => drop(virtual_function(pool, ",mtu=9000,vlans=6", answers, choices, 2000)),
            _ => mailboxes(choices, 2000),
        }
        assert_full(pool);
    });
});
