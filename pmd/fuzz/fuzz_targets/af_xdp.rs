//! AF_XDP receive rings with arbitrary values of the kernel.
//!
//! No buffer is returned twice, each frame is counted, and all buffers are back at the end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Burst, Mempool};
use pollux_pmd::Tally;
use pollux_pmd::driver::Origin;
use pollux_pmd::drivers::af_xdp::hostile::HostileRing;
use pollux_pmd_fuzz::{Input, assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(64, 2048);
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    POOL.with(|pool| {
        let mut cache = pool.cache(16).expect("a cache");
        let mut queue = HostileRing::new(pool).expect("memory files");
        let (mut origin, mut tally) = (Origin::new(0, 0), Tally::new());
        let (mut held, mut delivered) = (Burst::<24>::new(), 0);
        while !input.is_empty() {
            match input.u8() % 8 {
                // A correct kernel, and one that is nearly correct.
                0..=2 => {
                    let (len, options) = (u32::from(input.u16()) % 2400, input.u8());
                    if let Some(address) = queue.take_posted() {
                        let skip = if options & 2 == 0 {
                            256
                        } else {
                            input.u16().into()
                        };
                        queue.receive(address | skip << 48, len, u32::from(options) & 1);
                    }
                }
                3 => {
                    queue.receive(input.u64(), input.u32(), input.u8().into());
                }
                4 => {
                    queue.receive(u64::from(input.u32()) % 150_000, input.u16().into(), 0);
                }
                5 => {
                    let flags = input.u8();
                    queue.lie(flags & 4 != 0, input.u32() >> (flags >> 3), flags.into());
                }
                _ => {
                    if held.free() < 8 {
                        cache.free_burst(&mut held);
                    }
                    let out = &mut held.as_mut();
                    delivered += queue.rx(&mut cache, out, &mut origin, &mut tally);
                    for (i, mbuf) in held.iter().enumerate() {
                        assert!(held[..i].iter().all(|other| other.index() != mbuf.index()));
                        let bytes: usize = mbuf.segments().map(<[u8]>::len).sum();
                        assert_eq!(bytes, mbuf.total_len());
                    }
                }
            }
        }
        queue.finish(&mut tally);
        let balance = tally.view().balance();
        assert_eq!(
            balance.from_wire,
            balance.dropped_total() + delivered as u64
        );
        drop((queue, held, cache));
        assert_full(pool);
    });
});
