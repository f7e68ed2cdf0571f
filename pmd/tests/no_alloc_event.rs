//! Nothing is allocated, and nothing freed, between the making of queues and buffers and their end.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::event::{
    Clop, ClopConfig, EventKind, EventQueue, EventRecord, PayloadInfo, Refused, RegionOptions,
};
use pollux_pmd::{Clock, TscClock};

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the calls of each thread.
struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn calls(work: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    work();
    CALLS.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(calls(|| drop(std::hint::black_box(Box::new(1)))), 2);
}

#[test]
fn an_event_queue_does_not_allocate() {
    let (mut producer, mut consumer) = EventQueue::new(16, &RegionOptions::default())
        .unwrap()
        .split();
    let record = EventRecord {
        kind: EventKind::APPLICATION,
        ..EventRecord::default()
    };
    let mut out = [EventRecord::default(); 4];
    let work = || {
        for _ in 0..1000 {
            while producer.push(&record).is_ok() {}
            assert!(consumer.poll().is_some());
            assert_eq!(consumer.poll_burst(&mut out), 4);
        }
    };
    assert_eq!(calls(work), 0);
}

#[test]
fn a_list_of_buffers_does_not_allocate() {
    let clock = TscClock::get();
    let pool = Mempool::new(PoolConfig {
        buffers: 64,
        ..PoolConfig::default()
    })
    .unwrap();
    let frame = pool.cache(32).unwrap().alloc_from(&[7; 5000]).unwrap();
    let config = ClopConfig {
        buffers: 4,
        size: 8192,
        ..ClopConfig::default()
    };
    let (mut writer, mut reader) = Clop::new(&config, &clock).unwrap().split();
    let (mut events, mut announced) = EventQueue::new(8, &RegionOptions::default())
        .unwrap()
        .split();
    let mut bytes = 0;
    let work = || {
        let info = PayloadInfo {
            arrival: clock.now(),
            ..PayloadInfo::default()
        };
        for round in 0..1000_usize {
            writer.append(&mut events, &info, &[1; 600]).unwrap();
            writer
                .append_frame(&mut events, 1, &frame, 42..5000 - round)
                .unwrap();
            assert!(matches!(
                writer.append(&mut events, &info, &[1; 9000]),
                Err(Refused::Oversize { .. })
            ));
            writer.poll(&mut events, clock.now());
            while let Some(event) = announced.poll() {
                let buffer = reader.accept(&event).unwrap();
                bytes += buffer
                    .payloads()
                    .map(|p| p.unwrap().data.len())
                    .sum::<usize>();
            }
        }
    };
    assert_eq!(calls(work), 0);
    assert!(bytes > 0);
}
