//! AF_PACKET transmit ring, whose slots the kernel returns in an arbitrary way.
//!
//! Each accepted frame is sent, refused, or in flight, and never more frames are in flight than the
//! ring has slots; the buffers are freed at once.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Burst, Mempool};
use pollux_pmd::drivers::af_packet::hostile::HostileTxRing;
use pollux_pmd::ledger::Sent;
use pollux_pmd_fuzz::{Input, assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(64, 512);
    static RING: RefCell<HostileTxRing> = RefCell::new(
        HostileTxRing::new().expect("a packet socket: run as root, or with CAP_NET_RAW"),
    );
}

fn send(input: &mut Input, ring: &mut HostileTxRing, pool: &Mempool) {
    let mut cache = pool.cache(16).expect("a cache");
    let mut burst = Burst::<8>::new();
    // Frames that the last input has left in flight.
    for slot in 0..HostileTxRing::SLOTS {
        ring.set_status(slot, 0);
    }
    ring.tx(&mut cache, &mut burst.as_mut(), &mut Sent::new());

    let (mut sent, mut taken) = (Sent::new(), 0);
    while !input.is_empty() {
        match input.u8() % 4 {
            0 | 1 => {
                // Also longer than the link carries, and shorter than a header.
                let frame = vec![0x81; usize::from(input.u16() % 2200)];
                let mbuf = cache.alloc_from(&frame).expect("they come back at once");
                // A frame that does not fit is dropped.
                drop(burst.push(mbuf));
            }
            2 => {
                let before = burst.len();
                let n = ring.tx(&mut cache, &mut burst.as_mut(), &mut sent);
                assert_eq!(burst.len() + n, before);
                taken += n as u64;
            }
            _ => ring.set_status(input.u8().into(), input.u32() >> (input.u8() % 32)),
        }
        let view = sent.view();
        let on_the_way = taken - view.packets() - view.errors();
        assert!(on_the_way <= HostileTxRing::SLOTS as u64);
    }
}

fuzz_target!(|data: &[u8]| {
    RING.with_borrow_mut(|ring| {
        POOL.with(|pool| {
            send(&mut Input(data), ring, pool);
            assert_full(pool);
        });
    });
});
