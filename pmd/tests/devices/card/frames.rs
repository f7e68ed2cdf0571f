//! What passes, and as what.

use pollux_pmd::ledger::Cause;

use super::{Bench, MAC, frame_to, pool};

#[test]
fn a_frame_passes_each_way() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    bench.arrive(0, &frame_to(MAC, 60));
    assert_eq!(bench.receive_on(0), [frame_to(MAC, 60)]);
    assert_eq!(bench.send_on(0, [frame_to(MAC, 100)]), 1);
    assert_eq!(bench.sent(0), [frame_to(MAC, 100)]);
    let (balance, errors) = bench.stop();
    assert_eq!((balance.from_wire, balance.delivered, errors), (1, 1, 0));
}

#[test]
fn frames_of_all_lengths_come_back_as_they_were() {
    for (options, room, longest) in [("", 2048, 1518), ("", 300, 1518), ("mtu=9000", 2048, 9018)] {
        let mut bench = Bench::new(options, 1, pool(512, room));
        let lengths = (60..=300).chain((301..longest - 40).step_by(97));
        for len in lengths.chain(longest - 40..=longest) {
            let frame = frame_to(MAC, len);
            bench.arrive(0, &frame);
            let received = bench.receive_on(0);
            assert!(received.first() == Some(&frame), "{options} {len}");
            assert_eq!(bench.send_on(0, received), 1);
            assert_eq!(bench.sent(0), [frame], "{options} {len}");
        }
        let (balance, errors) = bench.stop();
        assert_eq!((balance.dropped_total(), errors), (0, 0));
    }
}

#[test]
fn each_queue_is_a_port_of_the_card() {
    let mut bench = Bench::new("", 4, pool(512, 2048));
    for port in 0..4 {
        bench.arrive(port, &frame_to(MAC, 60 + port));
        assert_eq!(bench.send_on(port, [frame_to(MAC, 70 + port)]), 1);
    }
    for port in 0..4 {
        assert_eq!(bench.receive_on(port), [frame_to(MAC, 60 + port)]);
        assert_eq!(bench.sent(port), [frame_to(MAC, 70 + port)]);
    }
    bench.stop();
}

#[test]
fn frames_to_other_stations_are_not_for_us() {
    let other = frame_to([2, 0, 0, 0, 0, 2], 60);
    for (options, passes) in [("", 0), ("promisc=on", 1), ("ip=10.0.0.1", 0)] {
        let mut bench = Bench::new(options, 1, pool(256, 2048));
        bench.arrive(0, &other);
        assert_eq!(bench.receive_on(0).len(), passes, "{options}");
        let (balance, _) = bench.stop();
        assert_eq!(balance.dropped_for(Cause::NotForUs), 1 - passes as u64);
    }
}

#[test]
fn frames_of_another_pool_are_copied_and_those_of_no_link_refused() {
    let mut bench = Bench::new("mtu=1000", 1, pool(256, 512));
    let other = pool(64, 4096);
    let mut cache = other.cache(16).unwrap();
    let mut burst = pollux_mempool::Burst::<8>::new();
    for len in [60, 1018, 1019, 13] {
        drop(
            burst.push(
                cache
                    .alloc_from(&frame_to(MAC, len.max(14))[..len])
                    .unwrap(),
            ),
        );
    }
    let n = bench.started.tx[0].tx(&mut cache, &mut burst);
    bench.taken += n as u64;
    assert_eq!(n, 4);
    assert_eq!(bench.sent(0), [frame_to(MAC, 60), frame_to(MAC, 1018)]);
    drop(cache);
    let (_, errors) = bench.stop();
    assert_eq!(errors, 2);
    assert_eq!(other.available(), other.buffers());
}
