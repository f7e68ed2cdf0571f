//! A port of several receive queues. Needs root and ethtool; without them the test skips.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::process::Command;

use pollux_embed::{EmbeddedPort, Options};
use pollux_pmd_testkit::netns::{Cable, MAC_A, MAC_B, Namespace};

/// Flows, and datagrams of each.
const FLOWS: u16 = 16;
const EACH: usize = 32;

#[test]
fn a_queue_with_a_backlog_does_not_starve_the_others() {
    let (Some(a), Some(b)) = (Namespace::new(), Namespace::new()) else {
        return;
    };
    let mac = |octets: [u8; 6]| octets.map(|octet| format!("{octet:02x}")).join(":");
    a.ip(&format!(
        "link add va address {} numrxqueues 2 numtxqueues 2 type veth peer name vb address {} \
         numrxqueues 2 numtxqueues 2 netns {}",
        mac(MAC_A),
        mac(MAC_B),
        b.name()
    ));
    a.ip("link set va up");
    b.ip("link set vb up");
    b.ip("address add 10.77.0.1/24 dev vb");
    b.ip(&format!(
        "neighbour add 10.77.0.2 lladdr {} dev vb nud permanent",
        mac(MAC_A)
    ));
    // The kernel leaves checksums to the other end of a veth pair, which compares them here.
    let switch_off = || {
        Command::new("ethtool")
            .args(["-K", "vb", "tx", "off"])
            .output()
    };
    if !b.within(switch_off).is_ok_and(|done| done.status.success()) {
        println!("skipped: no ethtool: apt-get install ethtool");
        return;
    }
    let net = Cable { a, b };
    let options = Options {
        buffers: Some(2048),
        data_room: Some(2048),
        streams: Some(vec![9000]),
        ..Options::default()
    };
    let open = || EmbeddedPort::open("af_xdp:va", &options).unwrap();
    let mut port = net.a.within(open);
    let peers: Vec<_> = (0..FLOWS).map(|flow| net.peer(7000 + flow)).collect();
    for _ in 0..EACH {
        for peer in &peers {
            peer.send(&[1; 64]).unwrap();
        }
    }
    let (mut heard, mut received) = (BTreeSet::new(), 0);
    // Each poll ends before a queue is empty.
    for _ in 0..FLOWS / 2 {
        received += port.rx(EACH / 2, |datagram| {
            heard.insert(datagram.src_port());
        });
    }
    assert_eq!(received, usize::from(FLOWS) * EACH / 4);
    assert_eq!(
        heard.len(),
        usize::from(FLOWS),
        "of {FLOWS} flows, only these: {heard:?}"
    );
}
