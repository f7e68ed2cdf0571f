//! Arbitrary fragments, in any order and at any time.
//!
//! A datagram has the bytes of its fragments, each at its offset; each frame is accounted for, no
//! more buffers are held than configured, and all are back at the end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::Mempool;
use pollux_mempool::time::Ns;
use pollux_pmd::net::{ParseOptions, Reassembler, ReassemblyConfig, Whole, classify};
use pollux_pmd::{Cause, Tally};
use pollux_pmd_fuzz::{Input, assert_full, pool};

const BOUNDS: ReassemblyConfig = ReassemblyConfig {
    timeout: Ns(1_000_000),
    datagrams: 3,
    fragments: 12,
    buffers: 20,
};

/// Bytes of the Ethernet and of the IP header.
const HEADERS: usize = 34;

thread_local! {
    static POOL: Mempool = pool(256, 128);
}

/// A fragment whose bytes encode their offset in the datagram.
fn fragment(id: u8, place: u16, len: usize) -> Vec<u8> {
    let mut frame = [[2; 12].as_slice(), &[8, 0, 0x45, 0]].concat();
    frame.extend((20 + len as u16).to_be_bytes());
    frame.extend([0, id]);
    frame.extend(place.to_be_bytes());
    frame.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let start = usize::from(place & 0x1fff) * 8;
    frame.extend((start..start + len).map(|at| at as u8));
    frame
}

fn is_whole(whole: &Whole) {
    let frame: Vec<u8> = whole.mbuf.segments().flatten().copied().collect();
    let (headers, body) = frame.split_at(HEADERS);
    assert_eq!(headers[16..18], (frame.len() as u16 - 14).to_be_bytes());
    assert_eq!(headers[20..22], [0, 0]);
    let mut bytes = body.iter().enumerate();
    assert!(bytes.all(|(at, &byte)| byte == at as u8));
    assert!(whole.frames > 1);
}

fuzz_target!(|data: &[u8]| POOL.with(|pool| {
    let mut input = Input(data);
    let (mut cache, mut tally) = (pool.cache(32).expect("a cache"), Tally::new());
    let mut reassembler = Reassembler::new(BOUNDS).expect("good bounds");
    let (mut now, options) = (0, ParseOptions::TRUSTED);
    while !input.is_empty() {
        let (kind, place, len) = (input.u8(), input.u16(), input.u8());
        now += u64::from(kind >> 4) * 10_000;
        let frame = match kind & 4 {
            0 => fragment(kind & 3, place & 0x200f, usize::from(len & 31) * 8),
            _ => fragment(kind & 3, place, usize::from(len)),
        };
        let Some(mbuf) = cache.alloc_from(&frame) else {
            continue;
        };
        if classify(&mbuf, &options) != Err(Cause::IpFragment) {
            cache.free(mbuf);
            continue;
        }
        tally.count_from_wire(1, frame.len() as u64);
        if let Some(whole) = reassembler.take(mbuf, Ns(now), &mut cache, &mut tally) {
            is_whole(&whole);
            tally.count_delivered(whole.frames);
            cache.free(whole.mbuf);
        }
        assert!(pool.buffers() - pool.available() - cache.len() <= BOUNDS.buffers);
    }
    reassembler.finish(&mut cache, &mut tally);
    let balance = tally.view().balance();
    assert!(balance.is_balanced(), "{balance}");
    drop(cache);
    assert_full(pool);
}));
