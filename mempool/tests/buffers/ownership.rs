//! No buffer is lost and none is freed twice, by any sequence of operations.

use std::collections::VecDeque;

use bytes::Bytes;
use pollux_mempool::{Burst, Frozen, Mbuf, Mempool, PoolConfig, PoolError, mbuf_ring};
use proptest::prelude::*;

use crate::pool;

#[test]
fn a_buffer_outlives_every_handle_of_its_pool() {
    let pool = pool(16, 128);
    let mut cache = pool.cache(8).unwrap();
    let mut mbuf = cache.alloc().unwrap();
    mbuf.append(4).unwrap().copy_from_slice(b"last");
    let bytes = mbuf.freeze().into_bytes().unwrap();
    drop(cache);
    drop(pool);
    assert_eq!(&bytes[..], b"last");
    std::thread::spawn(move || drop(bytes)).join().unwrap();
}

#[test]
fn allocation_ends_at_the_pools_size_and_a_bypass_works() {
    let pool = pool(100, 128);
    let mut cache = pool.cache(32).unwrap();
    let mut burst = Burst::<128>::new();
    assert_eq!(cache.alloc_burst(&mut burst, 128), 100);
    assert!(cache.alloc().is_none() && pool.alloc().is_none());
    cache.free_burst(&mut burst);
    assert!(cache.len() <= 32);
    cache.flush();
    assert_eq!(pool.available(), 100);
}

#[test]
fn only_as_many_buffers_go_round_as_were_needed_at_once() {
    let pool = pool(100, 128);
    let mut seen = [false; 100];
    for n in [3, 2, 7, 5, 7] {
        for _ in 0..50 {
            let mut burst = Burst::<8>::new();
            assert_eq!(pool.alloc_burst(&mut burst, n), n);
            burst
                .iter()
                .for_each(|mbuf| seen[mbuf.index() as usize] = true);
        }
    }
    assert_eq!(seen.iter().filter(|&&seen| seen).count(), 7);
    assert_eq!(pool.available(), 100);
}

#[test]
fn what_is_given_back_stays_in_front_of_the_rest() {
    let pool = pool(16, 128);
    let mut burst = Burst::<16>::new();
    assert_eq!(pool.alloc_burst(&mut burst, 16), 16);
    let order: Vec<_> = burst.iter().map(Mbuf::index).collect();
    for (wanted, taken) in [(3, 3), (0, 0), (99, 13), (1, 0)] {
        let left = burst.len();
        let mut kept = Vec::new();
        let take = |mbuf| {
            if kept.len() == wanted {
                return Err(mbuf);
            }
            kept.push(mbuf);
            Ok(())
        };
        assert_eq!(burst.as_mut().take_while(take), taken);
        let at = order.len() - left;
        assert!(
            kept.iter()
                .chain(&burst[..])
                .map(Mbuf::index)
                .eq(order[at..].iter().copied())
        );
    }
    let panicked = std::panic::catch_unwind(|| {
        let mut burst = Burst::<16>::new();
        pool.alloc_burst(&mut burst, 16);
        burst.as_mut().take_while(|_| panic!("on purpose"));
    });
    assert!(panicked.is_err());
    drop(burst);
    assert_eq!(pool.available(), 16);
}

#[test]
fn data_is_set_inside_the_room_alone() {
    let pool = pool(4, 128);
    let room = pool.stride() as u32;
    let mut mbuf = pool.alloc().unwrap();
    mbuf.append(7).unwrap();
    mbuf.add_flags(pollux_mempool::MbufFlags::CHECKSUM_TRUSTED);
    assert!(!mbuf.set_data(1, room) && !mbuf.set_data(u16::MAX, 0));
    assert!(!mbuf.set_data(0, u32::MAX));
    assert_eq!(mbuf.len(), 7);
    assert!(mbuf.set_data(3, room - 3));
    assert_eq!((mbuf.headroom(), mbuf.len()), (3, room as usize - 3));
    assert_eq!((mbuf.total_len(), mbuf.tailroom()), (mbuf.len(), 0));
    assert_eq!(mbuf.flags(), pollux_mempool::MbufFlags::default());
    let mut front = pool.alloc().unwrap();
    front.chain(mbuf).unwrap();
    assert!(!front.set_data(0, 1), "other segments hang on it");
    drop(front);
    assert_eq!(pool.available(), 4);
}

#[test]
fn a_burst_is_extended_as_far_as_buffers_are_made() {
    let pool = pool(8, 128);
    let mut burst = Burst::<4>::new();
    burst.push(pool.alloc().unwrap()).unwrap();
    let mut view = burst.as_mut();
    let made = view.extend_from(&[1, 2, 0, 4], |_, &n| {
        (n > 0).then(|| pool.alloc()).flatten()
    });
    assert_eq!((made, view.len()), (2, 3));
    assert_eq!(view.extend_from(&[1, 2], |_, _| pool.alloc()), 1);
    // What was made before a panic is in the burst.
    burst.clear();
    let mut left = 2;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        burst.as_mut().extend_from(&[(); 4], |_, ()| {
            left -= 1;
            assert!(left >= 0, "enough");
            pool.alloc()
        })
    }));
    assert!(panicked.is_err());
    assert_eq!((burst.len(), pool.available()), (2, 6));
}

#[test]
fn a_freed_buffer_is_as_new() {
    let pool = pool(2, 256);
    let mut cache = pool.cache(2).unwrap();
    for round in 0..4 {
        let mut mbuf = cache.alloc().unwrap();
        assert_eq!(
            (mbuf.len(), mbuf.total_len(), mbuf.headroom()),
            (0, 0, 128),
            "{round}"
        );
        assert_eq!((mbuf.segment_count(), mbuf.wire_time()), (1, None));
        let _ = mbuf.append(100).unwrap();
        let _ = mbuf.prepend(14).unwrap();
        mbuf.set_wire_time(pollux_mempool::time::WireTime(7));
        let other = cache.alloc().unwrap();
        mbuf.chain(other).unwrap();
        if round % 2 == 0 {
            cache.free(mbuf);
        } else {
            drop(mbuf);
        }
    }
}

#[test]
fn a_burst_of_all_kinds_goes_where_each_buffer_belongs() {
    let mine = pool(16, 64);
    let config = PoolConfig {
        buffers: 16,
        data_room: 64,
        headroom: 32,
        ..PoolConfig::default()
    };
    let other = Mempool::new(config).unwrap();
    let (mut cache, mut strangers) = (mine.cache(8).unwrap(), other.cache(8).unwrap());
    for odd in 0..4 {
        let mut burst = Burst::<4>::new();
        cache.alloc_burst(&mut burst, 3);
        for mbuf in burst.iter_mut() {
            let _ = mbuf.append(9).unwrap();
        }
        let last = match odd {
            0 => cache.alloc(),
            1 => strangers.alloc_from(b"of another pool"),
            2 => cache.alloc_from(&[7; 200]),
            _ => strangers.alloc_from(&[7; 200]),
        };
        burst.push(last.unwrap()).unwrap();
        burst.swap(0, odd);
        cache.free_burst(&mut burst);
        assert!(burst.is_empty());
    }
    drop((cache, strangers));
    for (pool, headroom) in [(mine, 128), (other, 32)] {
        let mut all = Burst::<16>::new();
        assert_eq!(pool.alloc_burst(&mut all, 16), 16);
        for mbuf in all.iter() {
            assert_eq!((mbuf.len(), mbuf.total_len()), (0, 0));
            assert_eq!((mbuf.headroom(), mbuf.segment_count()), (headroom, 1));
        }
    }
}

#[test]
fn chains_read_as_one_frame() {
    let pool = pool(64, 64);
    let mut cache = pool.cache(8).unwrap();
    let data: Vec<u8> = (0..1000u32).map(|i| i as u8).collect();
    let mut frame = cache.alloc_from(&data).unwrap();
    assert_eq!((frame.total_len(), frame.segment_count()), (1000, 16));
    assert_eq!(frame.segments().collect::<Vec<_>>().concat(), data);
    let mut part = [0; 200];
    assert_eq!(frame.copy_to(150, &mut part), 200);
    assert_eq!(part[..], data[150..350]);
    assert_eq!(frame.copy_to(950, &mut part), 50);
    frame.truncate(130);
    assert_eq!((frame.total_len(), frame.segment_count()), (130, 3));
    frame.append(5).unwrap().fill(9);
    assert_eq!(frame.total_len(), 135);
    let rest = frame.split_off().unwrap();
    assert_eq!(
        (frame.total_len(), rest.total_len(), rest.segment_count()),
        (64, 71, 2)
    );
    drop((frame, rest));
    drop(cache);
    assert_eq!(pool.available(), 64);
}

#[test]
fn a_frame_that_the_pool_cannot_hold_takes_nothing() {
    let pool = pool(4, 64);
    let mut cache = pool.cache(2).unwrap();
    assert!(cache.alloc_from(&[0; 64 * 5]).is_none());
    assert!(cache.alloc_from(&[0; 64 * 4]).is_some());
    drop(cache);
    assert_eq!(pool.available(), 4);
}

#[test]
fn limits_are_named() {
    let error = |config| Mempool::new(config).unwrap_err().to_string();
    let base = PoolConfig::default();
    assert_eq!(
        error(PoolConfig { buffers: 0, ..base }),
        "a pool of 0 buffers: it must have 1 to 67108864"
    );
    assert!(
        error(PoolConfig {
            data_room: 63,
            ..base
        })
        .contains("at least 64 B")
    );
    assert!(
        error(PoolConfig {
            headroom: 4097,
            ..base
        })
        .contains("at most 4096 B")
    );
    let pool = pool(8, 64);
    assert!(matches!(
        pool.cache(9),
        Err(PoolError::Cache { cache: 9, pool: 8 })
    ));
    assert!(matches!(pool.cache(1), Err(PoolError::Cache { .. })));
}

#[test]
fn frozen_frames_share_and_thaw() {
    let pool = pool(8, 64);
    let mut cache = pool.cache(4).unwrap();
    let frozen = cache.alloc_from(b"shared").unwrap().freeze();
    let other = frozen.clone();
    let frozen = frozen.try_thaw().unwrap_err();
    assert_eq!(other.data(), b"shared");
    drop(other);
    let mut thawed = frozen.try_thaw().unwrap();
    thawed.data_mut()[0] = b'S';
    assert_eq!(thawed.data(), b"Shared");
    let chained = cache
        .alloc_from(&[7; 150])
        .unwrap()
        .freeze()
        .into_bytes()
        .unwrap_err();
    let parts: Vec<Bytes> = chained.segment_bytes().collect();
    assert_eq!(parts.concat(), [7; 150]);
    drop((thawed, chained, parts, cache));
    assert_eq!(pool.available(), 8);
}

#[test]
fn buffers_in_a_ring_are_not_lost_with_its_ends() {
    for producer_first in [true, false] {
        let pool = pool(8, 64);
        let (mut producer, consumer) = mbuf_ring(8).unwrap();
        let mut burst = Burst::<8>::new();
        pool.alloc_burst(&mut burst, 5);
        assert_eq!(producer.push(&mut burst.as_mut()), 5);
        if producer_first {
            drop(producer);
            drop(consumer);
        } else {
            drop(consumer);
            pool.alloc_burst(&mut burst, 3);
            producer.push(&mut burst.as_mut());
            drop(producer);
        }
        drop(burst);
        assert_eq!(pool.available(), 8);
    }
}

#[derive(Clone, Debug)]
enum Op {
    AllocBurst(usize),
    AllocFrame(usize),
    FreeBurst,
    FreeOne,
    Drop,
    Chain,
    Split,
    Truncate(usize),
    Freeze,
    CloneFrozen,
    Thaw,
    DropFrozen,
    Bytes,
    DropBytes,
    Push,
    Pop,
    DropElsewhere,
    Foreign,
}

fn op() -> impl Strategy<Value = Op> {
    use Op::*;
    prop_oneof![
        (0..40usize).prop_map(AllocBurst),
        (0..600usize).prop_map(AllocFrame),
        (0..300usize).prop_map(Truncate),
        prop::sample::select(vec![
            FreeBurst,
            FreeOne,
            Drop,
            Chain,
            Split,
            Freeze,
            CloneFrozen,
            Thaw,
            DropFrozen,
            Bytes,
            DropBytes,
            Push,
            Pop,
            DropElsewhere,
            Foreign,
        ]),
    ]
}

/// A frame is filled with one byte; another owner of its memory would change some of them.
fn check(frame: &Mbuf) {
    let mut bytes = frame.segments().flatten();
    if let Some(first) = bytes.next() {
        assert!(
            bytes.all(|byte| byte == first),
            "a frame was overwritten by another owner"
        );
    }
}

proptest! {
    #[test]
    fn the_pool_ends_full(ops in prop::collection::vec(op(), 1..200), cache_size in 2..64usize) {
        let (mine, foreign) = (pool(64, 64), pool(16, 64));
        {
            let mut cache = mine.cache(cache_size).unwrap();
            let mut strangers = foreign.cache(4).unwrap();
            let mut burst = Burst::<48>::new();
            let mut frames: VecDeque<Mbuf> = VecDeque::new();
            let mut frozen: VecDeque<Frozen> = VecDeque::new();
            let mut bytes: VecDeque<Bytes> = VecDeque::new();
            let (mut producer, mut consumer) = mbuf_ring(24).unwrap();
            for (i, op) in ops.into_iter().enumerate() {
                match op {
                    Op::AllocBurst(n) => { cache.alloc_burst(&mut burst, n); }
                    Op::AllocFrame(n) => frames.extend(cache.alloc_from(&vec![i as u8; n])),
                    Op::FreeBurst => cache.free_burst(&mut burst),
                    Op::FreeOne => if let Some(frame) = frames.pop_front() {
                        check(&frame);
                        cache.free(frame);
                    },
                    Op::Drop => drop(frames.pop_back()),
                    Op::Chain => if let (Some(mut a), Some(b)) = (frames.pop_front(), burst.pop()) {
                        if b.segment_count() == 1 {
                            a.chain(b).unwrap();
                        }
                        frames.push_back(a);
                    },
                    Op::Split => if let Some(mut a) = frames.pop_front() {
                        frames.extend(a.split_off());
                        frames.push_back(a);
                    },
                    Op::Truncate(n) => if let Some(a) = frames.front_mut() { a.truncate(n) },
                    Op::Freeze => frozen.extend(frames.pop_front().map(Mbuf::freeze)),
                    Op::CloneFrozen => frozen.extend(frozen.front().cloned()),
                    Op::Thaw => match frozen.pop_front().map(Frozen::try_thaw) {
                        Some(Ok(mbuf)) => frames.push_back(mbuf),
                        Some(Err(shared)) => frozen.push_back(shared),
                        None => {}
                    },
                    Op::DropFrozen => drop(frozen.pop_back()),
                    Op::Bytes => match frozen.pop_front().map(Frozen::into_bytes) {
                        Some(Ok(b)) => bytes.push_back(b),
                        Some(Err(chained)) => bytes.extend(chained.segment_bytes()),
                        None => {}
                    },
                    Op::DropBytes => drop(bytes.pop_front()),
                    Op::Push => { producer.push(&mut burst.as_mut()); }
                    Op::Pop => { consumer.pop(&mut burst.as_mut()); }
                    Op::DropElsewhere => {
                        let taken = frames.pop_front();
                        std::thread::spawn(move || drop(taken)).join().unwrap();
                    }
                    Op::Foreign => frames.extend(strangers.alloc_from(&[i as u8; 100])),
                }
                for frame in &frames {
                    let bytes: usize = frame.segments().map(<[u8]>::len).sum();
                    prop_assert_eq!(bytes, frame.total_len());
                    prop_assert_eq!(frame.segments().count(), frame.segment_count());
                }
            }
        }
        prop_assert_eq!(mine.available(), 64);
        prop_assert_eq!(foreign.available(), 16);
    }
}

#[test]
fn cores_share_a_pool_and_it_ends_full() {
    const FRAMES: u64 = 100_000;
    let pool = pool(512, 64);
    std::thread::scope(|scope| {
        let (mut producer, mut consumer) = mbuf_ring(128).unwrap();
        scope.spawn(|| {
            let (mut cache, mut burst) = (pool.cache(64).unwrap(), Burst::<32>::new());
            let mut sent = 0;
            while sent < FRAMES {
                if burst.is_empty() {
                    cache.alloc_burst(&mut burst, 32);
                    for (mbuf, number) in burst.iter_mut().zip(sent..) {
                        mbuf.append(8)
                            .unwrap()
                            .copy_from_slice(&number.to_le_bytes());
                    }
                }
                let n = producer.push(&mut burst.as_mut());
                sent += n as u64;
                if n == 0 {
                    std::thread::yield_now();
                }
            }
            drop(producer);
        });
        scope.spawn(|| {
            let (mut cache, mut burst) = (pool.cache(64).unwrap(), Burst::<32>::new());
            let mut next = 0u64;
            while next < FRAMES {
                if consumer.pop(&mut burst.as_mut()) == 0 {
                    std::thread::yield_now();
                }
                for mbuf in burst.iter() {
                    assert_eq!(mbuf.data(), next.to_le_bytes());
                    next += 1;
                }
                cache.free_burst(&mut burst);
            }
            drop(consumer);
        });
    });
    assert_eq!(pool.available(), 512);
}

/// Buffers that came back by different ways are all free, and counted once.
#[test]
fn what_is_free_is_counted_wherever_it_is() {
    let pool = pool(64, 64);
    let (mut burst, mut cache) = (Burst::<32>::new(), pool.cache(8).unwrap());
    assert!(pool.has(64) && !pool.has(65));
    pool.alloc_burst(&mut burst, 32);
    assert!(pool.has(32) && !pool.has(33));
    // Some through a cache, some dropped, some never taken.
    cache.free_front(&mut burst.as_mut(), 12);
    drop(cache);
    burst.take_front(12, drop);
    assert_eq!(pool.available(), 56);
    assert!(pool.has(0) && pool.has(40) && pool.has(56) && !pool.has(57));
    burst.clear();
    assert_eq!(pool.available(), 64);
}
