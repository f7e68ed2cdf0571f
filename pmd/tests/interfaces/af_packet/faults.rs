//! Lost frames have a cause; refused configurations report the reason.

use std::time::Instant;

use pollux_pmd::{Cause, StartedPort};
use pollux_pmd_testkit::netns::{Cable, payload, udp_frame};

use crate::common::{PATIENCE, Port};
use crate::interface::{self, open_error};

#[test]
fn what_the_kernel_drops_is_counted() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va,ring=8");
    let peer = net.peer(7000);
    for _ in 0..100 {
        peer.send(b"one of a flood").unwrap();
    }
    // the ring holds eight; how many more it takes while it is emptied is up to the kernel
    let (mut delivered, began) = (0, Instant::now());
    while delivered + port.dropped(Cause::KernelDrop) < 100 && began.elapsed() < PATIENCE {
        delivered += port.poll().len() as u64;
        port.started.rx[0].sync_counters();
    }
    let drops = port.dropped(Cause::KernelDrop);
    assert!(delivered >= 8 && drops > 0, "{delivered} and {drops}");
    assert_eq!(delivered + drops, 100);
    port.started.rx[0].sync_counters();
    assert_eq!(
        port.dropped(Cause::KernelDrop),
        drops,
        "each is counted once"
    );

    for _ in 0..20 {
        peer.send(b"another").unwrap();
    }
    while port.dropped(Cause::KernelDrop) < drops + 12 && began.elapsed() < PATIENCE {
        port.started.rx[0].sync_counters();
    }
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (120, delivered));
    assert_eq!(balance.dropped_for(Cause::KernelDrop), drops + 12);
    assert_eq!(balance.dropped_for(Cause::Aborted), 8);
}

#[test]
fn frames_longer_than_a_slot_are_dropped_whole() {
    let Some(net) = Cable::new(9000) else { return };
    let mut port = Port::open(&net, "af_packet:va,frame=1518");
    let peer = net.peer(7000);
    for len in [100, 3000, 200, 8972] {
        peer.send(&payload(len, 0)).unwrap();
    }
    let lens: Vec<_> = port
        .receive(2)
        .iter()
        .map(|frame| frame.bytes.len())
        .collect();
    assert_eq!(lens, [142, 242]);
    let balance = port.stop();
    assert_eq!(
        (balance.from_wire, balance.dropped_for(Cause::Oversize)),
        (4, 2)
    );
    assert_eq!(balance.bytes, 4 * 42 + 100 + 3000 + 200 + 8972);
}

#[test]
fn an_empty_pool_is_a_counted_cause() {
    let Some(net) = Cable::new(9000) else { return };
    // four buffers: a frame of nine thousand bytes needs five
    let mut port = Port::try_open(&net.a, "af_packet:va", 1, 16).unwrap();
    let held: Vec<_> = (0..12).map(|_| port.cache.alloc().unwrap()).collect();
    let peer = net.peer(7000);
    for len in [100, 8972, 8000, 100] {
        peer.send(&payload(len, 0)).unwrap();
    }
    let lens: Vec<_> = port
        .receive(2)
        .iter()
        .map(|frame| frame.bytes.len())
        .collect();
    assert_eq!(lens, [142, 142]);
    drop(held);
    let balance = port.stop();
    assert_eq!(
        (balance.from_wire, balance.dropped_for(Cause::NoMbuf)),
        (4, 2)
    );
}

#[test]
fn frames_that_the_link_cannot_carry_are_errors() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va");
    let peer = net.peer(7000);
    let short = vec![0; 13];
    let long = udp_frame(7000, &payload(1473, 0));
    assert_eq!(port.send(&[short, long, udp_frame(7000, b"good")]), 3);
    assert_eq!(port.sent(), (1, 2));
    let mut got = [0; 2000];
    assert_eq!(peer.recv(&mut got).unwrap(), 4);

    // An MTU that is lowered later: the kernel refuses the second frame in the ring.
    net.a.ip("link set va mtu 1000");
    let sizes = [100, 1400, 200, 1401, 1402, 300];
    let frames: Vec<_> = sizes
        .iter()
        .map(|&len| udp_frame(7000, &payload(len, 0)))
        .collect();
    assert_eq!(port.send(&frames), 6);
    for len in [100, 200, 300] {
        assert_eq!(peer.recv(&mut got).unwrap(), len);
        assert_eq!(got[..len], payload(len, 0));
    }
    assert_eq!(port.sent(), (4, 5));
    port.stop();
}

#[test]
fn a_spec_that_cannot_work_says_what_to_do() {
    let Some(net) = Cable::new(1500) else { return };
    let missing = open_error(&net, "af_packet:eth7");
    assert!(
        missing.contains("no network interface `eth7`; there are: lo, va"),
        "{missing}"
    );
    assert!(open_error(&net, "af_packet").contains("needs an interface"));
    assert!(open_error(&net, "af_packet:va,frames=9").contains("no option `frames`"));
    assert!(open_error(&net, "af_packet:va,fanout=x").contains("hash, cpu or queue"));
    assert!(open_error(&net, "af_packet:va,promisc=yes").contains("on or off"));
    assert!(open_error(&net, "af_packet:va,frame=1").contains("a number of 60 to 524288"));
    let stamps = open_error(&net, "af_packet:va,timestamps=hardware");
    assert!(stamps.contains("no hardware timestamps on va"), "{stamps}");
    assert!(stamps.contains("use timestamps=kernel"), "{stamps}");
    net.a.ip("tuntap add dev tun0 mode tun");
    let tun = open_error(&net, "af_packet:tun0");
    assert!(tun.contains("`tun0` carries no Ethernet frames"), "{tun}");
}

#[test]
fn without_permission_the_message_names_the_capability() {
    interface::without_permission_the_message_names_the_capabilities(
        "af_packet:lo",
        "setcap cap_net_raw+ep",
    );
}

#[test]
fn a_port_that_is_just_dropped_leaves_nothing_open() {
    let Some(net) = Cable::new(1500) else { return };
    let sockets = || {
        net.a.within(|| {
            let table = std::fs::read_to_string("/proc/thread-self/net/packet").unwrap();
            table.lines().skip(1).count()
        })
    };
    for _ in 0..3 {
        let port = Port::try_open(&net.a, "af_packet:va,promisc=on", 2, 64).unwrap();
        assert_eq!(sockets(), 3);
        let StartedPort { port, rx, tx } = port.started;
        drop(port);
        drop((rx, tx));
        // a program that another test is starting holds a copy until it runs
        let began = Instant::now();
        while sockets() > 0 {
            assert!(began.elapsed() < PATIENCE, "{} still open", sockets());
        }
    }
}
