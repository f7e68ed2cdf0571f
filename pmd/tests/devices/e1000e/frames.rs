//! What passes, and as what: lengths, filters, checksums, flows.

use pollux_mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::drivers::e1000e::registers::RSSRK;
use pollux_pmd::ledger::Cause;
use pollux_pmd_testkit::models::e1000e::toeplitz;
use pollux_pmd_testkit::ports::pool;

use super::{Bench, MAC, frame_to, ipv4};

#[test]
fn frames_of_all_lengths_come_back_as_they_were() {
    for (options, room, longest) in [
        ("", 2048, 1518),
        ("descriptors=legacy", 2048, 1518),
        ("", 300, 1518),
        ("mtu=9000", 2048, 9018),
        ("mtu=9000,descriptors=legacy", 600, 9018),
        ("mtu=9212", 9216, 9230),
    ] {
        let mut bench = Bench::new(options, 1, pool(512, room));
        bench.with(|card, _| card.loopback = true);
        let lengths = (1..=300).chain((301..longest - 40).step_by(97));
        let mut sent = 0;
        for len in lengths.chain(longest - 40..=longest) {
            let mut frame = frame_to(MAC, len.max(6));
            assert_eq!(bench.send_on(0, [frame.clone()]), 1);
            frame.resize(frame.len().max(60), 0);
            assert_eq!(bench.receive(), [frame], "{options} {len}");
            sent += 1;
        }
        let (balance, errors) = bench.stop();
        assert_eq!((balance.from_wire, errors), (sent, 0));
    }
}

#[test]
fn what_no_link_carries_is_refused() {
    let mut bench = Bench::new("mtu=1000", 1, pool(256, 2048));
    assert_eq!(
        bench.send_on(0, [frame_to(MAC, 1019), frame_to(MAC, 1018)]),
        2
    );
    assert_eq!(bench.with(|card, _| card.sent[0].len()), 1);
    // The card takes it, as it is no longer than any card takes; the port does not.
    bench.arrive(&frame_to(MAC, 1019));
    // This one is too long for the card.
    bench.arrive(&frame_to(MAC, 1519));
    bench.started.rx[0].sync_counters();
    assert!(bench.receive().is_empty());
    let (balance, errors) = bench.stop();
    assert_eq!((balance.dropped_for(Cause::Oversize), errors), (2, 1));
}

#[test]
fn flows_are_shared_out_to_both_queues() {
    // The test vectors of the hash (section 7.1.11.1, and those of Microsoft's specification).
    let key: Vec<u8> = {
        let bench = Bench::new("", 2, pool(256, 2048));
        let key = (0..10).flat_map(|i| bench.with(|card, _| card.get(RSSRK.of(i))).to_le_bytes());
        let key = key.collect();
        bench.stop();
        key
    };
    let input = [66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6];
    assert_eq!(toeplitz(&key, &input), 0x51cc_c178);
    assert_eq!(toeplitz(&key, &input[..8]), 0x323e_8fc2);

    let mut bench = Bench::new("", 2, pool(512, 2048));
    for from in 0..20 {
        bench.arrive(&ipv4(17, from, 1000, 30));
        bench.arrive(&ipv4(17, from, 2000, 30));
        bench.arrive(&ipv4(6, 1, 1000 + u16::from(from), 30));
    }
    let queues = [0, 1].map(|queue| bench.receive_on(queue));
    assert_eq!(queues[0].len() + queues[1].len(), 60);
    assert!(queues.iter().all(|frames| frames.len() > 15), "{queues:?}");
    let source = |frame: &(Vec<u8>, bool)| (frame.0[23] == 17).then_some(frame.0[29]);
    let (a, b) = (&queues[0], &queues[1]);
    let both = a
        .iter()
        .filter_map(source)
        .any(|s| b.iter().filter_map(source).any(|t| s == t));
    assert!(!both, "a flow in two queues");
    bench.stop();
}

#[test]
fn a_pool_with_metadata_gets_the_hash_of_each_frame() {
    // Options, queues, and whether the device hashes: with one queue, and in the legacy format,
    // whose descriptors have an address in the place of the hash, it does not.
    for (options, queues, hashes) in [
        ("", 2, true),
        ("", 1, false),
        ("descriptors=legacy", 1, false),
    ] {
        // One buffer a frame, and several.
        for data_room in [2048, 256] {
            let pool = Mempool::new(PoolConfig {
                buffers: 512,
                data_room,
                metadata: true,
                ..PoolConfig::default()
            });
            let mut bench = Bench::new(options, queues, pool.unwrap());
            let key: Vec<u8> = (0..10)
                .flat_map(|i| bench.with(|card, _| card.get(RSSRK.of(i))).to_le_bytes())
                .collect();
            for from in 0..20 {
                bench.arrive(&ipv4(17, from, 1000, 30 + 20 * usize::from(from)));
            }
            let mut seen = 0;
            let mut burst = Burst::<32>::new();
            let cache = bench.cache.as_mut().unwrap();
            for rx in &mut bench.started.rx {
                while rx.rx(cache, &mut burst) > 0 {
                    for mbuf in burst.iter() {
                        let expected = hashes.then(|| toeplitz(&key, &mbuf.data()[26..34]));
                        let hash = mbuf.metadata().and_then(|metadata| metadata.rss_hash);
                        assert_eq!(hash, expected, "{options} {data_room}");
                        seen += 1;
                    }
                    cache.free_burst(&mut burst);
                }
            }
            assert_eq!(seen, 20);
            bench.delivered += seen;
            bench.stop();
        }
    }
}

#[test]
fn checksums_are_vouched_for_or_cost_the_frame() {
    for (options, queues) in [("", 1), ("", 2), ("descriptors=legacy", 1)] {
        let mut bench = Bench::new(options, queues, pool(256, 2048));
        let good = [ipv4(17, 1, 5, 40), ipv4(6, 1, 5, 40)];
        let mut bad = good.clone();
        bad[0][50] ^= 1;
        bad[1][50] ^= 1;
        let mut header = good[0].clone();
        header[22] ^= 1;
        let mut absent = good[0].clone();
        absent[40..42].fill(0);
        for frame in good
            .iter()
            .chain(&bad)
            .chain([&header, &absent, &frame_to(MAC, 60)])
        {
            bench.arrive(frame);
        }
        let mut all = bench.receive_on(0);
        if queues > 1 {
            all.extend(bench.receive_on(1));
        }
        let vouched = |bytes: &Vec<u8>| all.iter().find(|(b, _)| b == bytes).map(|(_, v)| *v);
        assert_eq!(good.map(|frame| vouched(&frame)), [Some(true); 2]);
        assert_eq!((vouched(&absent), vouched(&header)), (Some(false), None));
        assert_eq!(vouched(&frame_to(MAC, 60)), Some(false));
        let (balance, _) = bench.stop();
        assert_eq!(balance.dropped_for(Cause::BadChecksum), 3);
    }
}

#[test]
fn filters_let_pass_what_was_asked_for() {
    let group = |last: u8| [1, 0, 0x5e, 0, 0, last];
    let some: Vec<_> = (0..40).map(|i| format!("01:00:5e:00:00:{i:02x}")).collect();
    let listed = format!("multicast={}", some.join("+"));
    let one = format!("multicast={}", some[3]);
    let other = [2, 0, 0, 0, 0, 1];
    let both = format!("unicast=02:00:00:00:00:05+02:00:00:00:00:01,{listed}");
    // To us, to all, to another, to groups 3 and 30, and to one that is not listed.
    let frames = [MAC, [0xff; 6], other, group(3), group(30), group(200)];
    for (options, passed) in [
        ("", [true, true, false, false, false, false]),
        (&one, [true, true, false, true, false, false]),
        (&listed, [true, true, false, true, true, false]),
        ("multicast=all", [true, true, false, true, true, true]),
        (&both, [true, true, true, true, true, false]),
        ("promisc=on", [true, true, true, false, false, false]),
    ] {
        let mut bench = Bench::new(options, 1, pool(256, 2048));
        for (to, pass) in frames.into_iter().zip(passed) {
            bench.arrive(&frame_to(to, 60));
            assert_eq!(bench.receive().len() == 1, pass, "{options} {to:x?}");
        }
        bench.stop();
    }
}

#[test]
fn tags_of_vlans_stay_in_the_frame() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    let mut tagged = frame_to(MAC, 1518);
    tagged[12..16].copy_from_slice(&[0x81, 0, 0, 42]);
    bench.arrive(&tagged);
    assert_eq!(bench.receive(), [tagged]);
    bench.stop();
}
