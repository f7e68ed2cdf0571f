//! Throughput of the rings: both sides in one process, each on a thread of its own, or by turns on
//! one. `cargo test --release -p pollux-pmd --lib virtio::tests::speed -- --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use pollux_mempool::Burst;

use super::{Pair, RingFeatures, Side};

const SIZE: u16 = 1024;
const TIME: Duration = Duration::from_millis(150);

fn fill(side: &mut Side, burst: &mut Burst<32>, len: usize) {
    side.cache.alloc_burst(burst, 32 - burst.len());
    for mbuf in burst.iter_mut().filter(|mbuf| mbuf.is_empty()) {
        assert!(mbuf.append(len).is_some());
    }
}

fn mpps(frames: u64, since: Instant) -> f64 {
    frames as f64 / since.elapsed().as_secs_f64() / 1e6
}

const RUNS: usize = 8;

/// Sends a burst.
type Sender = Box<dyn FnMut() + Send>;
/// Receives up to a burst and frees it; returns the number of frames.
type Receiver = Box<dyn FnMut() -> usize + Send>;

fn ends(features: RingFeatures, from_driver: bool, len: usize) -> (Sender, Receiver) {
    let side = || Side::new(4096, 2048, 128);
    let Pair {
        mut driver,
        mut device,
        mut driver_rx,
        mut driver_tx,
        mut device_rx,
        mut device_tx,
    } = Pair::new(SIZE, features, side(), side());
    let (mut out, mut arrived) = (Burst::new(), Burst::<32>::new());
    if from_driver {
        let send = move || {
            fill(&mut driver, &mut out, len);
            driver_tx.tx(&mut driver.cache, &mut out.as_mut(), &mut driver.sent);
        };
        let receive = move || {
            let Side {
                cache,
                origin,
                tally,
                ..
            } = &mut device;
            let n = device_rx.rx(cache, &mut arrived.as_mut(), origin, tally);
            cache.free_burst(&mut arrived);
            n
        };
        (Box::new(send), Box::new(receive))
    } else {
        let send = move || {
            fill(&mut device, &mut out, len);
            device_tx.tx(&mut device.cache, &mut out.as_mut(), &mut device.sent);
        };
        let receive = move || {
            let Side {
                cache,
                origin,
                tally,
                ..
            } = &mut driver;
            let n = driver_rx.rx(cache, &mut arrived.as_mut(), origin, tally);
            cache.free_burst(&mut arrived);
            n
        };
        (Box::new(send), Box::new(receive))
    }
}

/// By turns on one thread: the cost of both sides together, with warm caches.
fn one_thread((mut send, mut receive): (Sender, Receiver)) -> f64 {
    let (mut frames, start) = (0, Instant::now());
    while start.elapsed() < TIME {
        for _ in 0..64 {
            send();
            frames += receive() as u64;
        }
    }
    mpps(frames, start)
}

/// Each side on a thread of its own.
fn two_threads((mut send, mut receive): (Sender, Receiver)) -> f64 {
    let stop = AtomicBool::new(false);
    let cores = core_affinity::get_core_ids().unwrap();
    let (here, there) = (cores[0], cores[cores.len() - 1]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            core_affinity::set_for_current(here);
            while !stop.load(Relaxed) {
                send();
            }
        });
        let receiver = scope.spawn(|| {
            core_affinity::set_for_current(there);
            let (mut frames, start) = (0, Instant::now());
            while start.elapsed() < TIME {
                for _ in 0..64 {
                    frames += receive() as u64;
                }
            }
            let result = mpps(frames, start);
            stop.store(true, Relaxed);
            result
        });
        receiver.join().unwrap()
    })
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    let len = std::env::var("LEN").map_or(64, |len| len.parse().unwrap());
    println!("{len} B, Mpps        driver to device       device to driver");
    println!("                    1 thread  2 threads    1 thread  2 threads");
    for (name, packed, in_order, mergeable) in [
        ("split", false, false, false),
        ("split mergeable", false, false, true),
        ("split in order", false, true, true),
        ("packed", true, false, true),
        ("packed in order", true, true, false),
        ("packed in order m.", true, true, true),
    ] {
        let features = RingFeatures {
            packed,
            in_order,
            mergeable,
            ..RingFeatures::default()
        };
        if std::env::var("ONLY").is_ok_and(|only| only != name) {
            continue;
        }
        print!("{name:20}");
        for from_driver in [true, false] {
            // The best of several: other load on the machine only makes it slower.
            for (threads, run) in [("1", one_thread as fn(_) -> _), ("2", two_threads)] {
                if std::env::var("THREADS").is_ok_and(|only| only != threads) {
                    continue;
                }
                let runs = (0..RUNS).map(|_| run(ends(features, from_driver, len)));
                print!("{:10.1}", runs.fold(0.0, f64::max));
            }
            print!("  ");
        }
        println!();
    }
}
