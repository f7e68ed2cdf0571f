//! What DPDK's devices of software offer of what a port can ask for, and what they refuse.

use std::time::Instant;

use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::Cause;
use pollux_pmd_testkit::netns::{Cable, Namespace, payload};

use crate::common::{PATIENCE, Port, config, pool};
use crate::{registry, start_eal};

/// A namespace with a tap device in it, whose other side is the kernel's.
fn on_tap(spec: &str, interface: &str, pool: Mempool) -> Option<(Namespace, Port)> {
    start_eal();
    let namespace = Namespace::new()?;
    let port = Port::with_pool(&namespace, spec, 1, pool).unwrap();
    namespace.make_kernel_end(interface);
    Some((namespace, port))
}

#[test]
fn frames_in_several_buffers_cross_both_ways() {
    // net_tap takes no MTU above 1500, so the buffers are short ones.
    let small = PoolConfig {
        buffers: 1024,
        data_room: 256,
        ..PoolConfig::default()
    };
    let small = Mempool::new(small).unwrap();
    let Some((namespace, mut port)) = on_tap("dpdk:net_tap_s;iface=plxs", "plxs", small) else {
        return;
    };
    let peer = namespace.peer(7000);
    // Around the ends of one buffer, of several, and of the longest frame.
    let lens = [60, 255, 256, 257, 511, 512, 513, 1024, 1513, 1514];
    let n = port.exchange(&peer, &lens);
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (n, n));
}

#[test]
fn filters_are_set_where_a_device_has_them() {
    let flags = |namespace: &Namespace, interface: &str| {
        let shown = namespace.ip(&format!("-d link show {interface}"));
        ["PROMISC", "ALLMULTI"].map(|flag| shown.contains(&format!("{flag},")))
    };
    let group = "01:00:5e:01:02:03";
    for (options, expected) in [
        ("", [false, false]),
        (",promisc", [true, false]),
        (",multicast=all", [false, true]),
        // A tap has no filter: what is listed comes as all else does.
        (&format!(",multicast={group}"), [false, false]),
    ] {
        let spec = format!("dpdk:net_tap_f;iface=plxf{options}");
        let Some((namespace, port)) = on_tap(&spec, "plxf", pool(256)) else {
            return;
        };
        assert_eq!(flags(&namespace, "plxf"), expected, "{options}");
        port.stop();
    }
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    for promisc in [false, true] {
        let option = if promisc { ",promisc" } else { "" };
        let port = Port::open(&cable, &format!("dpdk:net_af_packet_f;iface=va{option}"));
        assert_eq!(flags(&cable.a, "va"), [promisc, false]);
        port.stop();
    }
    for multicast in ["all", group] {
        let spec = format!("dpdk:net_af_packet_f;iface=va,multicast={multicast}");
        let refused = Port::try_open(&cable.a, &spec, 1, 1024).err().unwrap();
        assert!(refused.to_string().contains("multicast"), "{refused}");
    }
}

#[test]
fn stamps_are_refused_where_a_device_has_none() {
    start_eal();
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    let pool = pool(64);
    for device in [
        "net_af_packet_t;iface=va",
        "net_tap_t;iface=plxt",
        "net_pcap_t;iface=va",
        "net_ring_t",
    ] {
        let spec = format!("dpdk:{device},timestamps=hardware");
        let refused = cable.a.within(|| {
            let port = registry().open(&spec).unwrap();
            port.configure(config(&pool, 1, 1))
                .err()
                .unwrap()
                .to_string()
        });
        let (driver, _) = device.rsplit_once("_t").unwrap();
        let expected = format!("none: its driver {driver} does not stamp frames");
        assert!(refused.contains(&expected), "{device}: {refused}");
    }
}

#[test]
fn what_is_lost_without_a_buffer_is_in_the_ledger() {
    let Some((namespace, mut port)) = on_tap("dpdk:net_tap_n;iface=plxn", "plxn", pool(256)) else {
        return;
    };
    let mut held = Vec::new();
    while let Some(mbuf) = port.cache.alloc() {
        held.push(mbuf);
    }
    let peer = namespace.peer(7000);
    // It looks for frames when a signal has told it of one: so each is lost by itself.
    let began = Instant::now();
    let mut sent = 0;
    while port.dropped(Cause::NoMbuf) < 20 {
        assert!(began.elapsed() < PATIENCE, "{sent} frames sent");
        peer.send(&payload(100, 0)).unwrap();
        sent += 1;
        assert!(port.poll().is_empty());
        port.started.rx[0].sync_counters();
    }
    let lost = port.dropped(Cause::NoMbuf);
    drop(held);
    peer.send(&payload(100, 99)).unwrap();
    // What has not been looked at waits in the kernel.
    let rest = sent + 1 - lost;
    assert_eq!(port.receive(rest as usize).len() as u64, rest);
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (sent + 1, rest));
    assert_eq!(balance.dropped_for(Cause::NoMbuf), lost);
}

#[test]
fn what_a_full_ring_does_not_take_stays_with_the_caller() {
    start_eal();
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let mut port = Port::try_open(&namespace, "dpdk:net_ring_f", 1, 4096).unwrap();
    let mut taken = 0;
    loop {
        let n = port.send(&vec![vec![7; 60]; 64]);
        taken += n;
        if n < 64 {
            break;
        }
        assert!(taken < 4096);
    }
    assert_eq!(port.send(&[vec![7; 60]]), 0);
    assert_eq!(port.sent(), (taken as u64, 0));
    assert_eq!(port.receive(taken).len(), taken);
    assert_eq!(port.send(&[vec![7; 60]]), 1);
    assert_eq!(port.receive(1).len(), 1);
    let balance = port.stop();
    assert_eq!(balance.delivered, taken as u64 + 1);
    assert_eq!(balance.dropped_total(), 0);
}
