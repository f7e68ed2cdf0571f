//! The port: link, interrupts, start and stop, a device that goes.

use std::sync::Arc;

use pollux_mempool::{Burst, Mempool};
use pollux_pmd::drivers::e1000e::registers::{CTRL_EXT, GCR, GCR2, RDBAH, RDBAL};
use pollux_pmd::ledger::Cause;
use pollux_pmd::port::{PortConfig, RxState, StartedPort};
use pollux_pmd::quarantine::leaked_buffers;
use pollux_pmd_testkit::fake::{FakeDevice, grant};
use pollux_pmd_testkit::models::e1000e::Card;
use pollux_pmd_testkit::only_work;
use pollux_pmd_testkit::ports::{pool, quarantined};

use super::{Bench, MAC, frame_to, ipv4, probe};

#[test]
fn the_link_is_followed() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    let link = bench.started.port.link();
    assert_eq!(link.to_string(), "up, 1 Gb/s");
    bench.with(|card, world| card.set_link(world, false));
    let down = bench.started.port.link();
    assert_eq!(
        (down.up, down.changes, down.speed),
        (false, link.changes + 1, None)
    );
    // Up and down between two looks.
    bench.with(|card, world| card.set_link(world, true));
    bench.with(|card, world| card.set_link(world, false));
    assert_eq!(bench.started.port.link().changes, down.changes + 2);
    bench.with(|_, world| world.now += 20_000_000);
    bench.receive();
    assert_eq!(bench.started.rx[0].state(), RxState::Down);
    bench.with(|card, world| card.set_link(world, true));
    bench.with(|_, world| world.now += 20_000_000);
    bench.receive();
    assert_eq!(
        bench.started.rx[0].state(),
        RxState::Down,
        "before the first look"
    );
    assert!(bench.started.port.link().up);
    assert_eq!(bench.started.rx[0].state(), RxState::Live);
    bench.stop();
}

#[test]
fn rings_are_in_memory_as_the_device_asks_for() {
    let device = FakeDevice::new(Card::new(MAC));
    let pool = pool(256, 2048);
    // No machine has so many.
    device.with(|_, world| world.memory.numa_node = Some(1000));
    let port = probe(&device, "").unwrap();
    let port = port.configure(PortConfig::new(pool)).unwrap();
    let error = port.start().err().unwrap().to_string();
    assert!(error.contains("1000"), "{error}");
}

/// Against unreliable PCIe completions, by which transmission stops. A reset clears them.
#[test]
fn each_start_sets_the_bits_that_errata_require() {
    let device = FakeDevice::new(Card::new(MAC));
    let pool = pool(256, 2048);
    let port = probe(&device, "").unwrap();
    let mut port = port.configure(PortConfig::new(pool)).unwrap();
    for round in 0..2 {
        let started = port.start().unwrap();
        device.with(|card, _| {
            assert_eq!(card.get(GCR.at) & 1 << 22, 1 << 22, "{round}");
            assert_eq!(card.get(GCR2.at) & 1, 1, "{round}");
            assert_eq!(card.get(CTRL_EXT.at) & 3 << 22, 1 << 22, "{round}");
        });
        port = started.port.stop(started.rx, started.tx).unwrap();
        device.with(|card, _| assert_eq!(card.get(GCR.at), 0, "{round}"));
    }
}

#[test]
fn a_queue_wakes_a_sleeper_once_it_is_armed() {
    let mut bench = Bench::new("", 2, pool(512, 2048));
    let woken = |bench: &Bench| {
        let mut count = [0; 8];
        [0, 1].map(|i: usize| {
            rustix::io::read(bench.started.rx[i].event().unwrap(), &mut count).is_ok()
        })
    };
    bench.arrive(&frame_to(MAC, 60));
    assert_eq!(woken(&bench), [false; 2], "not armed");
    bench.started.rx[0].arm();
    assert_eq!(woken(&bench), [true, false], "it came before");
    bench.arrive(&frame_to(MAC, 60));
    assert_eq!(woken(&bench), [false; 2], "once");
    bench.receive();
    bench.started.rx[0].arm();
    assert_eq!(woken(&bench), [true, false], "it came since");
    bench.started.rx[0].arm();
    bench.started.rx[0].disarm();
    bench.arrive(&frame_to(MAC, 60));
    assert_eq!(woken(&bench), [false; 2], "disarmed");
    bench.receive();
    bench.stop();
}

#[test]
fn a_port_stops_and_starts_under_traffic() {
    let pool = pool(512, 2048);
    let device = FakeDevice::new(Card::new(MAC));
    let config = PortConfig {
        ring: 64,
        ..PortConfig::new(pool.clone())
    };
    let mut port = probe(&device, "").unwrap().configure(config).unwrap();
    let arrive = |n: usize| {
        for _ in 0..n {
            device.with(|card, world| card.receive(world, &frame_to(MAC, 200)));
        }
    };
    for round in 0..100 {
        arrive(3);
        let mut started = port.start().unwrap();
        arrive(round % 80);
        let mut cache = pool.cache(16).unwrap();
        let mut burst = Burst::<8>::new();
        let n = started.rx[0].rx(&mut cache, &mut burst);
        started.tx[0].tx(&mut cache, &mut burst);
        let tally = started.rx[0].tally();
        drop((cache, burst));
        port = started.port.stop(started.rx, started.tx).unwrap();
        let mut balance = tally.balance();
        balance.delivered = n as u64;
        assert!(balance.is_balanced(), "{balance}");
        assert_eq!(balance.from_wire, (round % 80) as u64);
        assert_eq!(pool.available(), pool.buffers());
        arrive(3);
    }
    assert_eq!(device.with(|_, world| world.faults), 0);
}

#[test]
fn what_was_lost_before_a_restart_is_not_lost_again() {
    let pool = pool(512, 2048);
    let device = FakeDevice::new(Card::new(MAC));
    let config = PortConfig {
        ring: 64,
        ..PortConfig::new(pool.clone())
    };
    let mut port = probe(&device, "").unwrap().configure(config).unwrap();
    for frames in [200, 0, 200] {
        let before = device.with(|card, _| card.missed);
        let started = port.start().unwrap();
        for _ in 0..frames {
            device.with(|card, world| card.receive(world, &frame_to(MAC, 1000)));
        }
        let missed = device.with(|card, _| card.missed) - before;
        assert_eq!(missed >= 100, frames > 0, "{missed}");
        let tally = started.rx[0].tally();
        port = started.port.stop(started.rx, started.tx).unwrap();
        let balance = tally.balance();
        assert_eq!(balance.dropped_for(Cause::RingFull), missed);
        assert_eq!(balance.from_wire, frames);
        assert!(balance.is_balanced(), "{balance}");
        assert_eq!(pool.available(), pool.buffers());
    }
}

#[test]
fn a_port_that_is_dropped_while_it_runs_leaves_nothing_running() {
    let bench = Bench::new("", 1, pool(256, 2048));
    let Bench {
        device,
        started,
        pool,
        cache,
        ..
    } = bench;
    // The port first: the queues are with a poll loop that ends later.
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = started;
    drop(port);
    assert_eq!(device.with(|_, world| world.reachable().len()), 0);
    let (mut cache, mut burst) = (cache.unwrap(), Burst::<8>::new());
    cache.alloc_burst(&mut burst, 1);
    tx[0].tx(&mut cache, &mut burst);
    rx[0].rx(&mut cache, &mut burst);
    device.with(|card, world| card.receive(world, &frame_to(MAC, 60)));
    drop((rx, tx, cache, burst));
    assert_eq!(device.with(|_, world| world.faults), 0);
    assert_eq!(pool.available(), pool.buffers());
}

#[test]
fn dropping_one_queue_leaves_the_others_running() {
    let mut bench = Bench::new("", 2, pool(512, 2048));
    let flow = |n: u8| ipv4(6, n, 1000, 40);
    for n in 0..20 {
        bench.arrive(&flow(n));
    }
    let before = [0, 1].map(|queue| bench.receive_on(queue).len());
    assert!(
        before[0] > 0 && before[1] > 0,
        "both have flows: {before:?}"
    );
    drop(bench.started.rx.pop());
    let posted = quarantined(&bench.started.port);
    assert!((32..64).contains(&posted), "of a ring of 64: {posted}");
    // More than the ring of a queue that is not polled holds: the other queue receives all flows.
    for round in 0..20 {
        for n in 0..20 {
            bench.arrive(&flow(n));
        }
        assert_eq!(bench.receive_on(0).len(), 20, "{round}");
    }
    drop(bench.started.tx.pop());
    for n in 0..200 {
        assert_eq!(bench.send_on(0, [frame_to(MAC, 60 + n)]), 1);
    }
    assert_eq!(bench.with(|card, _| card.sent[0].len()), 200);
    assert_eq!(quarantined(&bench.started.port), posted);
    let (device, started, pool) = bench.without_cache();
    let StartedPort { port, rx, tx } = started;
    drop((rx, tx));
    assert_eq!(pool.available(), pool.buffers() - quarantined(&port));
    assert!(quarantined(&port) > posted);
    drop(port);
    assert_eq!(pool.available(), pool.buffers());
    assert_eq!(device.with(|_, world| world.faults), 0);
}

/// A queue of this length has buffers posted, and the rest of the pool is there: none of those that
/// are posted is given out, whatever the device does to them.
fn assert_kept_apart(pool: &Mempool, posted: &[u64], device: &FakeDevice<Card>) {
    let taken: Vec<_> = std::iter::repeat_with(|| pool.alloc())
        .map_while(|one| one)
        .collect();
    assert_eq!(taken.len(), pool.buffers() - posted.len());
    for &at in posted {
        let written = device.with(|_, world| world.write(at, &[0xee; 60]));
        assert!(written, "it works on");
    }
    for mut mbuf in taken {
        let room = mbuf.tailroom();
        let bytes = mbuf.append(room).unwrap();
        assert!(bytes.iter().all(|&byte| byte != 0xee));
    }
}

/// Where the device was told to put frames.
fn posted(device: &FakeDevice<Card>) -> Vec<u64> {
    device.with(|card, world| {
        let [low, high] = [RDBAL, RDBAH].map(|half| u64::from(card.get(half.of(0))));
        (0..63)
            .map(|slot| {
                let mut address = [0; 8];
                world.read((high << 32 | low) + slot * 16, &mut address);
                u64::from_le_bytes(address)
            })
            .collect()
    })
}

#[test]
fn buffers_of_a_device_that_reads_all_ones_are_not_reused() {
    for iommu in [false, true] {
        let bench = Bench::new("", 1, pool(256, 2048));
        bench.with(|_, world| world.no_iommu = !iommu);
        let (device, started, pool) = bench.without_cache();
        let posted = posted(&device);
        device.unplug();
        let before = leaked_buffers();
        let StartedPort { port, rx, tx } = started;
        let error = port.stop(rx, tx).err().unwrap().to_string();
        assert!(error.contains("it is gone"), "{error}");
        if iommu {
            // The IOMMU proves it.
            assert_eq!(pool.available(), pool.buffers());
            assert!(!device.with(|_, world| world.write(posted[0], &[0xee])));
        } else {
            assert_kept_apart(&pool, &posted, &device);
            assert!(leaked_buffers() >= before + 63);
        }
    }
}

#[test]
fn a_device_that_never_comes_to_rest_keeps_its_buffers() {
    // It takes no notice of its registers; whether it goes on mastering the bus, and whether there
    // is an IOMMU.
    for (stubborn, iommu, kept) in [
        (true, false, true),
        (false, false, false),
        (true, true, false),
    ] {
        for dropped in [false, true] {
            let bench = Bench::new("", 1, pool(256, 2048));
            bench.with(|card, world| {
                card.stubborn = true;
                (world.stubborn, world.no_iommu) = (stubborn, !iommu);
            });
            let (device, started, pool) = bench.without_cache();
            let posted = posted(&device);
            let StartedPort { port, rx, tx } = started;
            if dropped {
                drop((rx, tx));
                assert_kept_apart(&pool, &posted, &device);
                drop(port);
            } else {
                let error = port.stop(rx, tx).err().unwrap().to_string();
                assert!(error.contains("does not come back"), "{error}");
            }
            if kept {
                assert_kept_apart(&pool, &posted, &device);
            } else {
                assert_eq!(pool.available(), pool.buffers());
                assert!(!device.with(|_, world| world.write(posted[0], &[0xee])));
            }
        }
    }
}

#[test]
fn a_device_that_is_pulled_out_ends_nothing_but_itself() {
    let mut bench = Bench::new("", 1, pool(256, 2048));
    bench.arrive(&frame_to(MAC, 60));
    bench.send_on(0, [frame_to(MAC, 60)]);
    bench.device.unplug();
    bench.send_on(0, [frame_to(MAC, 60)]);
    assert_eq!(bench.receive().len(), 1);
    bench.with(|_, world| world.now += 20_000_000);
    bench.receive();
    assert_eq!(bench.started.port.link().to_string(), "gone");
    assert_eq!(bench.started.rx[0].state(), RxState::Gone);
    let StartedPort { port, rx, tx } = bench.started;
    let (tally, sent) = (rx[0].tally(), tx[0].sent());
    bench.cache = None;
    let error = port.stop(rx, tx).err().unwrap().to_string();
    assert!(error.contains("it is gone"), "{error}");
    assert_eq!(
        (tally.balance().from_wire, sent.packets(), sent.errors()),
        (1, 1, 1)
    );
    assert_eq!(bench.pool.available(), bench.pool.buffers());
    let error = probe(&bench.device, "").err().unwrap().to_string();
    assert!(error.contains("it is gone"), "{error}");
}

#[test]
fn what_cannot_be_is_refused_with_what_there_is() {
    let device = FakeDevice::new(Card::new(MAC));
    let error = |options: &str, config: PortConfig| {
        let port = probe(&device, options).and_then(|port| port.configure(config));
        port.err().unwrap().to_string()
    };
    let config = || PortConfig::new(pool(64, 2048));
    let cases = [
        (error("mtu=9213", config()), "68 to 9212"),
        (error("multicast=x", config()), "group addresses"),
        (error("descriptors=new", config()), "extended or legacy"),
        (
            error(
                &format!("unicast={}", ["02:00:00:00:00:01"; 16].join("+")),
                config(),
            ),
            "15, or promisc=on",
        ),
        (
            error(
                "",
                PortConfig {
                    rx_queues: 3,
                    ..config()
                },
            ),
            "at most 2",
        ),
        (
            error(
                "",
                PortConfig {
                    ring: 40_000,
                    ..config()
                },
            ),
            "rings of at most 32768",
        ),
        (
            error("", PortConfig::new(pool(64, 255))),
            "buffers of 256 bytes and more",
        ),
        (
            error(
                "descriptors=legacy",
                PortConfig {
                    rx_queues: 2,
                    ..config()
                },
            ),
            "one, or descriptors=extended",
        ),
    ];
    for (error, text) in cases {
        assert!(error.contains(text), "{error}");
    }
    let nameless = FakeDevice::new(Card::new([0; 6]));
    let error = probe(&nameless, "").err().unwrap().to_string();
    assert!(
        error.contains("no unicast MAC address") && error.contains("set one with"),
        "{error}"
    );
}

#[test]
fn registers_are_shown_to_people() {
    let bench = Bench::new("", 1, pool(256, 2048));
    let registers = bench.started.port.registers();
    for line in [
        "0x00008 STATUS   0x00080083  device status FD LU SPEED=0x2 MASTER_ENABLE\n",
        "0x02818 RDT0     0x0000003f  receive ring tail\n",
    ] {
        assert!(registers.contains(line), "{registers}");
    }
    assert!(!registers.contains("MPC"), "reading it would clear it");
    bench.stop();
}

#[test]
fn a_loop_does_nothing_but_work() {
    for options in ["mtu=9000", "mtu=9000,descriptors=legacy"] {
        let device = FakeDevice::new(Card::new(MAC));
        let spec = format!("pci:0000:03:00.0,{options}").parse().unwrap();
        only_work::assert_only_work(
            &device,
            || super::open(Arc::new(device.clone()), &spec, grant()).unwrap(),
            |device, frame| device.with(|card, world| card.receive(world, frame)),
        );
    }
}

/// A device that ignores resets, and had been told to stop before, reads the same.
#[test]
fn registers_that_read_as_after_a_reset_prove_nothing() {
    let bench = Bench::new("", 1, pool(256, 2048));
    bench.with(|_, world| (world.stubborn, world.no_iommu) = (true, true));
    let (device, started, pool) = bench.without_cache();
    let posted = posted(&device);
    let StartedPort { port, rx, tx } = started;
    drop(port.stop(rx, tx).unwrap());
    assert_kept_apart(&pool, &posted, &device);
}
