//! A physical function without virtual ones.

use pollux_mempool::{MbufFlags, Network, Transport};
use pollux_pmd::Cause;
use pollux_pmd_testkit::fake::register_reads;
use pollux_pmd_testkit::frames::Frame;
use pollux_pmd_testkit::models::igb::MAC;
use pollux_pmd_testkit::only_work;
use pollux_pmd_testkit::ports::quarantined;

use super::*;

/// A datagram to the port, from another UDP port each time.
pub(super) fn datagram(to: MacAddr, from_port: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Frame::udp(payload);
    frame.src = [
        10,
        0,
        from_port.to_be_bytes()[0],
        from_port.to_be_bytes()[1],
    ];
    frame.body[6..8].fill(0);
    let mut bytes = frame.bytes();
    bytes[..6].copy_from_slice(&to.0);
    bytes
}

#[test]
fn flows_are_shared_out_to_all_queues() {
    let world = World::new();
    let mut pf = Running::new(world.pf("").unwrap(), 4);
    for n in 0..160 {
        world
            .nic
            .arrive(&datagram(pf.mac(), n, b"hello, all of you queues"));
    }
    let _ = pf.port.link();
    let mut burst = Burst::<32>::new();
    for queue in 0..4 {
        let mut n = 0;
        while pf.rx[queue].rx(&mut pf.cache, &mut burst) > 0 {
            n += burst.len();
            pf.cache.free_burst(&mut burst);
        }
        assert!((20..60).contains(&n), "queue {queue} has {n}");
        pf.consumer.count_delivered(n as u64);
    }
    pf.stop();
}

/// The vector of Microsoft's RSS specification: 66.9.149.187:2794 to 161.142.100.80:1766.
#[test]
fn a_pool_with_metadata_gets_hash_and_protocols_of_each_frame() {
    for metadata in [true, false] {
        let world = World::new();
        let port = world.pf("").unwrap();
        let config = PoolConfig {
            buffers: 1024,
            metadata,
            ..PoolConfig::default()
        };
        let pool = Mempool::new(config).unwrap();
        let config = PortConfig {
            rx_queues: 4,
            tx_queues: 4,
            ring: 64,
            ..PortConfig::new(pool.clone())
        };
        let mut pf = Running::start(port.configure(config).unwrap(), pool);
        let mac = pf.mac();
        // Datagrams, and a frame of another protocol, which is not hashed.
        let mut frames: Vec<_> = (0..40).map(|n| datagram(mac, n, &[n as u8; 9])).collect();
        frames.push(frame(mac, PEER, 7));
        for frame in &frames {
            world.nic.arrive(frame);
        }
        let mut seen = 0;
        let mut burst = Burst::<32>::new();
        let _ = pf.port.link();
        for rx in &mut pf.rx {
            while rx.rx(&mut pf.cache, &mut burst) > 0 {
                pf.consumer.count_delivered(burst.len() as u64);
                for mbuf in burst.iter() {
                    seen += 1;
                    let expected = metadata.then(|| {
                        let hash = world.nic.chip().hash(mbuf.data());
                        let protocols = (Some(Network::Ipv4), Some(Transport::Udp));
                        (
                            hash,
                            if hash.is_some() {
                                protocols
                            } else {
                                (None, None)
                            },
                        )
                    });
                    let found = mbuf.metadata();
                    let found = found.map(|it| (it.rss_hash, (it.network, it.transport)));
                    assert_eq!(found, expected);
                }
                pf.cache.free_burst(&mut burst);
            }
        }
        assert_eq!(seen, frames.len());
        pf.stop();
    }
}

#[test]
fn the_hash_is_that_of_the_specification() {
    let world = World::new();
    let pf = Running::new(world.pf("").unwrap(), 4);
    let mut frame = Frame::udp(b"");
    (frame.src, frame.dst) = ([66, 9, 149, 187], [161, 142, 100, 80]);
    frame.body[..4].copy_from_slice(&[0x0a, 0xea, 0x06, 0xe6]);
    assert_eq!(world.nic.chip().hash(&frame.bytes()), Some(0x51cc_c178));
    pf.stop();
}

#[test]
fn frames_of_all_lengths_come_and_go() {
    let world = World::new();
    let mut pf = Running::new(world.pf(",mtu=9000").unwrap(), 1);
    for len in [60, 61, 1514, 2047, 2048, 2049, 4096, 9014, 9018] {
        let mut bytes = frame(pf.mac(), PEER, 7);
        bytes.resize(len, 8);
        world.nic.arrive(&bytes);
        assert_eq!(pf.receive(), [&bytes[..]], "{len}");
        pf.send(&bytes);
        assert_eq!(world.nic.sent(), [bytes], "{len}");
    }
    let mut bytes = frame(pf.mac(), PEER, 7);
    bytes.resize(9019, 8);
    world.nic.arrive(&bytes);
    assert_eq!(pf.receive().len(), 0);
    let (_, ledger) = pf.stop();
    assert_eq!(ledger.balance().dropped_for(Cause::Oversize), 1);
}

#[test]
fn what_the_device_loses_by_itself_is_in_the_ledger() {
    let world = World::new();
    let mut pf = Running::new(world.pf("").unwrap(), 1);
    world.nic.chip().receive_broken();
    pf.rx[0].sync_counters();
    // Read by others before the queue asks.
    world.nic.chip().receive_broken();
    assert!(!pf.port.statistics().is_empty());
    // More than the queue's counter holds, if it is not looked at now and then.
    let arrived = 5000_u64;
    for n in 0..arrived {
        world.nic.arrive(&frame(pf.mac(), PEER, 1));
        if n % 1000 == 999 {
            pf.receive();
        }
    }
    let (_, ledger) = pf.stop();
    let balance = ledger.check().unwrap();
    assert_eq!(balance.dropped_for(Cause::DeviceError), 2);
    assert_eq!(balance.from_wire, arrived + 2);
    assert!(balance.dropped_for(Cause::RingFull) > 4096, "{balance}");
}

#[test]
fn a_thread_reads_the_counters_of_a_device_that_counts_in_real_time() {
    let world = World::new();
    world.pf.with(|_, world| world.real_time = true);
    let mut pf = Running::new(world.pf("").unwrap(), 1);
    let mac = pf.mac();
    let mut burst = Burst::<32>::new();
    let mut polled = 0;
    // In total more than a counter holds; the ring has 64 descriptors.
    for round in 1..=5_u64 {
        for _ in 0..1000 {
            world.nic.arrive(&frame(mac, PEER, 1));
        }
        while pf.ledger.balance().from_wire < round * 1000 {
            let before = register_reads();
            polled += pf.rx[0].rx(&mut pf.cache, &mut burst);
            assert_eq!(register_reads(), before);
            pf.consumer.count_delivered(burst.len() as u64);
            pf.cache.free_burst(&mut burst);
            std::thread::yield_now();
        }
    }
    let (_, ledger) = pf.stop();
    let balance = ledger.check().unwrap();
    assert_eq!(balance.from_wire, 5000);
    assert_eq!(balance.delivered, polled as u64);
    assert!(balance.dropped_for(Cause::RingFull) > 4096, "{balance}");
}

#[test]
fn dropping_one_queue_leaves_the_others_running() {
    for deaf in [false, true] {
        let world = World::new();
        let mut pf = Running::new(world.pf("").unwrap(), 2);
        // The result is the same whether or not the device obeys.
        world.nic.chip().deaf = deaf;
        let arrive_and_receive = |pf: &mut Running| {
            for n in 0..40 {
                world
                    .nic
                    .arrive(&datagram(pf.mac(), n, b"hello, both of you queues"));
            }
            pf.receive().len()
        };
        assert_eq!(arrive_and_receive(&mut pf), 40);
        drop(pf.rx.pop());
        let posted = quarantined(&pf.port);
        assert!((32..64).contains(&posted), "of a ring of 64: {posted}");
        for _ in 0..10 {
            let n = arrive_and_receive(&mut pf);
            assert!((10..30).contains(&n), "its share of the flows: {n}");
        }
        drop(pf.tx.pop());
        for n in 0..200 {
            pf.send(&frame(PEER, MAC, n));
        }
        assert_eq!(world.nic.sent().len(), 200);
        let Running {
            port,
            rx,
            tx,
            pool,
            cache,
            ..
        } = pf;
        drop((rx, tx, cache));
        assert!(quarantined(&port) > posted);
        assert_eq!(pool.available(), pool.buffers() - quarantined(&port));
        drop(port);
        assert_eq!(pool.available(), pool.buffers());
        assert_eq!(world.pf.with(|_, world| world.faults), 0);
    }
}

/// Stops a port whose device gives no proof but, perhaps, the IOMMU's; what of its pool comes back.
fn after_stop(spoil: impl Fn(&World), iommu: bool) -> (usize, usize) {
    let world = World::new();
    let pf = Running::new(world.pf("").unwrap(), 2);
    world.pf.with(|_, world| world.no_iommu = !iommu);
    spoil(&world);
    let (stopped, pool, _) = pf.try_stop();
    assert!(stopped.is_err());
    (pool.available(), pool.buffers())
}

#[test]
fn buffers_of_a_device_that_reads_all_ones_are_not_reused() {
    let silent = |world: &World| world.pf.unplug();
    assert_eq!(after_stop(silent, false), (1024 - 2 * 63, 1024));
    assert_eq!(after_stop(silent, true), (1024, 1024));
}

#[test]
fn a_device_that_never_comes_to_rest_keeps_its_buffers() {
    let stubborn = |world: &World| {
        let mut chip = world.nic.chip();
        (chip.stuck, chip.deaf) = (true, true);
        drop(chip);
        world.pf.with(|_, world| world.stubborn = true);
    };
    assert_eq!(after_stop(stubborn, false), (1024 - 2 * 63, 1024));
    assert_eq!(after_stop(stubborn, true), (1024, 1024));
    // It is enough that it is kept off the bus.
    let stuck = |world: &World| world.nic.chip().stuck = true;
    assert_eq!(after_stop(stuck, false), (1024, 1024));
}

#[test]
fn a_virtual_function_that_never_comes_to_rest_keeps_its_buffers() {
    for (iommu, stubborn, missing) in [(false, true, 63), (true, true, 0), (false, false, 0)] {
        let world = World::new();
        let pf = Running::new(world.pf(",vfs=1").unwrap(), 1);
        let device = world.vf_device(0);
        let driver = igbvf::open(device.clone().into(), &spec(""), grant()).unwrap();
        let vf = Running::new(Port::new("vf", driver), 1);
        device.with(|_, world| (world.stubborn, world.no_iommu) = (stubborn, !iommu));
        let (stopped, pool, _) = vf.try_stop();
        assert_eq!(stopped.is_err(), missing > 0);
        assert_eq!(pool.available(), pool.buffers() - missing);
        pf.stop();
    }
}

#[test]
fn checksums_are_vouched_for_or_cost_the_frame() {
    let world = World::new();
    let mut pf = Running::new(world.pf(",promisc").unwrap(), 1);
    let right = Frame::udp(b"some bytes that are summed up").bytes();
    let mut wrong = right.clone();
    wrong[60] ^= 1;
    world.nic.arrive(&right);
    world.nic.arrive(&wrong);
    world.nic.arrive(&frame(PEER, PEER, 1));
    let _ = pf.port.link();
    let mut burst = Burst::<32>::new();
    pf.rx[0].rx(&mut pf.cache, &mut burst);
    let trusted: Vec<_> = burst
        .iter()
        .map(|mbuf| mbuf.flags().contains(MbufFlags::CHECKSUM_TRUSTED))
        .collect();
    assert_eq!(trusted, [true, false]);
    pf.consumer.count_delivered(2);
    pf.cache.free_burst(&mut burst);
    let (_, ledger) = pf.stop();
    let balance = ledger.check().unwrap();
    assert_eq!(balance.dropped_for(Cause::BadChecksum), 1);
}

#[test]
fn filters_let_pass_what_was_asked_for() {
    let world = World::new();
    let group = MacAddr([1, 0, 0x5e, 0, 0, 0xfb]);
    let received = |options: &str| {
        let mut pf = Running::new(world.pf(options).unwrap(), 1);
        for to in [pf.mac(), PEER, MacAddr::BROADCAST, group] {
            world.nic.arrive(&frame(to, PEER, 1));
        }
        let tagged = tagged(5, &frame(pf.mac(), PEER, 1));
        world.nic.arrive(&tagged);
        let n = pf.receive().len();
        pf.stop();
        n
    };
    assert_eq!(received(""), 3);
    assert_eq!(received(",multicast=01:00:5e:00:00:fb"), 4);
    assert_eq!(received(",multicast=all"), 4);
    assert_eq!(received(",promisc"), 5);
    // With virtual functions, tagged frames are received where they were asked for.
    assert_eq!(received(",vfs=1"), 2);
    assert_eq!(received(",vfs=1,promisc,vlans=5"), 4);
}

#[test]
fn the_link_is_followed() {
    let world = World::new();
    let pf = Running::new(world.pf("").unwrap(), 1);
    assert_eq!(pf.port.link().to_string(), "up, 1 Gb/s");
    world.nic.chip().plug(false);
    assert!(!pf.port.link().up);
    world.nic.chip().plug(true);
    assert_eq!((pf.port.link().up, pf.port.link().changes), (true, 3));
    // Down and up between two looks.
    world.nic.chip().plug(false);
    world.nic.chip().plug(true);
    assert_eq!((pf.port.link().up, pf.port.link().changes), (true, 5));
    world.pf.unplug();
    let link = pf.port.link();
    assert_eq!((link.up, link.gone), (false, true));
    let (stopped, pool, _) = pf.try_stop();
    let error = stopped.err().unwrap().to_string();
    assert!(error.contains("it is gone"), "{error}");
    assert_eq!(pool.available(), pool.buffers());
}

#[test]
fn a_link_that_is_up_is_not_negotiated_anew() {
    let world = World::new();
    let pf = Running::new(world.pf("").unwrap(), 1);
    assert!(world.nic.chip().was_phy_written());
    let (port, _) = pf.stop();
    let pf = Running::start(port, pool());
    assert!(pf.port.link().up && !world.nic.chip().was_phy_written());
    let (port, _) = pf.stop();
    world.nic.chip().plug(false);
    let pf = Running::start(port, pool());
    assert!(!pf.port.link().up && world.nic.chip().was_phy_written());
    pf.stop();
}

#[test]
fn what_cannot_be_is_refused_with_what_there_is() {
    let world = World::new();
    let refused = |options: &str, queues, room| {
        let pool = PoolConfig {
            buffers: 64,
            data_room: room,
            pages: PageSize::Kib4,
            ..PoolConfig::default()
        };
        let config = PortConfig {
            rx_queues: queues,
            ..PortConfig::new(Mempool::new(pool).unwrap())
        };
        let port = world.pf(options).unwrap().configure(config);
        port.err().unwrap().to_string()
    };
    assert!(refused("", 9, 2048).contains("at most 8"));
    assert!(refused(",vfs=1", 2, 2048).contains("at most 1"));
    assert!(refused("", 1, 512).contains("1024 bytes and more"));
    world.nic.chip().silent = true;
    let config = PortConfig::new(pool());
    let port = world.pf("").unwrap().configure(config).unwrap();
    let error = port.start().err().unwrap().to_string();
    assert!(error.contains("its PHY does not answer"), "{error}");
    world.nic.chip().named = false;
    let error = world.pf("").err().unwrap().to_string();
    assert!(error.contains("holds no unicast MAC address"), "{error}");
    world.nic.chip().stuck = true;
    let error = world.pf("").err().unwrap().to_string();
    assert!(error.contains("does not come back"), "{error}");
}

#[test]
fn a_loop_does_nothing_but_work() {
    for options in [",mtu=9000", ",mtu=9000,vfs=1"] {
        let world = World::new();
        only_work::assert_only_work(
            &world.pf,
            || igb::open(world.pf.clone().into(), &spec(options), grant()).unwrap(),
            |device, frame| device.with(|function, world| function.arrive(frame, world)),
        );
    }
}

#[test]
fn the_loop_of_a_virtual_function_does_nothing_but_work() {
    let world = World::new();
    let pf = Running::new(world.pf(",mtu=9000,vfs=1").unwrap(), 1);
    let device = world.vf_device(0);
    only_work::assert_only_work(
        &device,
        || igbvf::open(device.clone().into(), &spec(",mtu=9000"), grant()).unwrap(),
        |device, frame| device.with(|function, world| function.arrive(frame, world)),
    );
    pf.stop();
}
