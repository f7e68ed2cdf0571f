//! Frames come to those that they are for, and to no others.

use super::*;

fn statistic(port: &Port<Started>, name: &str) -> u64 {
    let all = port.statistics();
    all.iter().find(|(other, _)| other == name).unwrap().1
}

#[test]
fn each_function_receives_its_own_frames() {
    let world = World::new();
    let mut pf = Running::new(world.pf(",vfs=2").unwrap(), 1);
    let (mut a, mut b) = (world.start_vf(0, ""), world.start_vf(1, ""));
    let macs = [pf.mac(), a.mac(), b.mac()];
    assert!(macs[0] != macs[1] && macs[1] != macs[2] && macs[0] != macs[2]);
    for (n, mac) in (0..).zip(macs) {
        world.nic.arrive(&frame(mac, PEER, n));
    }
    world.nic.arrive(&frame(PEER, macs[1], 9));
    for (n, port) in (0..).zip([&mut pf, &mut a, &mut b]) {
        assert_eq!(port.receive(), [frame(macs[usize::from(n)], PEER, n)]);
    }
    // For all.
    let hello = frame(MacAddr::BROADCAST, PEER, 1);
    world.nic.arrive(&hello);
    for port in [&mut pf, &mut a, &mut b] {
        assert_eq!(port.receive(), [&hello[..]]);
    }
    // To each other, past the wire; a broadcast goes out as well, and does not come back.
    let to_b = frame(macs[2], macs[1], 2);
    a.send(&to_b);
    assert_eq!(
        (b.receive(), a.receive(), pf.receive()),
        (vec![to_b], vec![], vec![])
    );
    assert_eq!(world.nic.sent(), Vec::<Vec<u8>>::new());
    let hello = frame(MacAddr::BROADCAST, macs[2], 3);
    b.send(&hello);
    assert_eq!((a.receive(), b.receive()), (vec![hello.clone()], vec![]));
    assert_eq!(
        (pf.receive(), world.nic.sent()),
        (vec![hello.clone()], vec![hello])
    );
    // To the wire.
    let out = frame(PEER, macs[1], 4);
    a.send(&out);
    assert_eq!(world.nic.sent(), [out]);
    for port in [a, b, pf] {
        port.stop();
    }
}

#[test]
fn a_function_sends_with_its_own_address_alone() {
    let world = World::new();
    let pf = Running::new(world.pf(",vfs=2").unwrap(), 1);
    let (mut a, mut b) = (world.start_vf(0, ""), world.start_vf(1, ""));
    for from in [pf.mac(), b.mac(), PEER] {
        a.send(&frame(MacAddr::BROADCAST, from, 1));
    }
    a.send(&tagged(5, &frame(PEER, a.mac(), 1)));
    assert_eq!((b.receive().len(), world.nic.sent().len()), (0, 0));
    assert_eq!(world.nic.chip().spoofed, 4);
    // There was no interrupt; the thread polls at intervals.
    let start = std::time::Instant::now();
    while statistic(&pf.port, "vf_spoof_events") == 0 {
        assert!(start.elapsed() < Duration::from_secs(30));
        std::thread::yield_now();
    }
    for port in [a, b, pf] {
        port.stop();
    }
}

#[test]
fn functions_with_vlans_of_their_own_are_apart() {
    let world = World::new();
    let macs = ",vfs=2,vf-macs=02:00:00:00:00:01+02:00:00:00:00:02";
    let pf = world.pf(&format!("{macs},vf-vlans=100+200")).unwrap();
    let mut pf = Running::new(pf, 1);
    let (mut a, mut b) = (world.start_vf(0, ""), world.start_vf(1, ""));
    let (mac_a, mac_b) = (a.mac(), b.mac());
    assert_eq!(mac_b, MacAddr([2, 0, 0, 0, 0, 2]));
    // To its address, in its VLAN: without the tag.
    let to_a = frame(mac_a, PEER, 1);
    world.nic.arrive(&tagged(100, &to_a));
    world.nic.arrive(&tagged(200, &to_a));
    world.nic.arrive(&to_a);
    assert_eq!(a.receive(), [to_a]);
    let hello = frame(MacAddr::BROADCAST, PEER, 2);
    world.nic.arrive(&tagged(200, &hello));
    assert_eq!((a.receive(), b.receive()), (vec![], vec![hello]));
    assert_eq!(pf.receive(), Vec::<Vec<u8>>::new());
    // Its frames are tagged, and reach no function in another VLAN.
    let to_b = frame(mac_b, mac_a, 3);
    a.send(&to_b);
    assert_eq!(b.receive(), Vec::<Vec<u8>>::new());
    let out = frame(PEER, mac_a, 4);
    a.send(&out);
    assert!(world.nic.sent().contains(&tagged(100, &out)));
    // It does not choose VLANs.
    let error = world
        .vf(0, ",vlans=7")
        .unwrap()
        .configure(PortConfig::new(pool()));
    let error = error.unwrap().start().err().unwrap().to_string();
    assert!(error.contains("refuses a VLAN"), "{error}");
    for port in [a, b, pf] {
        port.stop();
    }
}

#[test]
fn groups_and_vlans_are_received_where_they_were_asked_for() {
    let world = World::new();
    let mut pf = Running::new(world.pf(",vfs=2,vlans=5").unwrap(), 1);
    let group = MacAddr([1, 0, 0x5e, 0, 0, 0xfb]);
    let mut a = world.start_vf(0, ",multicast=01:00:5e:00:00:fb,vlans=6+7,mtu=9000");
    let mut b = world.start_vf(1, "");
    world.nic.arrive(&frame(group, PEER, 1));
    assert_eq!(a.receive().len(), 1);
    for (id, in_pf, in_a) in [(5, 1, 0), (6, 0, 1), (7, 0, 1), (8, 0, 0)] {
        world
            .nic
            .arrive(&tagged(id, &frame(MacAddr::BROADCAST, PEER, 2)));
        let got = (pf.receive().len(), a.receive().len());
        assert_eq!(got, (in_pf, in_a), "{id}");
    }
    // Long frames come to those that asked for them, in several buffers.
    for (port, long) in [(&mut a, true), (&mut b, false)] {
        let mut jumbo = frame(port.mac(), PEER, 3);
        jumbo.resize(9014, 4);
        world.nic.arrive(&jumbo);
        assert_eq!(port.receive(), if long { vec![jumbo] } else { vec![] });
    }
    for port in [a, b, pf] {
        port.stop();
    }
}

/// A function that is not polled delays no other, and its losses are counted.
#[test]
fn a_function_that_is_not_polled_loses_its_own_frames() {
    let world = World::new();
    let pf = Running::new(world.pf(",vfs=2").unwrap(), 1);
    let (mut a, mut b) = (world.start_vf(0, ""), world.start_vf(1, ""));
    for n in 0..200 {
        world.nic.arrive(&frame(a.mac(), PEER, n));
        world.nic.arrive(&frame(b.mac(), PEER, n));
        assert_eq!(b.receive().len(), 1);
    }
    let _ = a.port.link();
    a.rx[0].sync_counters();
    assert_eq!(a.receive().len(), 63);
    let (_, ledger) = a.stop();
    let balance = ledger.check().unwrap();
    assert_eq!(balance.dropped_for(pollux_pmd::Cause::RingFull), 200 - 63);
    b.stop();
    pf.stop();
}
