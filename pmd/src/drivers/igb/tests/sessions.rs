//! Resets, from either side.

use super::*;
use crate::RxState;

#[test]
fn a_function_waits_for_its_physical_one_no_longer_than_is_reasonable() {
    let world = World::new();
    let open = || {
        let device = world.nic.device(Some(0));
        let error = igbvf::open(device.into(), &spec("")).err();
        error.unwrap().to_string()
    };
    let error = open();
    assert!(error.contains("has no driver"), "{error}");
    // A driver that takes no notice of anybody: ready, and silent.
    world
        .pf
        .with(|function, world| function.write(world, 0, 0x18, 4, 1 << 14));
    let error = open();
    assert!(error.contains("does not answer"), "{error}");
}

#[test]
fn a_reset_of_the_physical_function_is_noticed() {
    let world = World::new();
    let pf = Running::new(world.pf(",vfs=1").unwrap(), 1);
    let mut a = world.start_vf(0, "");
    assert!(a.port.link().up);
    let (pf, _) = pf.stop();
    assert!(!a.port.link().up);
    let mut pf = Running::start(pf, pool_of(&a));
    assert!(!a.port.link().up, "until it begins anew");
    world.nic.arrive(&frame(a.mac(), PEER, 1));
    assert_eq!(a.receive().len(), 0);
    let (port, _) = a.stop();
    let mut a = Running::start(port, pool());
    assert!(a.port.link().up);
    world.nic.arrive(&frame(a.mac(), PEER, 2));
    assert_eq!(a.receive().len(), 1);
    assert_eq!(pf.receive().len(), 0);
    a.stop();
    pf.stop();
}

#[test]
fn a_function_that_its_owner_wants_back_is_down() {
    let world = World::new();
    let device = world.vf_device(0);
    let mut pf = Running::new(world.pf(",vfs=1").unwrap(), 1);
    let vf = igbvf::open(device.clone().into(), &spec("")).unwrap();
    let mut vf = Running::new(Port::new("vf", vf), 1);
    for (port, device) in [(&mut vf, &device), (&mut pf, &world.pf)] {
        assert!(port.port.link().up);
        device.want_back();
        assert_eq!(port.port.link().to_string(), "gone");
        // Its queues look now and then.
        device.with(|_, world| world.now += 20_000_000);
        port.receive();
        assert_eq!(port.rx[0].state(), RxState::Down);
    }
    vf.stop();
    pf.stop();
}

fn pool_of(port: &Running) -> Mempool {
    port.pool.clone()
}

/// Under traffic, over and over.
#[test]
fn a_function_comes_and_goes_and_the_others_do_not_mind() {
    let world = World::new();
    let mut pf = Running::new(world.pf(",vfs=2").unwrap(), 1);
    let mut b = world.start_vf(1, "");
    let mut port = Some(
        world
            .vf(0, "")
            .unwrap()
            .configure(PortConfig::new(pool()))
            .unwrap(),
    );
    for n in 0..20 {
        let mut a = Running::start(port.take().unwrap(), pool());
        for mac in [pf.mac(), a.mac(), b.mac()] {
            world.nic.arrive(&frame(mac, PEER, n));
        }
        assert_eq!(a.receive().len(), 1);
        world.nic.arrive(&frame(a.mac(), PEER, n));
        port = Some(a.stop().0);
        world.nic.arrive(&frame(b.mac(), PEER, n));
        assert_eq!((pf.receive().len(), b.receive().len()), (1, 2));
    }
    b.stop();
    pf.stop();
}
