//! Links that come and go, devices that fail or vanish, and queues that are dropped.

use super::*;
use crate::RxState;
use crate::driver::Link;

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
    // Over before anybody looked.
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
    assert_eq!(rig.rx[0].state(), RxState::Live, "nobody has looked");
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

/// Its buffers are free behind that, and others write to them.
#[test]
fn a_device_is_at_rest_before_the_buffers_of_a_dropped_queue_are_free() {
    for first in ["rx", "tx", "port"] {
        let device = device(ALL);
        let Rig {
            port,
            mut rx,
            mut tx,
            pool,
            cache,
            ..
        } = Rig::new(&device, "", 2, pool(2048));
        let mut port = Some(port);
        match first {
            "rx" => drop(rx.pop()),
            "tx" => drop(tx.pop()),
            _ => {
                drop(port.take());
                rx.clear();
            }
        }
        let status = device.with(|model, _| model.status());
        assert_eq!(status, 0, "{first}");
        drop((port, rx, tx, cache));
        assert_eq!(pool.available(), pool.buffers());
        assert!(device.with(|_, world| world.reachable().is_empty()));
    }
}

/// Then it is kept off the bus, and whatever it still tries is an error of its own.
#[test]
fn a_device_that_does_not_come_to_rest_is_kept_off_the_bus() {
    let device = device(ALL);
    let rig = Rig::new(&device, "", 1, pool(2048));
    let (pool, regions) = (rig.pool.clone(), device.with(|_, world| world.reachable()));
    device.with(|model, _| model.faults.never_rests = true);
    rig.port.stop(rig.rx, rig.tx).unwrap();
    drop(rig.cache);
    assert_eq!(pool.available(), pool.buffers());
    let written = device.with(|_, world| world.write(regions[0].0, &[1]));
    assert!(!written);
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
