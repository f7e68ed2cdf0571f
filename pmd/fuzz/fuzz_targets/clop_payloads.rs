//! Arbitrary bytes as a filled receive buffer: payloads lie in it, one behind the other, and end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::time::WireTime;
use pollux_pmd::event::{Framing, Payloads};

fuzz_target!(|data: &[u8]| {
    let [stride, bytes @ ..] = data else { return };
    let framing = match stride {
        0 => Framing::Records,
        &stride => Framing::Bare {
            stride: usize::from(stride) - 1,
        },
    };
    let limit = bytes.as_ptr_range();
    let mut end = limit.start;
    let mut payloads = Payloads::new(bytes, framing, Some(WireTime(1 << 40)));
    for round in 0.. {
        assert!(round <= bytes.len());
        match payloads.next() {
            Some(Ok(payload)) => {
                let range = payload.data.as_ptr_range();
                assert!(range.start >= end && range.end <= limit.end);
                end = range.end;
            }
            Some(Err(malformed)) => {
                assert!(malformed.offset < bytes.len() && payloads.next().is_none());
            }
            None => break,
        }
    }
});
