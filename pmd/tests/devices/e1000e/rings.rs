//! Rings that wrap, are full or empty, and buffers that cannot be had.

use pollux_mempool::Burst;
use pollux_pmd::ledger::{Cause, SentView};
use pollux_pmd::port::TxQueue;
use pollux_pmd_testkit::ports::pool;

use super::{Bench, MAC, frame_to};

#[test]
fn rings_wrap_many_times() {
    let mut bench = Bench::new("", 2, pool(512, 2048));
    bench.with(|card, _| card.loopback = true);
    for round in 0..200 {
        for queue in 0..2 {
            let n = round % 41;
            let frames = (0..n).map(|i| frame_to(MAC, 60 + i));
            assert_eq!(bench.send_on(queue, frames), n);
            assert_eq!(bench.receive().len(), n);
        }
    }
    let sent: Vec<_> = bench.started.tx.iter().map(TxQueue::sent).collect();
    let (balance, _) = bench.stop();
    let packets = sent.iter().map(SentView::packets).sum();
    assert_eq!(balance.from_wire, packets);
}

#[test]
fn a_full_transmit_ring_takes_no_more_until_the_device_is_done() {
    let mut bench = Bench::new("", 1, pool(512, 256));
    bench.with(|card, _| card.stalled = true);
    let frames = |n: usize| (0..n).map(|_| frame_to(MAC, 100));
    assert_eq!(bench.send_on(0, frames(40)), 40);
    // A ring of 64 takes 63; a frame of three pieces does not fit any more.
    assert_eq!(bench.send_on(0, frames(21)), 21);
    assert_eq!(bench.send_on(0, [frame_to(MAC, 700)]), 0);
    assert_eq!(bench.send_on(0, frames(5)), 2);
    assert_eq!(bench.send_on(0, frames(5)), 0);
    bench.with(|card, world| {
        card.stalled = false;
        card.send(world, 0);
    });
    assert_eq!(bench.send_on(0, [frame_to(MAC, 700)]), 1);
    assert_eq!(bench.send_on(0, []), 0);
    assert_eq!(bench.started.tx[0].sent().packets(), 64);
    bench.with(|card, _| card.stalled = true);
    assert_eq!(bench.send_on(0, frames(3)), 3);
    let (_, errors) = bench.stop();
    assert_eq!(errors, 3, "never reported");
}

#[test]
fn buffers_of_another_pool_are_sent_as_copies() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    let other = pool(16, 128);
    let mut cache = other.cache(8).unwrap();
    let mut burst = Burst::<4>::new();
    drop(burst.push(cache.alloc_from(&frame_to(MAC, 1000)).unwrap()));
    drop(burst.push(cache.alloc_from(&frame_to(MAC, 60)).unwrap()));
    assert_eq!(bench.started.tx[0].tx(&mut cache, &mut burst), 2);
    bench.taken += 2;
    let sent = bench.with(|card, _| card.sent[0].clone());
    assert_eq!(sent, [frame_to(MAC, 1000), frame_to(MAC, 60)]);
    drop(cache);
    assert_eq!(other.available(), 16);
    bench.stop();
}

#[test]
fn a_copy_in_more_buffers_than_the_frame_had_finds_room_for_all_of_them() {
    let mut bench = Bench::new("", 1, pool(512, 256));
    bench.with(|card, _| card.stalled = true);
    let other = pool(16, 2048);
    let mut foreign = other.cache(8).unwrap();
    let mut burst = Burst::<64>::new();
    for _ in 0..6 {
        drop(burst.push(foreign.alloc_from(&frame_to(MAC, 1500)).unwrap()));
    }
    for _ in 0..50 {
        let frame = bench.frame(&frame_to(MAC, 60));
        drop(burst.push(frame));
    }
    let cache = bench.cache.as_mut().unwrap();
    let n = bench.started.tx[0].tx(cache, &mut burst);
    // Of the six, each takes six descriptors at least, and twelve at most.
    assert!((5..=33).contains(&n), "{n}");
    bench.taken += n as u64;
    burst.clear();
    drop(foreign);
    bench.with(|card, world| {
        card.stalled = false;
        card.send(world, 0);
    });
    assert_eq!(bench.with(|card, _| card.sent[0].len()), n);
    assert_eq!(bench.stop().1, 0);
    assert_eq!(other.available(), 16);
}

#[test]
fn what_finds_no_room_is_counted_by_the_device_and_in_the_ledger() {
    let mut bench = Bench::new("", 1, pool(512, 2048));
    for i in 0..200 {
        bench.arrive(&frame_to(MAC, 1000 + i % 3));
    }
    bench.started.rx[0].sync_counters();
    let missed = bench.with(|card, _| card.missed);
    assert!((100..130).contains(&missed), "{missed}");
    let tally = bench.started.rx[0].tally();
    assert_eq!(tally.balance().dropped_for(Cause::RingFull), missed);
    let statistics = bench.started.port.statistics();
    let count = |name| statistics.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!(
        (count("rx_missed"), count("rx_no_buffers") > 0),
        (missed, true)
    );
    bench.receive();
    bench.arrive(&frame_to(MAC, 60));
    let (balance, _) = bench.stop();
    let aborted = balance.dropped_for(Cause::Aborted);
    assert_eq!(balance.from_wire, 201);
    assert_eq!(balance.delivered + aborted + missed, 201);
}

#[test]
fn the_longest_frame_finds_room_in_the_smallest_ring() {
    let mut bench = Bench::new("mtu=9000", 1, pool(512, 256));
    let long = frame_to(MAC, 9014);
    // Whatever has been used and not posted again, the next frame is as long as can be.
    for short in 0..60 {
        for _ in 0..short {
            bench.arrive(&frame_to(MAC, 60));
        }
        assert_eq!(bench.receive().len(), short);
        bench.arrive(&long);
        assert_eq!(bench.receive(), [&long[..]], "after {short}");
    }
    let (balance, _) = bench.stop();
    assert_eq!(balance.delivered, balance.from_wire);
}

#[test]
fn an_empty_pool_costs_frames_and_nothing_else() {
    let mut bench = Bench::new("", 1, pool(80, 2048));
    let mut held = Burst::<128>::new();
    for _ in 0..100 {
        bench.arrive(&frame_to(MAC, 1500));
        let cache = bench.cache.as_mut().unwrap();
        bench.started.rx[0].rx(cache, &mut held);
    }
    let held_frames = held.len() as u64;
    assert!((64..=80).contains(&held_frames), "{held_frames}");
    bench.cache.as_mut().unwrap().free_burst(&mut held);
    bench.delivered += held_frames;
    bench.receive();
    bench.arrive(&frame_to(MAC, 60));
    assert!(bench.receive().contains(&frame_to(MAC, 60)));
    let (balance, _) = bench.stop();
    assert_eq!(balance.from_wire, 101);
    assert!(balance.dropped_for(Cause::RingFull) > 0);
}
