//! Links that come and go, devices that fail or vanish, and queues that are dropped.

use pollux_pmd::RxState;
use pollux_pmd::driver::Link;
use pollux_pmd::quarantine::leaked_buffers;
use pollux_pmd_testkit::ports::quarantined;

use super::*;

fn link(up: bool, changes: u64) -> Link {
    Link {
        up,
        changes,
        ..Link::DOWN
    }
}

#[test]
fn changes_of_the_link_are_seen_and_counted() {
    let device = device(ALL);
    let rig = Rig::new(&device, "", 1, pool(2048));
    assert_eq!(rig.port.link(), link(true, 0));
    device.with(|model, _| model.set_link(false));
    assert_eq!(rig.port.link(), link(false, 1));
    assert_eq!(rig.port.link(), link(false, 1));
    device.with(|model, _| model.set_link(true));
    assert_eq!(rig.port.link(), link(true, 2));
    // Down and up again between two looks.
    device.with(|model, _| model.set_link(false));
    device.with(|model, _| model.set_link(true));
    assert_eq!(rig.port.link(), link(true, 4));
    rig.stop();
}

#[test]
fn a_link_that_is_not_told_of_is_up() {
    let device = device(ALL & !bit::STATUS);
    device.with(|model, _| model.up = false);
    let rig = Rig::new(&device, "", 1, pool(2048));
    assert_eq!(rig.port.link(), link(true, 0));
    rig.stop();
}

#[test]
fn a_device_that_needs_a_reset_is_down_until_it_has_one() {
    let device = device(ALL);
    let mut rig = Rig::new(&device, "", 1, pool(2048));
    device.with(|model, _| model.trouble = 64);
    assert_eq!(rig.rx[0].state(), RxState::Live, "before the first look");
    assert_eq!(rig.port.link(), link(false, 1));
    assert_eq!(rig.rx[0].state(), RxState::Down);
    assert!(!rig.send(0, &frame(0, 60), &[]), "the caller keeps it");
    assert_eq!(rig.poll(0), Vec::<Vec<u8>>::new());
    let port = rig.stop();
    let rig = Rig::start(port, &device, PortConfig::new(pool(2048))).unwrap();
    assert_eq!(rig.port.link(), link(true, 1));
    assert_eq!(rig.rx[0].state(), RxState::Live);
    rig.stop();
}

#[test]
fn a_device_that_is_unplugged_is_noticed_and_let_go() {
    let device = device(ALL);
    let mut rig = Rig::new(&device, "", 1, pool(2048));
    for n in 0..3 {
        rig.receive(0, &frame(n, 60));
    }
    device.unplug();
    // What had come before is still there.
    assert_eq!(rig.poll(0).len(), 3);
    for n in 0..64 {
        rig.send(0, &frame(n, 60), &[]);
    }
    let gone = Link {
        gone: true,
        ..link(false, 1)
    };
    assert_eq!(rig.port.link(), gone);
    assert_eq!(rig.rx[0].state(), RxState::Gone);
    let (pool, sent) = (rig.pool.clone(), rig.tx[0].sent());
    rig.port.stop(rig.rx, rig.tx).unwrap();
    drop(rig.cache);
    assert_eq!(pool.available(), pool.buffers());
    rig.ledger.check().unwrap();
    assert_eq!(sent.packets() + sent.errors(), rig.handed);
    assert!(device.with(|_, world| world.reachable().is_empty()));
}

#[test]
fn dropping_one_queue_leaves_the_others_running() {
    for rings in [0, bit::PACKED] {
        let device = device(ALL & !bit::PACKED | rings);
        let mut rig = Rig::new(&device, "", 2, pool(2048));
        drop(rig.rx.pop());
        let posted = quarantined(&rig.port);
        assert!(posted > 0);
        drop(rig.tx.pop());
        for n in 0..300 {
            rig.receive(0, &frame(n, 60));
            assert_eq!(rig.poll(0), [frame(n, 60)]);
            assert!(rig.send(0, &frame(n, 60), &[]));
            // For the queue that is gone, as long as it has buffers.
            rig.receive(1, &frame(n, 60));
            device.with(|model, _| model.pending.clear());
        }
        assert_eq!(device.with(|model, _| model.sent.len()), 300);
        assert_eq!(quarantined(&rig.port), posted);
        let Rig {
            port,
            rx,
            tx,
            pool,
            cache,
            ..
        } = rig;
        drop((rx, tx, cache));
        assert!(quarantined(&port) >= 2 * posted);
        assert_eq!(pool.available(), pool.buffers() - quarantined(&port));
        drop(port);
        assert_eq!(pool.available(), pool.buffers());
        let none: Vec<String> = Vec::new();
        device.with(|model, world| {
            assert_eq!((model.status(), world.faults), (0, 0));
            assert!(world.reachable().is_empty());
            assert_eq!(model.violations, none);
        });
    }
}

/// Their buffers are free behind that, and others write to them.
#[test]
fn a_device_is_at_rest_before_the_buffers_of_its_queues_are_free() {
    for port_first in [false, true] {
        let device = device(ALL);
        let Rig {
            port,
            rx,
            tx,
            pool,
            cache,
            ..
        } = Rig::new(&device, "", 2, pool(2048));
        drop(cache);
        let mut queues = Some((rx, tx));
        if !port_first {
            queues = None;
            assert!(pool.available() < pool.buffers());
            assert_ne!(device.with(|model, _| model.status()), 0);
        }
        drop(port);
        assert_eq!(device.with(|model, _| model.status()), 0);
        drop(queues);
        assert_eq!(pool.available(), pool.buffers());
        assert!(device.with(|_, world| world.reachable().is_empty()));
    }
}

/// Then it is kept off the bus, and whatever it still tries is an error of its own.
#[test]
fn a_device_that_does_not_come_to_rest_is_kept_off_the_bus() {
    for iommu in [false, true] {
        let device = device(ALL);
        let rig = Rig::new(&device, "", 1, pool(2048));
        let (pool, regions) = (rig.pool.clone(), device.with(|_, world| world.reachable()));
        device.with(|model, world| {
            (model.faults.never_rests, world.no_iommu) = (true, !iommu);
        });
        rig.port.stop(rig.rx, rig.tx).unwrap();
        drop(rig.cache);
        assert_eq!(pool.available(), pool.buffers());
        let written = device.with(|_, world| world.write(regions[0].0, &[1]));
        assert!(!written);
    }
}

/// Stops a port whose device gives no proof but, perhaps, the IOMMU's: what of its pool is missing,
/// of what was posted.
fn missing_after_stop(spoil: impl Fn(&Fake), iommu: bool) -> (usize, usize) {
    let device = device(ALL);
    let rig = Rig::new(&device, "", 1, pool(2048));
    device.with(|_, world| world.no_iommu = !iommu);
    spoil(&device);
    drop(rig.cache);
    let (pool, before) = (rig.pool, leaked_buffers());
    let posted = pool.buffers() - pool.available();
    let stopped = rig.port.stop(rig.rx, rig.tx);
    drop(stopped);
    let missing = pool.buffers() - pool.available();
    assert!(leaked_buffers() >= before + missing as u64);
    (missing, posted)
}

#[test]
fn buffers_of_a_device_that_reads_all_ones_are_not_reused() {
    let (missing, posted) = missing_after_stop(Fake::unplug, false);
    assert!(missing > 0 && missing == posted);
    assert_eq!(missing_after_stop(Fake::unplug, true).0, 0);
}

#[test]
fn a_device_that_never_comes_to_rest_keeps_its_buffers() {
    let stubborn = |device: &Fake| {
        device.with(|model, world| {
            (model.faults.never_rests, world.stubborn) = (true, true);
        });
    };
    let (missing, posted) = missing_after_stop(stubborn, false);
    assert!(missing > 0 && missing == posted);
    assert_eq!(missing_after_stop(stubborn, true).0, 0);
}

/// Whether a queue has been signalled since the last look.
fn was_woken(queue: &RxQueue) -> bool {
    let mut count = [0; 8];
    rustix::io::read(queue.event().unwrap(), &mut count).is_ok()
}

#[test]
fn a_queue_that_is_armed_is_woken_by_a_frame() {
    for rings in [0, bit::PACKED] {
        let device = device(ALL & !bit::PACKED | rings);
        let mut rig = Rig::new(&device, "", 2, pool(2048));
        rig.receive(1, &frame(0, 60));
        assert_eq!(rig.poll(1).len(), 1);
        assert!(!was_woken(&rig.rx[1]), "it polls");
        rig.rx[1].arm();
        rig.receive(1, &frame(1, 60));
        assert!(was_woken(&rig.rx[1]) && !was_woken(&rig.rx[0]));
        rig.rx[1].disarm();
        assert_eq!(rig.poll(1).len(), 1);
        rig.receive(1, &frame(2, 60));
        assert!(!was_woken(&rig.rx[1]));
        rig.stop();
    }
}

#[test]
fn a_device_without_interrupts_is_polled() {
    let device = device(ALL);
    device.with(|model, _| model.vectors = 1);
    let mut rig = Rig::new(&device, "", 2, pool(2048));
    assert!(rig.rx.iter().all(|queue| queue.event().is_none()));
    rig.receive(1, &frame(0, 60));
    assert_eq!(rig.poll(1), [frame(0, 60)]);
    rig.stop();
}
