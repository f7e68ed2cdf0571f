//! Frames that do not belong to the port.

use std::net::UdpSocket;

use pollux_pmd::Cause;
use pollux_pmd_testkit::netns::{Cable, udp_frame};

use crate::common::Port;
use crate::interface::{is_promiscuous, promiscuity_ends};

/// The near end's kernel has an address too, and the far end as a neighbour.
fn with_kernel_at_both_ends() -> Option<Cable> {
    let net = Cable::new(1500)?;
    net.a.ip("address add 10.77.0.2/24 dev va");
    net.a
        .ip("neighbour add 10.77.0.1 lladdr 02:00:00:00:00:0b dev va nud permanent");
    Some(net)
}

fn ping_is_answered(net: &Cable) -> bool {
    let output = net.b.exec("ping -c 1 -W 1 10.77.0.2");
    output.status.success()
}

#[test]
fn other_protocols_reach_the_kernel() {
    for attach in ["native", "skb"] {
        let Some(net) = with_kernel_at_both_ends() else {
            return;
        };
        if !ping_is_answered(&net) {
            println!("skipped: no ping program");
            return;
        }
        let spec = format!("af_xdp:va,other=kernel,attach={attach}");
        let mut port = Port::open(&net, &spec);
        assert!(ping_is_answered(&net), "{spec}");
        net.peer(7000).send(b"udp").unwrap();
        assert_eq!(port.receive(1).len(), 1);
        let balance = port.stop();
        assert_eq!((balance.from_wire, balance.delivered), (1, 1), "{spec}");
    }
}

#[test]
fn other_ports_reach_the_kernel() {
    let Some(net) = with_kernel_at_both_ends() else {
        return;
    };
    let mut port = Port::open(&net, "af_xdp:va,ports=9000-9001");
    let kernel = net.a.within(|| UdpSocket::bind("10.77.0.2:9002").unwrap());
    let peer = net.b.within(|| UdpSocket::bind("10.77.0.1:7000").unwrap());
    for to in [8999, 9000, 9001, 9002] {
        peer.send_to(&[to as u8], ("10.77.0.2", to)).unwrap();
    }
    let ports: Vec<_> = port
        .receive(2)
        .iter()
        .map(|frame| u16::from_be_bytes([frame.bytes[36], frame.bytes[37]]))
        .collect();
    assert_eq!(ports, [9000, 9001]);
    let mut got = [0; 10];
    assert_eq!(kernel.recv(&mut got).unwrap(), 1);
    assert_eq!(got[0], 9002_u16 as u8);
    assert_eq!(port.stop().from_wire, 2);
}

#[test]
fn other_protocols_are_dropped_and_counted() {
    let Some(net) = with_kernel_at_both_ends() else {
        return;
    };
    let mut port = Port::open(&net, "af_xdp:va,other=drop");
    assert!(!ping_is_answered(&net));
    net.peer(7000).send(b"udp").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    port.started.rx[0].sync_counters();
    let dropped = port.dropped(Cause::NotForUs);
    assert!(dropped >= 1, "the echo request");
    let balance = port.stop();
    assert_eq!(balance.dropped_for(Cause::NotForUs), dropped);
    assert_eq!(balance.from_wire, 1 + dropped);
}

#[test]
fn frames_for_other_stations_come_where_the_interface_takes_them() {
    // A veth receives all frames; the test shows that the request works, and ends.
    let Some(net) = Cable::new(1500) else { return };
    let spec = "af_xdp:va,promisc=on,multicast=01:00:5e:01:02:03";
    let port = Port::open(&net, spec);
    assert!(is_promiscuous(&net.a));
    assert!(
        net.a
            .ip("maddress show dev va")
            .contains("01:00:5e:01:02:03")
    );
    port.stop();
    promiscuity_ends(&net.a);
    drop(udp_frame(1, &[]));
}
