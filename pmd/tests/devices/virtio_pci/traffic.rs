//! Frames both ways, byte for byte.

use pollux_pmd::Cause;
use pollux_pmd_testkit::only_work;

use super::*;

/// All that the two sides can agree on about rings.
fn rings() -> impl Iterator<Item = u64> {
    let some = |bits: u64, bit, feature| if bits & bit != 0 { feature } else { 0 };
    (0..8).map(move |bits| {
        some(bits, 1, bit::PACKED) | some(bits, 2, bit::IN_ORDER) | some(bits, 4, bit::MERGEABLE)
    })
}

const RINGS: u64 = bit::PACKED | bit::IN_ORDER | bit::MERGEABLE;

/// Lengths from the shortest to the longest, and how they are cut.
fn shapes() -> impl Iterator<Item = (usize, Vec<usize>)> {
    let lens = [60, 1, 64, 1514, 2048, 2049, 4000, 9014];
    let cuts = [vec![], vec![14], vec![1, 40], vec![100; 9]];
    (0..400).map(move |n: usize| (lens[n % lens.len()] + n % 3, cuts[n % 4].clone()))
}

#[test]
fn every_kind_of_ring_carries_every_kind_of_frame() {
    for rings in rings() {
        for polls in [false, true] {
            let device = device(ALL & !RINGS | rings);
            device.with(|model, _| {
                model.polls = polls;
                // Of a packed ring any number.
                model.max_size = if rings & bit::PACKED != 0 { 50 } else { 256 };
            });
            let room = if rings & bit::MERGEABLE != 0 {
                2048
            } else {
                9100
            };
            let mut rig = Rig::new(&device, "", 1, pool(room));
            for (number, (len, cuts)) in shapes().enumerate() {
                let bytes = frame(number, len);
                assert!(rig.send(0, &bytes, &cuts), "{rings:#x}, frame {number}");
                rig.pass_time();
                let sent = device.with(|model, _| model.sent.pop());
                assert_eq!(sent, Some((1, bytes)), "{rings:#x}, frame {number}");
                let bytes = frame(!number, len);
                rig.receive(0, &bytes);
                assert_eq!(rig.poll(0), [bytes], "{rings:#x}, frame {number}");
            }
            rig.stop();
        }
    }
}

#[test]
fn a_burst_that_finds_no_room_stays_with_the_caller() {
    for rings in rings() {
        let device = device(ALL & !RINGS | rings);
        device.with(|model, _| model.polls = true);
        let mut rig = Rig::new(&device, ",mtu=1500", 1, pool(2048));
        // The device gets no notifications: it finds the ring full when it polls.
        device.with(|model, _| model.deaf = true);
        let sent = (0..100)
            .take_while(|&n| rig.send(0, &frame(n, 60), &[]))
            .count();
        assert_eq!(sent, 64, "{rings:#x}");
        assert!(!rig.send(0, &frame(0, 60), &[]));
        device.with(|model, _| model.deaf = false);
        rig.pass_time();
        assert!(rig.send(0, &frame(100, 60), &[]));
        rig.stop();
        assert_eq!(device.with(|model, _| model.sent.len()), 65, "{rings:#x}");
    }
}

#[test]
fn a_device_that_polls_is_not_told() {
    for rings in rings() {
        let device = device(ALL & !RINGS | rings);
        device.with(|model, _| model.polls = true);
        let mut rig = Rig::new(&device, ",mtu=1500", 1, pool(2048));
        device.with(|model, _| model.deaf = true);
        // The device says so at the first notification.
        rig.send(0, &frame(0, 60), &[]);
        let before = device.with(|model, _| model.notifications);
        for n in 1..50 {
            rig.send(0, &frame(n, 60), &[]);
        }
        assert_eq!(
            device.with(|model, _| model.notifications),
            before,
            "{rings:#x}"
        );
        device.with(|model, _| model.deaf = false);
        rig.pass_time();
        rig.stop();
    }
}

#[test]
fn what_is_left_when_it_stops_is_counted() {
    let device = device(ALL);
    let mut rig = Rig::new(&device, "", 1, pool(2048));
    for n in 0..20 {
        rig.receive(0, &frame(n, 100));
    }
    assert_eq!(rig.poll(0).len(), 20);
    for n in 0..5 {
        rig.receive(0, &frame(n, 100));
    }
    let tally = rig.rx[0].tally();
    rig.stop();
    assert_eq!(tally.balance().dropped_for(Cause::Aborted), 5);
}

#[test]
fn several_queues_each_have_their_own_frames() {
    for packed in [0, bit::PACKED] {
        let device = device(ALL & !bit::PACKED | packed);
        let mut rig = Rig::new(&device, "", 4, pool(2048));
        assert_eq!(device.with(|model, _| model.pairs), 4);
        for n in 0..1000 {
            let queue = n % 4;
            assert!(rig.send(queue, &frame(n, 64 + n), &[]));
            let sent = device.with(|model, _| model.sent.pop());
            assert_eq!(sent, Some((2 * queue as u16 + 1, frame(n, 64 + n))));
            rig.receive(queue as u16, &frame(n, 64 + n));
            assert_eq!(rig.poll(queue), [frame(n, 64 + n)]);
        }
        rig.stop();
    }
}

#[test]
fn a_port_is_stopped_and_started_again() {
    let device = device(ALL);
    let mut port = probe(&device, "").unwrap();
    let pool = pool(2048);
    for round in 0..100 {
        let config = PortConfig {
            rx_queues: 1 + round % 3,
            tx_queues: round % 2,
            ring: 64,
            ..PortConfig::new(pool.clone())
        };
        let mut rig = Rig::start(port, &device, config).unwrap();
        rig.receive(0, &frame(7, 90));
        assert_eq!(rig.poll(0), [frame(7, 90)]);
        if round % 2 == 1 {
            assert!(rig.send(0, &frame(8, 90), &[]));
        }
        port = rig.stop();
    }
}

#[test]
fn a_frame_of_several_pieces_takes_one_descriptor_where_there_are_tables() {
    for rings in rings() {
        for (tables, most) in [(0, 16), (bit::INDIRECT, 64)] {
            let device = device(ALL & !RINGS & !bit::INDIRECT | rings | tables);
            device.with(|model, _| model.polls = true);
            let mut rig = Rig::new(&device, ",mtu=1500", 1, pool(2048));
            device.with(|model, _| model.deaf = true);
            let cuts = [20, 30, 40];
            let sent = (0..100)
                .take_while(|&n| rig.send(0, &frame(n, 200), &cuts))
                .count();
            assert_eq!(sent, most, "{rings:#x}");
            device.with(|model, _| model.deaf = false);
            rig.pass_time();
            rig.stop();
            let frames = device.with(|model, _| std::mem::take(&mut model.sent));
            let expected = (0..most).map(|n| (1, frame(n, 200)));
            assert!(frames.into_iter().eq(expected), "{rings:#x}");
        }
    }
}

#[test]
fn a_frame_of_more_pieces_than_a_table_holds_is_a_chain() {
    let device = device(ALL);
    let mut rig = Rig::new(&device, "", 1, pool(2048));
    for pieces in 1..30 {
        let bytes = frame(pieces, 1000);
        assert!(rig.send(0, &bytes, &vec![10; pieces - 1]));
        let sent = device.with(|model, _| model.sent.pop());
        assert_eq!(sent, Some((1, bytes)));
    }
    rig.stop();
}

#[test]
fn a_loop_does_nothing_but_work() {
    for missing in [bit::PACKED, 0, bit::IN_ORDER, bit::PACKED | bit::IN_ORDER] {
        let device = device(ALL & !missing);
        let spec = "pci:0000:03:00.0".parse().unwrap();
        only_work::assert_only_work(
            &device,
            || {
                pollux_pmd::drivers::virtio::pci::open(Arc::new(device.clone()), &spec, grant())
                    .unwrap()
            },
            |device, frame| device.with(|model, world| model.receive(world, 0, frame)),
        );
    }
}
