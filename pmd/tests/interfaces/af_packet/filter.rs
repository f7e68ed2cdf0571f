//! Receive filters, and counters that agree with the ledger and the peer.

use pollux_pmd_testkit::netns::{Cable, MAC_B, payload, udp_frame};

use crate::common::Port;
use crate::interface::{is_promiscuous, promiscuity_ends};

const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 0xfb];
const OTHER_GROUP: [u8; 6] = [0x33, 0x33, 0, 0, 0, 0x07];
const STRANGER: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

/// Groups that no test joins.
const STRANGE_GROUPS: [[u8; 6]; 3] = [
    [0x33, 0x33, 0, 0, 7, 1],
    [0x33, 0x33, 0, 0, 7, 2],
    [0x33, 0x33, 0, 0, 7, 3],
];

/// A cable whose near end is under `mv`, a macvlan interface: that one filters by address, as a NIC
/// does and a veth does not. As some NICs, it filters groups by 8 bits of a hash with a random
/// seed, so a group that was not joined may pass.
fn filtered() -> Option<(Cable, [u8; 6])> {
    let cable = Cable::new(1500)?;
    cable
        .a
        .ip("link add link va name mv address 02:00:00:00:00:0e type macvlan mode private");
    cable.a.ip("link set mv up");
    Some((cable, [2, 0, 0, 0, 0, 0x0e]))
}

/// Sends one frame to each address from the far end; returns the addresses whose frames were
/// received, sorted: a macvlan forwards broadcast and multicast frames later than others.
fn heard(cable: &Cable, spec: &str, to: &[[u8; 6]]) -> Vec<[u8; 6]> {
    let mut near = Port::open(cable, spec);
    let mut far = Port::try_open(&cable.b, "af_packet:vb", 1, 64).unwrap();
    let frame = |to: &[u8; 6]| [to, &MAC_B, &udp_frame(7000, &payload(50, 1))[12..]].concat();
    let frames: Vec<_> = to.iter().map(frame).collect();
    assert_eq!(far.send(&frames), frames.len());
    // The last frame is a broadcast.
    let end = frame(&[0xff; 6]);
    assert_eq!(far.send(std::slice::from_ref(&end)), 1);
    let mut got = Vec::new();
    while got.last() != Some(&end) {
        let some = near.receive(1);
        assert!(!some.is_empty(), "{spec}: nothing comes");
        got.extend(some.into_iter().map(|frame| frame.bytes));
    }
    got.pop();
    let address = |frame: &Vec<u8>| frame[..6].try_into().unwrap();
    let mut to: Vec<_> = got.iter().map(address).collect();
    to.sort_unstable();
    to
}

#[test]
fn frames_for_others_come_when_asked_for() {
    let Some((cable, own)) = filtered() else {
        return;
    };
    let groups = [&[GROUP, OTHER_GROUP][..], &STRANGE_GROUPS].concat();
    let all = [&[STRANGER, own], &groups[..]].concat();
    for (options, asked) in [
        ("", vec![]),
        (",multicast=01:00:5e:00:00:fb", vec![GROUP]),
        (
            ",multicast=33:33:00:00:00:07+01:00:5e:00:00:fb",
            vec![GROUP, OTHER_GROUP],
        ),
        (",multicast=all", groups.clone()),
    ] {
        let spec = format!("af_packet:mv{options}");
        let heard = heard(&cable, &spec, &all);
        assert!(heard.contains(&own), "{spec}: {heard:x?}");
        assert!(!heard.contains(&STRANGER), "{spec}: {heard:x?}");
        let came = |group: &&[u8; 6]| heard.contains(*group);
        let missing: Vec<_> = asked.iter().filter(|group| !came(group)).collect();
        assert!(missing.is_empty(), "{spec}: no {missing:x?}");
        let strange = groups.len() - asked.len();
        let passed = groups.iter().filter(came).count() - asked.len();
        assert!(strange == 0 || passed < strange, "{spec}: {heard:x?}");
    }
}

#[test]
fn the_interface_is_promiscuous_as_long_as_the_port_runs() {
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    assert!(!is_promiscuous(&cable.a));
    let port = Port::open(&cable, "af_packet:va,promisc");
    assert!(is_promiscuous(&cable.a));
    port.stop();
    promiscuity_ends(&cable.a);
}

#[test]
fn the_kernel_counts_what_the_ledger_counts() {
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    let mut near = Port::open(&cable, "af_packet:va,ring=8");
    let far = Port::try_open(&cable.b, "af_packet:vb", 1, 64).unwrap();
    let statistic = |port: &Port, name: &str| {
        let all = port.started.port.statistics();
        let found = all.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no {name} in {all:?}")).1
    };
    let names = ["rx_packets", "rx_bytes", "tx_packets", "tx_bytes"];
    let before = names.map(|name| (statistic(&near, name), statistic(&far, name)));
    let peer = cable.peer(7000);
    for _ in 0..20 {
        peer.send(&[7; 58]).unwrap();
    }
    // The ring holds 8 of 20; housekeeping may read the counters at any time.
    assert_eq!(statistic(&near, "socket0_packets"), 20);
    let (drops, got) = (statistic(&near, "socket0_drops"), near.receive(8).len());
    assert_eq!((drops, got), (12, 8));
    assert_eq!(near.send(&vec![udp_frame(7000, &[8; 20]); 5]), 5);
    let after = names.map(|name| (statistic(&near, name), statistic(&far, name)));
    let grown = |i: usize| (after[i].0 - before[i].0, after[i].1 - before[i].1);
    assert_eq!(
        (0..4).map(grown).collect::<Vec<_>>(),
        [(20, 5), (2000, 5 * 62), (5, 20), (5 * 62, 2000)]
    );
    let balance = near.stop();
    assert_eq!((balance.from_wire, balance.dropped_total()), (20, 12));
    drop(far);
}
