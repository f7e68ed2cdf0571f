//! Single messages: any bytes, and those that lie.

use proptest::prelude::*;

use super::*;

/// A connection manager in the middle of things: it has asked, was asked, and has accepted.
fn busy() -> (ConnectionManager, Vec<[u8; MAD_BYTES]>) {
    let mut peer = ConnectionManager::new(CmOptions::new(ACTIVE)).unwrap();
    let mut cm = ConnectionManager::new(CmOptions::new(PASSIVE)).unwrap();
    cm.listen(PORT);
    peer.listen(PORT);
    cm.connect(ACTIVE, PORT, &offer(0x21), &[], Ns(0)).unwrap();
    for qp in 0x31..0x33 {
        peer.connect(PASSIVE, PORT, &offer(qp), &[], Ns(0)).unwrap();
    }
    let mut known = Vec::new();
    for round in 0..4 {
        while let Some(datagram) = peer.transmit() {
            known.push(datagram.bytes);
            cm.receive(&from(ACTIVE, datagram.bytes), Ns(0));
        }
        while let Some(event) = cm.event() {
            match event {
                CmEvent::Requested { id, .. } => {
                    cm.accept(id, &offer(0x22), &[]).unwrap();
                    cm.confirm(id, Ns(0)).unwrap();
                }
                CmEvent::Accepted { id, .. } => cm.confirm(id, Ns(0)).unwrap(),
                CmEvent::Established { id } if round == 1 => cm.disconnect(id, Ns(0)).unwrap(),
                _ => {}
            }
        }
        while let Some(datagram) = cm.transmit() {
            known.push(datagram.bytes);
            peer.receive(&from(PASSIVE, datagram.bytes), Ns(0));
        }
        while let Some(event) = peer.event() {
            match event {
                CmEvent::Requested { id, .. } => {
                    peer.accept(id, &offer(0x32), &[]).unwrap();
                    peer.confirm(id, Ns(0)).unwrap();
                }
                CmEvent::Accepted { id, .. } => peer.confirm(id, Ns(0)).unwrap(),
                _ => {}
            }
        }
    }
    (cm, known)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Each message of a conversation, again and again with some bytes changed: nothing panics, and what
    /// waits to be sent and reported is bounded.
    #[test]
    fn any_bytes_do_no_harm(
        messages in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec((0..MAD_BYTES, any::<u8>()), 0..6)),
            0..40,
        ),
    ) {
        let (mut cm, known) = busy();
        for (which, changes) in messages {
            let mut mad = known[which.index(known.len())];
            for (at, byte) in changes {
                mad[at] = byte;
            }
            cm.receive(&from(ACTIVE, mad), Ns(5));
        }
        while cm.poll(Ns(6)).is_some_and(|next| next <= Ns(6)) {}
        prop_assert!(std::iter::from_fn(|| cm.transmit()).count() < 300);
        prop_assert!(std::iter::from_fn(|| cm.event()).count() < 300);
    }

    #[test]
    fn random_bytes_are_counted(mad in any::<[u8; 32]>()) {
        let (mut cm, _) = busy();
        let before = cm.drops().malformed;
        let mut bytes = [0xa5; MAD_BYTES];
        bytes[..32].copy_from_slice(&mad);
        bytes[0] = 0;
        cm.receive(&from(ACTIVE, bytes), Ns(0));
        prop_assert_eq!(cm.drops().malformed, before + 1);
    }
}

/// A request with some bytes changed, and the reason for which it is rejected.
fn reason_of(changes: &[(usize, u8)]) -> Option<u16> {
    let mut peer = ConnectionManager::new(CmOptions::new(ACTIVE)).unwrap();
    let mut cm = ConnectionManager::new(CmOptions::new(PASSIVE)).unwrap();
    cm.listen(PORT);
    peer.connect(PASSIVE, PORT, &offer(0x31), &[], Ns(0))
        .unwrap();
    let mut mad = peer.transmit().unwrap().bytes;
    for &(at, byte) in changes {
        mad[at] = byte;
    }
    cm.receive(&from(ACTIVE, mad), Ns(0));
    let rej = cm.transmit()?.bytes;
    // Attribute, and reason: byte 10 behind the header of 24 bytes.
    assert_eq!(rej[16..18], [0, 0x12]);
    Some(u16::from_be_bytes([rej[34], rej[35]]))
}

/// Offsets are those of table 106, behind the header of 24 bytes.
#[test]
fn requests_that_lie_are_rejected() {
    let body = 24;
    assert_eq!(reason_of(&[]), None);
    // Another service, or another port space.
    assert_eq!(reason_of(&[(body + 15, 0)]), Some(8));
    assert_eq!(reason_of(&[(body + 13, 0x11)]), Some(8));
    // Unreliable connection; reliable datagram.
    assert_eq!(reason_of(&[(body + 43, 18 << 3 | 1 << 1)]), Some(9));
    assert_eq!(reason_of(&[(body + 43, 18 << 3 | 2 << 1)]), Some(9));
    // Queue pairs 0 and 1, and that of multicast.
    assert_eq!(reason_of(&[(body + 34, 0)]), Some(5));
    assert_eq!(reason_of(&[(body + 34, 1)]), Some(5));
    let multicast = [(body + 32, 0xff), (body + 33, 0xff), (body + 34, 0xff)];
    assert_eq!(reason_of(&multicast), Some(5));
    // MTU codes 0 and 6.
    assert_eq!(reason_of(&[(body + 50, 0)]), Some(26));
    assert_eq!(reason_of(&[(body + 50, 6 << 4)]), Some(26));
    // The GID of another host, and one that maps no IPv4 address.
    assert_eq!(reason_of(&[(body + 71, 9)]), Some(12));
    assert_eq!(reason_of(&[(body + 56, 0xfe)]), Some(12));
    // Header of annex A11: version, IP version, source.
    assert_eq!(reason_of(&[(body + 140, 0x10)]), Some(5));
    assert_eq!(reason_of(&[(body + 141, 0x60)]), Some(5));
    assert_eq!(reason_of(&[(body + 159, 9)]), Some(5));
}

#[test]
fn an_answer_that_lies_fails() {
    let mut cm = ConnectionManager::new(CmOptions::new(ACTIVE)).unwrap();
    let mut peer = ConnectionManager::new(CmOptions::new(PASSIVE)).unwrap();
    peer.listen(PORT);
    cm.connect(PASSIVE, PORT, &offer(0x31), &[], Ns(0)).unwrap();
    peer.receive(&from(ACTIVE, cm.transmit().unwrap().bytes), Ns(0));
    let Some(CmEvent::Requested { id, .. }) = peer.event() else {
        panic!("no request");
    };
    peer.accept(id, &offer(0x32), &[]).unwrap();
    peer.confirm(id, Ns(0)).unwrap();
    let mut rep = peer.transmit().unwrap().bytes;
    rep[24 + 12..24 + 15].copy_from_slice(&[0, 0, 1]);
    // From another host it is nothing.
    cm.receive(&from(ACTIVE, rep), Ns(0));
    assert_eq!(cm.drops().unknown, 1);
    cm.receive(&from(PASSIVE, rep), Ns(0));
    assert!(matches!(
        cm.event(),
        Some(CmEvent::Failed {
            why: Failure::Answer(_),
            ..
        })
    ));
    while let Some(datagram) = cm.transmit() {
        peer.receive(&from(ACTIVE, datagram.bytes), Ns(0));
    }
    assert!(matches!(peer.event(), Some(CmEvent::Failed { .. })));
}

/// MRA (table 107) asks for more time, but not for ever.
#[test]
fn more_time_is_given() {
    let mut cm = ConnectionManager::new(CmOptions::new(ACTIVE)).unwrap();
    cm.connect(PASSIVE, PORT, &offer(0x31), &[], Ns(0)).unwrap();
    let req = cm.transmit().unwrap().bytes;
    let mut mra = req;
    mra[17] = 0x11;
    mra[24..].fill(0);
    mra[24 + 3] = 7;
    mra[28..32].copy_from_slice(&req[24..28]);
    // Service time-out 20: 4.29 s.
    mra[24 + 9] = 20 << 3;
    cm.receive(&from(PASSIVE, mra), Ns(0));
    assert_eq!(
        cm.poll(Ns(5_000_000_000)),
        Some(Ns((4096 << 20) + (4096 << 18)))
    );
    assert_eq!(cm.transmit(), None);
    for _ in 0..20 {
        cm.receive(&from(PASSIVE, mra), Ns(0));
    }
    assert_eq!(cm.drops().duplicate, 6);
    cm.poll(Ns(6_000_000_000));
    assert!(matches!(cm.event(), Some(CmEvent::Failed { .. })));
}
