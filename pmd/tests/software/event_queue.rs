//! Event queue against a model, and between two threads.

use std::collections::VecDeque;

use pollux_mempool::time::WireTime;
use pollux_pmd::event::{
    EventConsumer, EventError, EventFlags, EventKind, EventProducer, EventQueue, EventRecord, Full,
    RegionOptions,
};
use proptest::prelude::*;

fn queue(records: usize) -> (EventProducer, EventConsumer) {
    EventQueue::new(records, &RegionOptions::default())
        .unwrap()
        .split()
}

/// A record whose bits all derive from `n`.
fn record(n: u64) -> EventRecord {
    let mix = |k: u64| {
        (n + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(k as u32 * 7)
            ^ k
    };
    let mut payload = [0; EventRecord::PAYLOAD];
    for (k, bytes) in (1..).zip(payload.chunks_exact_mut(8)) {
        bytes.copy_from_slice(&mix(k).to_le_bytes());
    }
    EventRecord {
        wire: WireTime(n),
        index: mix(6) as u32,
        length: mix(7) as u32,
        payload,
        sequence: n as u32,
        stream: mix(8) as u16,
        kind: EventKind(mix(9) as u8),
        flags: EventFlags(mix(10) as u8 & 0x7f),
    }
}

#[test]
fn sizes_out_of_their_limits_are_refused_by_name() {
    for records in [0, 1, 3, 1000, 1 << 21, usize::MAX] {
        let refused = EventQueue::new(records, &RegionOptions::default())
            .err()
            .unwrap();
        assert!(matches!(refused, EventError::Records(n) if n == records));
        assert!(
            refused
                .to_string()
                .contains("power of two from 2 to 1048576")
        );
    }
}

#[test]
fn a_full_queue_takes_nothing_and_loses_nothing() {
    let (mut producer, mut consumer) = queue(4);
    for pass in 0..9 {
        for n in 0..4 {
            producer.push(&record(pass * 4 + n)).unwrap();
        }
        assert_eq!(producer.push(&record(99)), Err(Full));
        assert!(!producer.has_room());
        for n in 0..4 {
            assert_eq!(consumer.poll(), Some(record(pass * 4 + n)));
        }
        assert_eq!(consumer.poll(), None);
    }
}

#[test]
fn records_come_back_in_batches_and_when_the_consumer_is_idle() {
    let (mut producer, mut consumer) = queue(8);
    let mut fill = || {
        let mut pushed = 0;
        while producer.push(&record(0)).is_ok() {
            pushed += 1;
        }
        pushed
    };
    assert_eq!(fill(), 8);
    assert!(consumer.poll().is_some());
    assert_eq!(fill(), 0, "one record is less than a batch");
    assert!(consumer.poll().is_some());
    assert_eq!(fill(), 2, "a quarter of the queue is a batch");
    let mut out = [EventRecord::default(); 8];
    assert_eq!(consumer.poll_burst(&mut out[..7]), 7);
    assert_eq!(fill(), 7, "a burst is a batch");
    assert_eq!(consumer.poll_burst(&mut out[..7]), 7);
    assert!(consumer.poll().is_some());
    assert!(consumer.poll().is_none());
    assert_eq!(
        fill(),
        8,
        "nothing is held back while there is nothing to do"
    );
}

#[test]
fn the_phase_bit_belongs_to_the_queue() {
    let (mut producer, mut consumer) = queue(2);
    let pushed = EventRecord {
        flags: EventFlags(0xff),
        ..record(1)
    };
    for _ in 0..4 {
        producer.push(&pushed).unwrap();
        assert_eq!(
            consumer.poll(),
            Some(EventRecord {
                flags: EventFlags(0x7f),
                ..pushed
            })
        );
        assert_eq!(consumer.poll(), None);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Poll(usize),
    Burst(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1_usize..40).prop_map(Step::Push),
        (1_usize..40).prop_map(Step::Poll),
        (0_usize..40).prop_map(Step::Burst),
    ]
}

proptest! {
    /// Every accepted event arrives once, in order and unchanged; an event is refused only if the
    /// queue is full but for the records that the consumer may hold back.
    #[test]
    fn behaves_like_a_bounded_fifo(
        log2 in 1_u32..6,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let records = 1 << log2;
        let (mut producer, mut consumer) = queue(records);
        let mut model = VecDeque::new();
        let mut next = 0;
        for step in steps {
            match step {
                Step::Push(n) => for _ in 0..n {
                    if producer.push(&record(next)).is_ok() {
                        model.push_back(next);
                        prop_assert!(model.len() <= records);
                    } else {
                        prop_assert!(model.len() + records / 4 >= records);
                    }
                    next += 1;
                },
                Step::Poll(n) => for _ in 0..n {
                    prop_assert_eq!(consumer.poll(), model.pop_front().map(record));
                },
                Step::Burst(n) => {
                    let mut out = vec![EventRecord::default(); n];
                    let got = consumer.poll_burst(&mut out);
                    prop_assert_eq!(got, n.min(model.len()));
                    for taken in &out[..got] {
                        prop_assert_eq!(Some(*taken), model.pop_front().map(record));
                    }
                }
            }
        }
    }
}

#[test]
fn two_threads_lose_and_tear_nothing() {
    const EVENTS: u64 = 40_000;
    for records in [2, 8, 256] {
        let (mut producer, mut consumer) = queue(records);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for n in 0..EVENTS {
                    while producer.push(&record(n)).is_err() {
                        std::thread::yield_now();
                    }
                }
            });
            let mut next = 0;
            let mut out = [EventRecord::default(); 16];
            while next < EVENTS {
                let n = if next % 3 == 0 {
                    consumer.poll().map_or(0, |first| {
                        out[0] = first;
                        1
                    })
                } else {
                    consumer.poll_burst(&mut out)
                };
                for taken in &out[..n] {
                    assert_eq!(*taken, record(next));
                    next += 1;
                }
                if n == 0 {
                    std::thread::yield_now();
                }
            }
            assert_eq!(consumer.poll(), None);
        });
    }
}
