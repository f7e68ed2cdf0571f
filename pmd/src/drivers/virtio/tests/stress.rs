//! Stress test: both sides run concurrently, each on a thread of its own; the device returns what
//! it receives.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pollux_mempool::Burst;
use pollux_pmd_testkit::threads::Ends;

use super::*;

const FRAMES: u32 = 2000;

/// Without merging, a receive buffer must hold the longest frame.
fn len(number: u32, features: RingFeatures) -> usize {
    match number % 64 {
        0 if features.mergeable => 9000,
        0..8 => 1514,
        _ => 60 + number as usize % 100,
    }
}

fn echo(size: u16, features: RingFeatures) {
    let side = || Side::new(2048, 2048, 128);
    let Pair {
        mut driver,
        mut device,
        mut driver_rx,
        mut driver_tx,
        mut device_rx,
        mut device_tx,
    } = Pair::new(size, features, side(), side());
    let pools = [driver.pool.clone(), device.pool.clone()];
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut burst = Burst::<32>::new();
            let Side {
                cache,
                origin,
                tally,
                sent,
                ..
            } = &mut device;
            while !done.load(Relaxed) {
                device_rx.rx(cache, &mut burst.as_mut(), origin, tally);
                device_tx.tx(cache, &mut burst.as_mut(), sent);
                std::thread::yield_now();
            }
        });
        let _ends = Ends(&done);
        let (mut out, mut back) = (Burst::<32>::new(), Burst::<32>::new());
        let (mut next, mut expected) = (0, 0);
        while expected < FRAMES {
            while next < FRAMES && next - expected < 256 && !out.is_full() {
                let Some(mbuf) = driver.frame(&payload(next, len(next, features)), &[]) else {
                    break;
                };
                out.push(mbuf).unwrap();
                next += 1;
            }
            let Side {
                cache,
                origin,
                tally,
                sent,
                ..
            } = &mut driver;
            driver_tx.tx(cache, &mut out.as_mut(), sent);
            driver_rx.rx(cache, &mut back.as_mut(), origin, tally);
            for mbuf in back.iter() {
                assert_eq!(
                    bytes(mbuf),
                    payload(expected, len(expected, features)),
                    "{features:?}"
                );
                expected += 1;
            }
            cache.free_burst(&mut back);
            assert!(!driver_rx.is_broken() && !driver_tx.is_broken());
            std::thread::yield_now();
        }
        driver_tx.finish(&TscClock::get(), LINGER, &mut driver.sent);
        let sent = driver.sent.view();
        assert_eq!((sent.packets(), sent.errors()), (FRAMES.into(), 0));
    });
    assert_eq!(device.sent.view().packets(), u64::from(FRAMES));
    assert_eq!(device.tally.view().balance().dropped_total(), 0);
    drop((driver, device, driver_rx, driver_tx));
    for pool in pools {
        assert_eq!(pool.available(), pool.buffers());
    }
}

#[test]
fn both_sides_at_once() {
    for features in all_features() {
        let size = if features.packed { 250 } else { 256 };
        echo(size, features);
    }
}
