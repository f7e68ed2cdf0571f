//! What several threads do to the same buffers at once, with the code as it ships. A run under
//! ThreadSanitizer (`scripts/tsan`) reports two accesses that nothing orders.

use std::sync::Barrier;
use std::thread;

use pollux_mempool::{BoxConsumer, Burst, box_ring, frozen_ring, mbuf_ring};

use crate::pool;

const THREADS: usize = 3;

/// The last owner of a frozen frame returns it, and the next owner writes to its bytes.
#[test]
fn the_last_owner_of_a_frozen_frame_returns_it() {
    let pool = pool(4, 64);
    let barrier = Barrier::new(THREADS);
    for round in 0..500_u32 {
        let mut mbuf = loop {
            // The last round's owners may not have returned theirs yet.
            if let Some(mbuf) = pool.alloc() {
                break mbuf;
            }
            thread::yield_now();
        };
        mbuf.append(4)
            .unwrap()
            .copy_from_slice(&round.to_le_bytes());
        let frozen = mbuf.freeze();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                let (mine, barrier) = (frozen.clone(), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    assert_eq!(mine.data(), round.to_le_bytes());
                    match mine.try_thaw() {
                        Ok(mut only) => only.data_mut().fill(0xee),
                        Err(shared) => drop(shared.clone()),
                    }
                });
            }
            drop(frozen);
        });
    }
    assert_eq!(pool.available(), 4);
}

/// A pool goes with its last handle or its last buffer, whichever thread drops it.
#[test]
fn a_pool_ends_on_any_thread() {
    for _ in 0..200 {
        let pool = pool(8, 64);
        let mut burst = Burst::<8>::new();
        pool.alloc_burst(&mut burst, 8);
        let barrier = Barrier::new(5);
        thread::scope(|scope| {
            for _ in 0..4 {
                let (two, handle) = ([burst.pop(), burst.pop()], pool.clone());
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    drop(handle);
                    drop(two);
                });
            }
            barrier.wait();
            drop(pool);
        });
    }
}

/// The ends of a ring go at the same time, with buffers in flight.
#[test]
fn a_ring_of_buffers_ends_on_either_side() {
    let pool = pool(64, 64);
    for round in 0..300 {
        let (producer, consumer) = mbuf_ring(16).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut producer = producer;
                let mut burst = Burst::<8>::new();
                for _ in 0..round % 7 {
                    pool.alloc_burst(&mut burst, 8);
                    producer.push(&mut burst.as_mut());
                }
            });
            scope.spawn(|| {
                let mut consumer = consumer;
                let mut burst = Burst::<8>::new();
                for _ in 0..round % 5 {
                    consumer.pop(&mut burst.as_mut());
                    burst.clear();
                }
            });
        });
        assert_eq!(pool.available(), 64);
    }
}

/// Two consumers share each frame, and the ends of their rings go at any time.
#[test]
fn a_ring_of_shared_frames_ends_on_either_side() {
    let pool = pool(64, 64);
    for round in 0..300_usize {
        let ((mut one, first), (mut two, second)) =
            (frozen_ring(8).unwrap(), frozen_ring(16).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..(round % 23) as u8 {
                    let Some(mut mbuf) = pool.alloc() else { break };
                    mbuf.append(1).unwrap()[0] = n;
                    let shared = mbuf.freeze();
                    // What a full ring gives back is dropped.
                    drop(one.push(shared.clone()));
                    drop(two.push(shared));
                }
                drop((one, two));
            });
            for mut consumer in [first, second] {
                scope.spawn(move || {
                    let mut last = None;
                    for _ in 0..round % 13 {
                        if let Some(frame) = consumer.pop() {
                            assert!(last < Some(frame.data()[0]));
                            last = Some(frame.data()[0]);
                        }
                    }
                });
            }
        });
        assert_eq!(pool.available(), 64);
    }
}

/// Caches of several threads refill from one free list and flush into it.
#[test]
fn caches_share_a_free_list() {
    let pool = pool(128, 64);
    thread::scope(|scope| {
        for id in 0..THREADS as u8 {
            let pool = &pool;
            scope.spawn(move || {
                let (mut cache, mut burst) = (pool.cache(16).unwrap(), Burst::<32>::new());
                for round in 0..2000 {
                    cache.alloc_burst(&mut burst, 1 + round % 32);
                    for mbuf in &mut *burst {
                        mbuf.append(64).unwrap().fill(id);
                    }
                    assert!(burst.iter().all(|mbuf| mbuf.data() == [id; 64]));
                    cache.free_burst(&mut burst);
                }
            });
        }
    });
    assert_eq!(pool.available(), 128);
}

/// Who has a box may write to it, on whichever side, and none is lost.
#[test]
fn boxes_go_round_between_two_threads() {
    let (mut there, mut work) = box_ring::<u64>(4).unwrap();
    let (mut done, mut back) = box_ring::<u64>(4).unwrap();
    let last = thread::scope(|scope| {
        scope.spawn(move || {
            while let Some(mut item) = next(&mut work) {
                *item += 1;
                // There are fewer boxes than it holds.
                assert!(done.push(item).is_ok());
            }
        });
        let rounds = if cfg!(miri) { 500 } else { 20_000 };
        let mut own: Vec<_> = (0..3).map(|_| Box::new(0)).collect();
        for _ in 0..rounds {
            match own.pop() {
                Some(item) => assert!(there.push(item).is_ok()),
                None => thread::yield_now(),
            }
            own.extend(back.pop());
        }
        drop(there);
        own.extend(std::iter::from_fn(|| next(&mut back)));
        own
    });
    assert_eq!(last.len(), 3);
    assert!(last.iter().map(|item| **item).sum::<u64>() > 0);
}

/// The next box; none when the other end is gone and all is taken.
fn next(ring: &mut BoxConsumer<u64>) -> Option<Box<u64>> {
    loop {
        let is_last = ring.is_abandoned();
        match ring.pop() {
            None if is_last => return None,
            None => thread::yield_now(),
            item => return item,
        }
    }
}
