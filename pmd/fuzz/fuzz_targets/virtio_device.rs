//! A virtio device whose driver offers arbitrary descriptors, and overwrites all the memory that it
//! shares.
//!
//! Nothing outside that memory is read or written, each invalid buffer counts once, and a broken
//! queue stays idle.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Burst, Mempool};
use pollux_pmd::Tally;
use pollux_pmd::driver::Origin;
use pollux_pmd::drivers::hostile_virtio::HostileDriver;
use pollux_pmd::ledger::Sent;
use pollux_pmd_fuzz::{Input, assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(64, 512);
}

/// A number near the ring's slots, or any.
fn number(input: &mut Input) -> u16 {
    let (kind, number) = (input.u8(), input.u16());
    if kind & 1 == 0 { number % 72 } else { number }
}

/// Often a part of the shared memory.
fn piece(input: &mut Input) -> (u64, u32) {
    match input.u8() % 4 {
        0 => (input.u64(), input.u32()),
        1 => {
            let end = HostileDriver::GUEST + HostileDriver::LEN as u64;
            (end - u64::from(input.u8()), input.u8().into())
        }
        _ => (
            HostileDriver::GUEST + u64::from(input.u16()),
            number(input).into(),
        ),
    }
}

fn play(input: &mut Input, pool: &Mempool) {
    let mut cache = pool.cache(16).expect("a cache");
    let mut driver = HostileDriver::new(input.u8(), input.u8());
    let (mut origin, mut tally, mut sent) = (Origin::new(0, 0), Tally::new(), Sent::new());
    let mut burst = Burst::<16>::new();
    let (mut delivered, mut taken) = (0, 0);
    while !input.is_empty() {
        let queue = input.u8();
        match input.u8() % 6 {
            0 => {
                let broken = driver.are_broken().0;
                let n = driver.rx(&mut cache, &mut burst.as_mut(), &mut origin, &mut tally);
                assert!(n == 0 || !broken);
                assert_eq!(n, burst.len());
                assert!(burst.iter().all(|mbuf| !mbuf.is_empty()));
                delivered += n as u64;
                cache.free_burst(&mut burst);
            }
            1 => {
                for _ in 0..queue % 16 {
                    let frame = vec![queue; usize::from(input.u16() % 2000)];
                    let mbuf = cache.alloc_from(&frame);
                    drop(mbuf.map(|mbuf| burst.push(mbuf)));
                }
                let broken = driver.are_broken().1;
                let n = driver.tx(&mut cache, &mut burst.as_mut(), &mut sent);
                assert!(n == 0 || !broken);
                taken += n as u64;
                cache.free_burst(&mut burst);
            }
            2 | 3 => {
                // The defined flags, and all others.
                let flags = match input.u8() {
                    flags @ 0..0x80 => u16::from(flags) & 7,
                    _ => input.u16(),
                };
                let (piece, id) = (piece(input), (number(input), number(input)));
                driver.offer(queue, piece, flags, id, input.u8() & 1 == 0);
            }
            4 => driver.set_available_index(queue, number(input)),
            _ => {
                let (at, len) = (input.u16(), input.u8());
                driver.scribble(at, input.bytes(usize::from(len % 64)));
            }
        }
        let view = sent.view();
        assert_eq!(view.packets() + view.errors(), taken);
    }
    let balance = tally.view().balance();
    assert_eq!(balance.from_wire, delivered + balance.dropped_total());
}

fuzz_target!(|data: &[u8]| {
    POOL.with(|pool| {
        play(&mut Input(data), pool);
        assert_full(pool);
    });
});
