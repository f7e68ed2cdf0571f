//! The pace of the detector: rates, pauses, stops, and a link that takes nothing.

use pollux_emulator::images::config::ImagesConfig;
use pollux_mempool::time::Ns;
use pollux_pmd::Clock as _;

use crate::frames::parse;
use crate::receiver::{Bench, send_all, small, stack};

#[test]
fn frames_are_sent_at_their_rate() {
    let config = ImagesConfig {
        rate: 1000.0,
        frames: 20,
        ..small()
    };
    let (mut bench, tx) = Bench::new(1, 1024);
    let mut source = bench.source(&config, stack(&config), tx);
    let clock = bench.clock.clone();
    let start = clock.now();
    while source.poll() {
        let now = clock.to_ns(clock.now().since(start));
        bench.receive(|_, frame| {
            let packet = parse(frame).unwrap();
            // 6.6448 us from packet to packet at 10 Gb/s.
            let due = (packet.frame - 1) * 1_000_000 + u64::from(packet.packet) * 6644;
            let late = now.0 as i64 - due as i64;
            assert!((0..100_000).contains(&late), "{late} ns");
        });
    }
    bench.receive(|_, _| ());
    let report = source.report();
    assert!(report.complete);
    assert!(
        (report.rate_achieved / 1000.0 - 1.0).abs() < 0.05,
        "{}",
        report.rate_achieved
    );
    bench.stop(source.into_link().into_queues().0);
}

/// A receiver that lets the detector wait gets its frames later, not in a burst.
#[test]
fn lost_time_is_not_made_up_for() {
    let config = ImagesConfig {
        rate: 1000.0,
        frames: 20,
        ..small()
    };
    let (mut bench, tx) = Bench::new(1, 1024);
    let mut source = bench.source(&config, stack(&config), tx);
    let clock = bench.clock.clone();
    while source.control().frames.get() < 5 {
        source.poll();
        bench.receive(|_, _| ());
    }
    clock.0.advance(Ns(50_000_000));
    let (since, mut first) = (clock.now(), None);
    while source.poll() {
        bench.receive(|_, frame| {
            let packet = parse(frame).unwrap();
            let due = packet.frame as i64 * 1_000_000 + i64::from(packet.packet) * 6644;
            let now = clock.to_ns(clock.now().since(since)).0 as i64;
            let (first, begin) = *first.get_or_insert((due, now));
            let early = due - first - (now - begin);
            assert!(early < 550_000, "frame {} at {now} ns", packet.frame);
        });
    }
    bench.receive(|_, _| ());
    assert!(source.report().complete);
    bench.stop(source.into_link().into_queues().0);
}

#[test]
fn a_pause_begins_between_frames_and_leaves_none_out() {
    for rate in [0.0, 1000.0] {
        let config = ImagesConfig {
            rate,
            frames: 12,
            ..small()
        };
        let (mut bench, tx) = Bench::new(1, 64);
        let mut source = bench.source(&config, stack(&config), tx);
        let (control, clock) = (source.control(), bench.clock.clone());
        let mut numbers = Vec::new();
        let mut take = |bench: &mut Bench| {
            bench.receive(|_, frame| {
                let packet = parse(frame).unwrap();
                numbers.push((packet.frame, packet.packet));
            })
        };
        while control.packets.get() < 300 {
            assert!(source.poll());
            take(&mut bench);
        }
        control.pause(true);
        assert!(control.is_paused());
        for _ in 0..10_000 {
            assert!(source.poll());
            take(&mut bench);
        }
        let sent = control.packets.get();
        assert_eq!((sent % 128, sent / 128), (0, 3), "whole frames");
        clock.0.advance(Ns(1_000_000_000));
        assert!(source.poll());
        control.pause(false);
        while source.poll() {
            take(&mut bench);
        }
        take(&mut bench);
        let all = (1..=12).flat_map(|frame| (0..128).map(move |packet| (frame, packet)));
        assert!(numbers.iter().copied().eq(all), "rate {rate}");
        let report = source.report();
        assert!(report.complete);
        assert!(
            report.duration_s < 0.1,
            "without the pause: {}",
            report.duration_s
        );
        bench.stop(source.into_link().into_queues().0);
    }
}

#[test]
fn a_stop_ends_with_a_whole_frame() {
    let config = ImagesConfig {
        frames: 0,
        ..small()
    };
    let (mut bench, tx) = Bench::new(1, 64);
    let mut source = bench.source(&config, stack(&config), tx);
    let mut received = 0;
    while source.poll() {
        received += bench.receive(|_, _| ());
        if received > 1000 {
            bench.stop.stop();
        }
    }
    received += bench.receive(|_, _| ());
    let report = source.report();
    assert!(!report.complete);
    assert_eq!((received % 128, report.packets_unsent), (0, 0));
    assert_eq!(received as u64, report.packets_sent);
    assert_eq!(report.done.frames * 128, report.packets_sent);
    bench.stop(source.into_link().into_queues().0);
}

/// 64 packets fit the ring; no more are taken, and the loop is stopped.
#[test]
fn a_full_link_holds_the_loop_back() {
    let config = ImagesConfig {
        frames: 0,
        ..small()
    };
    let (mut bench, tx) = Bench::new(1, 64);
    let mut source = bench.source(&config, stack(&config), tx);
    for _ in 0..10_000 {
        assert!(source.poll());
    }
    bench.stop.stop();
    let report = source.run();
    assert_eq!(report.packets_sent, 64);
    // What waits is a burst and the packets that were made ahead, not the whole run.
    assert!(report.packets_unsent <= 128, "{}", report.packets_unsent);
    assert_eq!(report.done.packets_made, 64 + report.packets_unsent);
    bench.receive(|_, _| ());
    bench.stop(source.into_link().into_queues().0);
}

#[test]
fn time_stamps_follow_the_period() {
    let config = ImagesConfig {
        rate: 3000.0,
        frames: 30,
        ..small()
    };
    let (frames, report) = send_all(&config, stack(&config), 1);
    let last = parse(&frames.last().unwrap().1).unwrap();
    // 333 333 ns from frame to frame.
    assert_eq!(last.timestamp, 29 * 333_333 / 100);
    assert!((report.rate_asked - 3000.0).abs() < 1e-9);
}
