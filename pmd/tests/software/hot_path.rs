//! Hot-path guard: after the start a poll loop neither allocates, nor frees, nor enters the kernel.
//!
//! There is no warm-up: the first frame is monitored as the last one is. All resources of a loop
//! are allocated when the port is started and when the loop's own parts are created.

mod rig;

use std::time::Instant;

use pollux_mempool::Burst;
use pollux_pmd::driver::{Description, Feature, Support};
use pollux_pmd::event::{
    Clop, ClopConfig, EventKind, EventQueue, EventRecord, PayloadInfo, Refused, RegionOptions,
};
use pollux_pmd::net::{ParseOptions, Parsed, classify};
use pollux_pmd::{
    Cause, Clock, ClockChoice, Ledger, MemoryGrant, PortConfig, Registry, StartedPort, Tally,
    TscClock,
};
use pollux_pmd_testkit::guard::listen;

use self::rig::{Sender, receiver};
use crate::common::pool;

/// Frames in a ring of the port; fewer than the pool has buffers, so that a ring can be full.
const RING: usize = 128;

const BUFFERS: usize = 256;

/// Whether loops read the time stamp counter: the kernel's clock may enter the kernel.
fn reads_the_counter() -> bool {
    let selected = TscClock::select(ClockChoice::Tsc).is_ok();
    if !selected {
        println!(
            "skipped: the kernel's clock is in use, as neither CPU nor kernel trusts the other"
        );
    }
    selected
}

#[test]
fn a_loop_over_a_loopback_port() {
    if !reads_the_counter() {
        return;
    }
    let (ledger, noise) = listen(|ear| {
        let pool = pool(BUFFERS);
        let config = PortConfig {
            ring: RING,
            rx_queues: 2,
            tx_queues: 2,
            ..PortConfig::new(pool.clone())
        };
        let port = Registry::builtin().open("loopback").unwrap();
        let StartedPort {
            port,
            mut rx,
            mut tx,
        } = port.configure(config).unwrap().start().unwrap();
        // Replies are sent and received by the other queue.
        let (mut back, mut replies) = (rx.pop().unwrap(), tx.pop().unwrap());
        let mut sender = Sender::new(tx.pop().unwrap());
        let (mut receiver, mut consumer) = receiver(rx.pop().unwrap());
        let mut cache = pool.cache(64).unwrap();
        let mut ledger = Ledger::new();
        ledger.add("rx", receiver.rx.tally());
        ledger.add("receiver", receiver.tally.view());

        let mut taken = 0;
        ear.during(|| {
            for round in 0..20_000_u32 {
                // At intervals the sender runs ahead until the ring is full, and the pool empty.
                let bursts = if round % 50 == 49 { 10 } else { 1 };
                for _ in 0..bursts {
                    sender.send(&mut cache, 1 + round as usize % 32);
                }
                if round % 50 == 49 {
                    let mut all = Burst::<BUFFERS>::new();
                    cache.alloc_burst(&mut all, BUFFERS);
                    assert!(cache.alloc().is_none());
                    cache.free_burst(&mut all);
                }
                while receiver.poll(&mut replies, &mut cache) {}
                // And the consumer falls behind until all buffers are full.
                if round / 100 % 5 != 4 {
                    consumer.consume();
                }
                let mut burst = Burst::<32>::new();
                taken += back.rx(&mut cache, &mut burst);
                burst.take_all(|mbuf| {
                    let frozen = mbuf.freeze();
                    let clone = frozen.clone();
                    assert_eq!(clone.data().len(), 60);
                    drop(clone);
                    cache.free(frozen.try_thaw().unwrap());
                });
            }
        });

        // Every case has occurred.
        let balance = ledger.check().unwrap();
        for cause in [
            Cause::Malformed,
            Cause::BadChecksum,
            Cause::DemuxMiss,
            Cause::NotForUs,
            Cause::RingFull,
        ] {
            assert!(balance.dropped_for(cause) > 0, "{cause:?} in {balance}");
        }
        let counts = receiver.trackers[0].counts();
        assert!(counts.gaps > 0 && counts.duplicates > 0, "{counts:?}");
        assert!(taken > 0 && consumer.payloads > 100_000);
        assert!(u64::from(sender.n) > balance.from_wire, "the ring was full");
        assert_eq!(receiver.times.view().percentiles().count, balance.from_wire);
        port.stop(vec![receiver.rx, back], vec![sender.tx, replies])
            .unwrap();
        ledger
    });
    ledger.check().unwrap();
    noise.assert_none();
}

#[test]
fn a_loop_over_null_ports() {
    if !reads_the_counter() {
        return;
    }
    let ((), noise) = listen(|ear| {
        let pool = pool(BUFFERS);
        let start = |spec: &str| {
            let port = Registry::builtin().open(spec).unwrap();
            let port = port.configure(PortConfig::new(pool.clone())).unwrap();
            port.start().unwrap()
        };
        let (mut left, mut right) = (start("null:size=1500"), start("null"));
        let mut cache = pool.cache(64).unwrap();
        let mut tally = Tally::new();
        ear.during(|| {
            for round in 0..20_000 {
                let (from, to) = if round % 2 == 0 {
                    (&mut left, &mut right)
                } else {
                    (&mut right, &mut left)
                };
                let mut burst = Burst::<32>::new();
                from.rx[0].rx(&mut cache, &mut burst);
                for mbuf in burst.iter() {
                    let parsed = classify(mbuf, &ParseOptions::default());
                    assert!(!matches!(parsed, Ok(Parsed::Udp(_))));
                    tally.count_dropped(Cause::NotForUs, 1);
                }
                assert_eq!(to.tx[0].tx(&mut cache, &mut burst), 32);
            }
        });
        for StartedPort { port, rx, tx } in [left, right] {
            port.stop(rx, tx).unwrap();
        }
    });
    noise.assert_none();
}

/// Both ends of a vhost-user socket, each with a pool of its own. Their threads, which use the
/// socket, are started where the guard is inactive.
#[test]
fn a_loop_over_both_ends_of_a_vhost_user_socket() {
    if !reads_the_counter() {
        return;
    }
    for rings in ["packed=on", "packed=off"] {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let start = |options: &str| {
            let spec = format!("vhost-user:{},{options},{rings}", socket.display());
            let pool = pool(BUFFERS);
            // SAFETY: the peer is the other end, in this process.
            let registry = Registry::builtin().granting(unsafe { MemoryGrant::new() });
            let port = registry.open(&spec).unwrap();
            let config = PortConfig {
                ring: RING,
                ..PortConfig::new(pool.clone())
            };
            (pool, port.configure(config).unwrap().start().unwrap())
        };
        let mut ends = [start("role=device,server"), start("role=driver")];
        let began = Instant::now();
        while !ends.iter().all(|(_, end)| end.port.link().up) {
            assert!(began.elapsed().as_secs() < 10, "the ends have not met");
        }
        let (frames, noise) = listen(|ear| {
            let [(left_pool, left), (right_pool, right)] = &mut ends;
            let mut caches = [left_pool.cache(64).unwrap(), right_pool.cache(64).unwrap()];
            let mut burst = Burst::<32>::new();
            let mut frames = 0;
            ear.during(|| {
                for _ in 0..10_000 {
                    for (from, to) in [(0, 1), (1, 0)] {
                        let (sender, receiver) = match from {
                            0 => (&mut *left, &mut *right),
                            _ => (&mut *right, &mut *left),
                        };
                        caches[from].alloc_burst(&mut burst, 32);
                        burst.iter_mut().for_each(|mbuf| {
                            mbuf.append(1000).unwrap().fill(7);
                        });
                        sender.tx[0].tx(&mut caches[from], &mut burst);
                        caches[from].free_burst(&mut burst);
                        frames += receiver.rx[0].rx(&mut caches[to], &mut burst);
                        caches[to].free_burst(&mut burst);
                    }
                }
            });
            frames
        });
        noise.assert_none();
        assert!(frames > 100_000, "{frames}");
    }
}

#[test]
fn an_event_queue_and_a_list_of_buffers() {
    if !reads_the_counter() {
        return;
    }
    let ((), noise) = listen(|ear| {
        let clock = TscClock::get();
        let pool = pool(BUFFERS);
        let frame = pool.cache(32).unwrap().alloc_from(&[7; 5000]).unwrap();
        let config = ClopConfig {
            buffers: 4,
            size: 8192,
            ..ClopConfig::default()
        };
        let (mut writer, mut reader) = Clop::new(&config, &clock).unwrap().split();
        let queue = EventQueue::new(8, &RegionOptions::default()).unwrap();
        let (mut events, mut announced) = queue.split();
        let record = EventRecord {
            kind: EventKind::APPLICATION,
            ..EventRecord::default()
        };
        let mut out = [EventRecord::default(); 4];
        let mut bytes = 0;
        ear.during(|| {
            let info = PayloadInfo {
                arrival: clock.now(),
                ..PayloadInfo::default()
            };
            for round in 0..1000_usize {
                writer.append(&mut events, &info, &[1; 600]).unwrap();
                // Across three segments.
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
                while events.push(&record).is_ok() {}
                assert_eq!(announced.poll_burst(&mut out), 4);
                assert!(announced.poll().is_some());
                while announced.poll().is_some() {}
            }
        });
        assert!(bytes > 0);
    });
    noise.assert_none();
}

/// Fails for a driver that is neither monitored above nor exempt: monitor it, or declare in its
/// description and its capabilities that it enters the kernel.
#[test]
fn every_other_driver_says_that_it_enters_the_kernel() {
    if !reads_the_counter() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("out.pcap");
    let registry = Registry::builtin();
    // Drivers of PCI devices need a device, which is not available here: their own tests monitor
    // them, on device models (`a_loop_does_nothing_but_work`). Whether a DPDK device enters the
    // kernel is a property of the device.
    let watchable = |driver: &&Description| !matches!(driver.name, "pci" | "dpdk");
    for driver in registry.descriptions().filter(watchable) {
        let (name, enters) = (driver.name, driver.support(Feature::KernelBacked));
        let watched = matches!(name, "loopback" | "null" | "vhost-user");
        assert_eq!(enters == Support::No, watched, "`{name}` is not watched");
        let spec = match name {
            "pcap" => format!("pcap:tx={}", capture.display()),
            "af_packet" | "af_xdp" => format!("{name}:lo"),
            "tap" => format!("tap:plx{}", std::process::id()),
            "unix" => {
                let [socket, peer] = ["a", "b"].map(|name| directory.path().join(name));
                format!("unix:{},peer={}", socket.display(), peer.display())
            }
            "vhost-user" => {
                let socket = directory.path().join("socket");
                format!("vhost-user:{},role=device", socket.display())
            }
            _ => name.to_owned(),
        };
        match registry.open(&spec) {
            Ok(port) => assert_eq!(port.capabilities().kernel_backed, !watched, "{name}"),
            Err(error) => println!("skipped: {error}"),
        }
    }
}
