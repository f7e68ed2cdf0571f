//! The drivers of the 82576, of its physical function and of a virtual one, on a card that writes
//! its rings, registers and frames as the input says; and the physical function's mailboxes, into
//! which virtual ones write as it says.
//!
//! No wait without an end, no buffer is lost or given out twice, each frame counts once, and nobody
//! comes to have the address of another.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::Mempool;
use pollux_pmd::bus::adversary::Choices;
use pollux_pmd::drivers::hostile_igb::{mailboxes, physical, virtual_};
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
            2 => drop(virtual_(pool, ",mtu=9000,vlans=6", answers, choices, 2000)),
            _ => mailboxes(choices, 2000),
        }
        assert_full(pool);
    });
});
