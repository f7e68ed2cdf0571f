//! The rings against a plain queue, under random operations, and between threads.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::thread;

use pollux_mempool::ring::{MAX_CAPACITY, Mpmc, RingError, spsc};
use proptest::prelude::*;

/// One side of an operation on either ring, so that one oracle serves both.
trait Ring {
    fn push_bulk(&mut self, items: &[u64]) -> bool;
    fn push_burst(&mut self, items: &[u64]) -> usize;
    fn pop_bulk(&mut self, out: &mut [MaybeUninit<u64>]) -> bool;
    fn pop_burst(&mut self, out: &mut [MaybeUninit<u64>]) -> usize;
    fn len_free(&self) -> (usize, usize);
}

impl Ring for Mpmc<u64> {
    fn push_bulk(&mut self, items: &[u64]) -> bool {
        Mpmc::push_bulk(self, items)
    }
    fn push_burst(&mut self, items: &[u64]) -> usize {
        Mpmc::push_burst(self, items)
    }
    fn pop_bulk(&mut self, out: &mut [MaybeUninit<u64>]) -> bool {
        Mpmc::pop_bulk(self, out)
    }
    fn pop_burst(&mut self, out: &mut [MaybeUninit<u64>]) -> usize {
        Mpmc::pop_burst(self, out)
    }
    fn len_free(&self) -> (usize, usize) {
        (self.len(), self.free())
    }
}

impl Ring for (spsc::Producer<u64>, spsc::Consumer<u64>) {
    fn push_bulk(&mut self, items: &[u64]) -> bool {
        self.0.push_bulk(items)
    }
    fn push_burst(&mut self, items: &[u64]) -> usize {
        self.0.push_burst(items)
    }
    fn pop_bulk(&mut self, out: &mut [MaybeUninit<u64>]) -> bool {
        self.1.pop_bulk(out)
    }
    fn pop_burst(&mut self, out: &mut [MaybeUninit<u64>]) -> usize {
        self.1.pop_burst(out)
    }
    fn len_free(&self) -> (usize, usize) {
        assert_eq!(self.0.len(), self.1.len());
        assert_eq!(self.0.free(), self.1.free());
        (self.0.len(), self.1.free())
    }
}

#[derive(Clone, Debug)]
enum Op {
    PushBulk(usize),
    PushBurst(usize),
    PopBulk(usize),
    PopBurst(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        (0..40_usize).prop_map(Op::PushBulk),
        (0..40_usize).prop_map(Op::PushBurst),
        (0..40_usize).prop_map(Op::PopBulk),
        (0..40_usize).prop_map(Op::PopBurst),
    ];
    proptest::collection::vec(op, 1..200)
}

/// The first `n` items of what a pop has filled.
fn filled(out: &[MaybeUninit<u64>], n: usize) -> Vec<u64> {
    // SAFETY: the ring says that it has filled `n` items.
    out[..n]
        .iter()
        .map(|item| unsafe { item.assume_init() })
        .collect()
}

fn behaves_like_a_queue(ring: &mut impl Ring, capacity: usize, ops: Vec<Op>) {
    let mut model = VecDeque::new();
    let mut next = 0_u64;
    let mut fresh = |n: usize| -> Vec<u64> {
        next += n as u64;
        (next - n as u64..next).collect()
    };
    for op in ops {
        let room = capacity - model.len();
        match op {
            Op::PushBulk(n) => {
                let items = fresh(n);
                assert_eq!(ring.push_bulk(&items), n <= room);
                if n <= room {
                    model.extend(items);
                }
            }
            Op::PushBurst(n) => {
                let items = fresh(n);
                assert_eq!(ring.push_burst(&items), n.min(room));
                model.extend(&items[..n.min(room)]);
            }
            Op::PopBulk(n) => {
                let mut out = vec![MaybeUninit::uninit(); n];
                let there = n <= model.len();
                assert_eq!(ring.pop_bulk(&mut out), there);
                if there {
                    assert_eq!(filled(&out, n), model.drain(..n).collect::<Vec<_>>());
                }
            }
            Op::PopBurst(n) => {
                let mut out = vec![MaybeUninit::uninit(); n];
                let there = n.min(model.len());
                assert_eq!(ring.pop_burst(&mut out), there);
                assert_eq!(
                    filled(&out, there),
                    model.drain(..there).collect::<Vec<_>>()
                );
            }
        }
        assert_eq!(ring.len_free(), (model.len(), capacity - model.len()));
    }
}

proptest! {
    #[test]
    fn mpmc_behaves_like_a_queue(capacity in 1..70_usize, ops in ops()) {
        behaves_like_a_queue(&mut Mpmc::new(capacity).unwrap(), capacity, ops);
    }

    #[test]
    fn spsc_behaves_like_a_queue(capacity in 1..70_usize, ops in ops()) {
        behaves_like_a_queue(&mut spsc::channel(capacity).unwrap(), capacity, ops);
    }
}

#[test]
fn capacity_is_limited() {
    for capacity in [0, MAX_CAPACITY + 1, usize::MAX] {
        let error = RingError::Capacity { capacity };
        assert_eq!(Mpmc::<u32>::new(capacity).unwrap_err(), error);
        assert_eq!(spsc::channel::<u32>(capacity).unwrap_err(), error);
    }
    let text = Mpmc::<u32>::new(0).unwrap_err().to_string();
    assert!(text.contains("1..=1073741824"), "{text}");
}

#[test]
fn a_ring_larger_than_memory_is_refused() {
    // 16 KiB * 2^30 = 16 TiB.
    for error in [
        Mpmc::<[u64; 2048]>::new(MAX_CAPACITY).unwrap_err(),
        spsc::channel::<[u64; 2048]>(MAX_CAPACITY).unwrap_err(),
    ] {
        match error {
            RingError::Memory {
                capacity: MAX_CAPACITY,
                bytes,
                available,
            } => assert!(bytes > available),
            other => panic!("{other}"),
        }
        assert!(error.to_string().ends_with("are available"), "{error}");
    }
}

#[test]
fn a_ring_of_one_and_single_items() {
    let ring = Mpmc::new(1).unwrap();
    let (mut producer, mut consumer) = spsc::channel(1).unwrap();
    for k in 0..5_u8 {
        assert!(ring.push(k) && !ring.push(99));
        assert_eq!((ring.pop(), ring.pop()), (Some(k), None));
        assert!(producer.push(k) && !producer.push(99));
        assert_eq!((consumer.pop(), consumer.pop()), (Some(k), None));
    }
    assert!(ring.is_empty() && producer.is_empty() && consumer.is_empty());
}

#[test]
fn handles_notice_that_the_other_is_gone() {
    let (mut producer, mut consumer) = spsc::channel(4).unwrap();
    assert!(producer.push(7) && !producer.is_abandoned() && !consumer.is_abandoned());
    drop(producer);
    assert!(consumer.is_abandoned());
    assert_eq!((consumer.pop(), consumer.pop()), (Some(7), None));

    let (producer, consumer) = spsc::channel::<u8>(4).unwrap();
    drop(consumer);
    assert!(producer.is_abandoned());
}

const ITEMS: u64 = if cfg!(miri) { 900 } else { 300_000 };

#[test]
fn spsc_between_threads_keeps_order() {
    let (mut producer, mut consumer) = spsc::channel(100).unwrap();
    let pushing = thread::spawn(move || {
        let mut next = 0;
        while next < ITEMS {
            let n = (next % 37 + 1).min(ITEMS - next);
            let items: Vec<u64> = (next..next + n).collect();
            let pushed = if next % 2 == 0 {
                producer.push_burst(&items)
            } else if producer.push_bulk(&items) {
                items.len()
            } else {
                0
            };
            next += pushed as u64;
            if pushed == 0 {
                thread::yield_now();
            }
        }
    });
    let mut out = [MaybeUninit::uninit(); 32];
    let mut next = 0;
    while next < ITEMS {
        let n = consumer.pop_burst(&mut out);
        for item in filled(&out, n) {
            assert_eq!(item, next);
            next += 1;
        }
        if n == 0 {
            thread::yield_now();
        }
    }
    pushing.join().unwrap();
    assert!(consumer.is_empty());
}

#[test]
fn mpmc_between_threads_loses_and_doubles_nothing() {
    const EACH: u64 = ITEMS / 3;
    let ring = Mpmc::new(100).unwrap();
    let left = std::sync::atomic::AtomicU64::new(2 * EACH);
    thread::scope(|scope| {
        for producer in 0..2_u64 {
            let ring = &ring;
            scope.spawn(move || {
                let mut next = 0;
                while next < EACH {
                    let n = (next % 37 + 1).min(EACH - next);
                    let items: Vec<u64> = (next..next + n).map(|k| producer << 32 | k).collect();
                    let pushed = ring.push_burst(&items) as u64;
                    next += pushed;
                    if pushed == 0 {
                        thread::yield_now();
                    }
                }
            });
        }
        let consumers = [16, 5].map(|most| {
            let (ring, left) = (&ring, &left);
            scope.spawn(move || {
                let mut out = [MaybeUninit::uninit(); 16];
                let (mut count, mut sum, mut last) = ([0_u64; 2], [0_u64; 2], [None; 2]);
                while left.load(std::sync::atomic::Ordering::Relaxed) > 0 {
                    let n = ring.pop_burst(&mut out[..most]);
                    for item in filled(&out, n) {
                        let (producer, k) = ((item >> 32) as usize, item & 0xffff_ffff);
                        assert!(
                            last[producer] < Some(k),
                            "a producer's items change their order"
                        );
                        last[producer] = Some(k);
                        count[producer] += 1;
                        sum[producer] += k;
                    }
                    left.fetch_sub(n as u64, std::sync::atomic::Ordering::Relaxed);
                    if n == 0 {
                        thread::yield_now();
                    }
                }
                (count, sum)
            })
        });
        let [(count_a, sum_a), (count_b, sum_b)] = consumers.map(|thread| thread.join().unwrap());
        for producer in 0..2 {
            assert_eq!(count_a[producer] + count_b[producer], EACH);
            assert_eq!(sum_a[producer] + sum_b[producer], EACH * (EACH - 1) / 2);
        }
    });
    assert!(ring.is_empty());
}
