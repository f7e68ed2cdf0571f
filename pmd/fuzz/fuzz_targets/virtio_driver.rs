//! A virtio driver whose device reports arbitrary buffers as used, and overwrites the rings.
//!
//! No buffer is lost or given out twice, each frame counts once, and a broken queue stays idle.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_mempool::{Burst, Mempool};
use pollux_pmd::Tally;
use pollux_pmd::driver::Origin;
use pollux_pmd::drivers::hostile_virtio::HostileDevice;
use pollux_pmd::ledger::Sent;
use pollux_pmd_fuzz::{Input, assert_full, pool};

thread_local! {
    static POOL: Mempool = pool(128, 512);
}

/// A number near the posted ones, or any.
fn number(input: &mut Input) -> u16 {
    let (kind, number) = (input.u8(), input.u16());
    if kind & 1 == 0 { number % 72 } else { number }
}

fn play(input: &mut Input, pool: &Mempool) {
    let mut cache = pool.cache(16).expect("a cache");
    let mut device = HostileDevice::new(input.u8(), input.u8(), pool);
    let (mut origin, mut tally, mut sent) = (Origin::new(0, 0), Tally::new(), Sent::new());
    let mut burst = Burst::<16>::new();
    let (mut delivered, mut taken) = (0, 0);
    while !input.is_empty() {
        let queue = input.u8();
        match input.u8() % 8 {
            0 => {
                let broken = device.are_broken().0;
                let n = device.rx(&mut cache, &mut burst.as_mut(), &mut origin, &mut tally);
                assert!(n == 0 || !broken);
                assert_eq!(n, burst.len());
                assert!(burst.iter().all(|mbuf| !mbuf.is_empty()));
                delivered += n as u64;
                cache.free_burst(&mut burst);
            }
            1 => {
                for _ in 0..queue % 16 {
                    let frame = vec![queue; usize::from(input.u16() % 2000)];
                    // None while all buffers are posted.
                    let Some(mbuf) = cache.alloc_from(&frame) else {
                        break;
                    };
                    drop(burst.push(mbuf));
                }
                let broken = device.are_broken().1;
                let n = device.tx(&mut cache, &mut burst.as_mut(), &mut sent);
                assert!(n == 0 || !broken);
                taken += n as u64;
                cache.free_burst(&mut burst);
            }
            2 => {
                let n = device.tx(&mut cache, &mut burst.as_mut(), &mut sent);
                assert_eq!(n, 0);
            }
            3 => {
                let len = if input.u8() & 1 == 0 {
                    u32::from(number(input))
                } else {
                    input.u32()
                };
                device.give(queue, number(input), len, number(input));
            }
            4 => device.set_used_index(queue, number(input)),
            5 => device.write_header(number(input), number(input)),
            6 => {
                let (area, at, len) = (input.u8(), input.u16(), input.u8());
                device.scribble(queue, area, at, input.bytes(usize::from(len % 32)));
            }
            // The next step of a correct device.
            _ => {
                let id = number(input);
                device.write_header(id, 1);
                device.give(queue, id, 100, 1);
            }
        }
    }
    let balance = tally.view().balance();
    assert_eq!(balance.from_wire, delivered + balance.dropped_total());
    let view = sent.view();
    assert!(view.packets() + view.errors() <= taken);
    device.finish(&mut tally, &mut sent);
    assert_eq!(sent.view().packets() + sent.view().errors(), taken);
    let balance = tally.view().balance();
    assert_eq!(balance.from_wire, delivered + balance.dropped_total());
}

fuzz_target!(|data: &[u8]| {
    POOL.with(|pool| {
        play(&mut Input(data), pool);
        assert_full(pool);
    });
});
