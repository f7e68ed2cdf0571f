//! Where frames go.

use pollux_pmd::mempool::time::Ns;
use pollux_switch::{SwitchConfig, SwitchError};

use crate::rig::{Rig, frame, mac};

const BROADCAST: [u8; 6] = [0xff; 6];

fn rig() -> Rig {
    Rig::new(4, &SwitchConfig::default())
}

#[test]
fn an_address_is_learned_from_its_first_frame() {
    let mut rig = rig();
    // Unknown: to all but the input.
    assert_eq!(rig.reached(0, &frame(mac(1), mac(0), 60)), [1, 2, 3]);
    // The answer goes to one port, and from then on all frames do.
    assert_eq!(rig.reached(1, &frame(mac(0), mac(1), 1514)), [0]);
    assert_eq!(rig.reached(0, &frame(mac(1), mac(0), 60)), [1]);
    let ended = rig.end();
    let report = &ended.report;
    assert_eq!((report.unicast, report.flooded, report.copies), (2, 1, 2));
    assert_eq!((report.learned, report.moved), (2, 0));
    assert_eq!(ended.balance.delivered, 3);
}

#[test]
fn groups_are_flooded_although_known_addresses_are_not() {
    let mut rig = rig();
    for n in 0..4 {
        rig.reached(usize::from(n), &frame(BROADCAST, mac(n), 60));
    }
    for group in [
        BROADCAST,
        [0x01, 0, 0x5e, 1, 2, 3],
        [0x33, 0x33, 0, 0, 0, 1],
    ] {
        assert_eq!(rig.reached(2, &frame(group, mac(2), 100)), [0, 1, 3]);
    }
    // A group has no port, whatever sends as if it had.
    assert_eq!(
        rig.reached(1, &frame(mac(0), [0x01, 0, 0x5e, 1, 2, 3], 60)),
        []
    );
    assert_eq!(rig.reached(1, &frame(mac(0), [0; 6], 60)), []);
    assert_eq!(rig.end().dropped("bad-source"), 2);
}

#[test]
fn a_frame_never_goes_back() {
    let mut rig = rig();
    rig.reached(0, &frame(BROADCAST, mac(0), 60));
    // Two hosts behind one port.
    assert_eq!(rig.reached(0, &frame(mac(0), mac(9), 60)), []);
    assert_eq!(rig.end().dropped("same-port"), 1);
    // One port alone.
    let mut rig = Rig::new(1, &SwitchConfig::default());
    assert_eq!(rig.reached(0, &frame(BROADCAST, mac(0), 60)), []);
    assert_eq!(rig.end().dropped("no-output"), 1);
}

#[test]
fn reserved_addresses_are_not_forwarded() {
    let mut rig = rig();
    for last in 0..=0x0f {
        let reserved = [0x01, 0x80, 0xc2, 0, 0, last];
        assert_eq!(rig.reached(0, &frame(reserved, mac(0), 60)), []);
    }
    for other in [[0x01, 0x80, 0xc2, 0, 0, 0x10], [0x01, 0x80, 0xc2, 0, 1, 0]] {
        assert_eq!(rig.reached(0, &frame(other, mac(0), 60)), [1, 2, 3]);
    }
    // Their sources are known all the same (7.8: learning does not depend on the destination).
    assert_eq!(rig.reached(1, &frame(mac(0), mac(1), 60)), [0]);
    assert_eq!(rig.end().dropped("reserved-address"), 16);
}

#[test]
fn a_host_that_moves_is_followed() {
    let mut rig = rig();
    rig.reached(0, &frame(BROADCAST, mac(7), 60));
    assert_eq!(rig.reached(3, &frame(mac(7), mac(3), 60)), [0]);
    rig.reached(2, &frame(BROADCAST, mac(7), 60));
    assert_eq!(rig.reached(3, &frame(mac(7), mac(3), 60)), [2]);
    let report = rig.end().report;
    assert_eq!((report.learned, report.moved), (2, 1));
}

#[test]
fn an_address_that_is_silent_is_forgotten() {
    let age = Ns(300_000_000_000);
    let config = SwitchConfig {
        age,
        ..SwitchConfig::default()
    };
    let mut rig = Rig::new(3, &config);
    rig.reached(0, &frame(BROADCAST, mac(0), 60));
    rig.clock.advance(Ns(age.0 - 2));
    // A nanosecond before its time.
    assert_eq!(rig.reached(1, &frame(mac(0), mac(1), 60)), [0]);
    assert_eq!(rig.reached(1, &frame(mac(0), mac(1), 60)), [0, 2]);
    assert_eq!(rig.switch.known_addresses(), 1);
    // What it sends renews it; what it receives does not.
    rig.reached(0, &frame(mac(1), mac(0), 60));
    rig.clock.advance(Ns(age.0 - 2));
    assert_eq!(rig.reached(1, &frame(mac(0), mac(1), 60)), [0]);
    rig.end();
}

#[test]
fn a_full_table_learns_no_more_until_an_address_has_aged() {
    let config = SwitchConfig {
        addresses: 2,
        age: Ns(1000),
        ..SwitchConfig::default()
    };
    let mut rig = Rig::new(3, &config);
    rig.reached(0, &frame(BROADCAST, mac(0), 60));
    rig.reached(1, &frame(BROADCAST, mac(1), 60));
    rig.reached(2, &frame(BROADCAST, mac(2), 60));
    // Forwarded all the same: flooded.
    assert_eq!(rig.reached(0, &frame(mac(2), mac(0), 60)), [1, 2]);
    assert_eq!(rig.reached(0, &frame(mac(1), mac(0), 60)), [1]);
    rig.clock.advance(Ns(996));
    // Address 1 has aged, address 0 has not.
    rig.reached(2, &frame(BROADCAST, mac(2), 60));
    assert_eq!(rig.reached(1, &frame(mac(2), mac(0), 60)), [2]);
    assert_eq!(rig.reached(2, &frame(mac(1), mac(2), 60)), [0, 1]);
    let report = rig.end().report;
    assert_eq!((report.learned, report.table_full, report.moved), (3, 1, 1));
}

#[test]
fn frames_that_are_too_short_are_counted() {
    let mut rig = rig();
    for len in [1, 13] {
        assert_eq!(rig.reached(0, &vec![2; len]), []);
    }
    let headers = frame(mac(1), mac(0), 14);
    assert_eq!(rig.reached(0, &headers), [1, 2, 3]);
    assert_eq!(rig.end().dropped("malformed"), 2);
}

#[test]
fn long_frames_are_copied_whole() {
    // Five buffers of 2 KiB.
    let mut rig = rig();
    assert_eq!(rig.reached(0, &frame(BROADCAST, mac(0), 9014)), [1, 2, 3]);
    assert_eq!(rig.reached(1, &frame(mac(0), mac(1), 9014)), [0]);
    rig.end();
}

#[test]
fn a_count_is_met_exactly() {
    let count = Some(5);
    let mut rig = Rig::new(
        2,
        &SwitchConfig {
            count,
            ..SwitchConfig::default()
        },
    );
    for _ in 0..8 {
        rig.send(0, &frame(mac(1), mac(0), 60));
    }
    assert!(!rig.switch.has_ended());
    rig.poll_after(1);
    assert!(rig.switch.has_ended() && rig.switch.is_empty());
    assert_eq!(rig.received(1).len(), 5);
    let ended = rig.end();
    // The others were still in the link.
    assert_eq!((ended.balance.delivered, ended.dropped("aborted")), (5, 3));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let config = SwitchConfig::default;
    let refusal = |config: SwitchConfig| config.check().err();
    assert_eq!(refusal(config()), None);
    for rate in [0, 999, 1_000_000_000_001] {
        let rated = SwitchConfig {
            rate: Some(rate),
            ..config()
        };
        assert_eq!(refusal(rated), Some(SwitchError::Rate(rate)));
    }
    for buffer in [0, 59, (64 << 20) + 1] {
        let buffered = SwitchConfig { buffer, ..config() };
        assert_eq!(refusal(buffered), Some(SwitchError::Buffer(buffer)));
    }
    let addresses = SwitchConfig {
        addresses: 0,
        ..config()
    };
    assert_eq!(refusal(addresses), Some(SwitchError::Addresses(0)));
    let age = SwitchConfig {
        age: Ns(0),
        ..config()
    };
    assert_eq!(refusal(age), Some(SwitchError::Age));
    let none = pollux_switch::Switch::new(Vec::new(), &config()).err();
    assert_eq!(none, Some(SwitchError::Ports(0)));
}
