//! AF_XDP transmit rings with arbitrary values of the kernel.
//!
//! No buffer that the kernel owns is freed, none is freed twice, and all are back at the end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Burst, Mempool};
use pollux_pmd::drivers::af_xdp::hostile::HostileTxRing;
use pollux_pmd::ledger::Sent;
use pollux_pmd_fuzz::{Input, assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(64, 2048);
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    POOL.with(|pool| {
        let mut cache = pool.cache(16).expect("a cache");
        let mut queue = HostileTxRing::new(pool).expect("memory files");
        let (mut sent, mut taken) = (Sent::new(), 0);
        while !input.is_empty() {
            match input.u8() % 8 {
                0 => queue.consume(input.u32() >> (input.u8() % 32), input.u8().into()),
                1 => queue.complete(input.u64(), u32::from(input.u8()) % 12),
                2 => queue.complete(u64::from(input.u32()) % 150_000, input.u32()),
                3 | 4 => queue.complete(queue.address(input.u8().into()), 1),
                _ => {
                    let mut burst = Burst::<4>::new();
                    for _ in 0..4 {
                        let len = usize::from(input.u16()) % 9100;
                        if let Some(mbuf) = cache.alloc_from(&vec![1; len]) {
                            drop(burst.push(mbuf));
                        }
                    }
                    taken += queue.tx(&mut cache, &mut burst.as_mut(), &mut sent);
                }
            }
        }
        let view = sent.view();
        assert!(view.packets() + view.errors() <= taken as u64);
        drop((queue, cache));
        assert_full(pool);
    });
});
