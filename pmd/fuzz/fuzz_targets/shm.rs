//! Shared memory whose peer is hostile: it writes anything into the rings, at any moment.
//!
//! No byte is written that was not granted, no request is done twice or never, and the ledger balances.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_rdma::shm::hostile::rings;

fuzz_target!(|data: &[u8]| rings(data));
