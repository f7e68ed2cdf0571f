//! Messages as the standards define them, and malformed ones.

use super::*;

/// The frames of a join, byte by byte: RFC 3376 sections 4, 4.2 and 4.2.12.
#[test]
fn a_join_is_reported_as_the_standard_writes_it() {
    let mut host = host(&[GROUP]);
    let mut frames = Vec::new();
    assert!(host.poll(Ns(0), |frame| {
        frames.push(frame.to_vec());
        true
    }));
    let mut body = vec![0x46, 0xc0, 0, 40, 0, 0, 0x40, 0, 1, 2, 0, 0];
    body.extend(DST_IP);
    body.extend([224, 0, 0, 22, 0x94, 4, 0, 0]);
    let sum = naive_checksum(&body).to_be_bytes();
    body[10..12].copy_from_slice(&sum);
    body.extend([0x22, 0, 0xe8, 0xf9, 0, 0, 0, 1]);
    body.extend([4, 0, 0, 0, 239, 1, 2, 3]);
    let mut expected = ethernet(&[], 0x0800, &body);
    expected[..6].copy_from_slice(&[1, 0, 0x5e, 0, 0, 22]);
    expected[6..12].copy_from_slice(&DST_MAC);
    expected.resize(60, 0);
    assert_eq!(frames, [expected]);
}

#[test]
fn older_messages_are_as_the_standard_writes_them() {
    let mut host = host(&[GROUP]);
    host.observe(&v2_query(100, NONE), Ns(0)).unwrap();
    let frame = |host: &mut IgmpHost| {
        let mut got = Vec::new();
        let due = host.due();
        assert!(host.poll(due, |frame| {
            got = frame.to_vec();
            true
        }));
        got
    };
    // RFC 2236 section 2 and the table in section 3: a report goes to its group, a leave to the
    // routers.
    let report = frame(&mut host);
    assert_eq!(report[..6], [1, 0, 0x5e, 1, 2, 3]);
    assert_eq!(report[30..38], [239, 1, 2, 3, 0x94, 4, 0, 0]);
    assert_eq!((report[22], &report[38..46]), (1, &V2_REPORT[..]));
    host.leave_all(Ns(SECOND));
    let leave = frame(&mut host);
    assert_eq!(leave[..6], [1, 0, 0x5e, 0, 0, 2]);
    assert_eq!(leave[30..38], [224, 0, 0, 2, 0x94, 4, 0, 0]);
    assert_eq!((leave[22], &leave[38..46]), (1, &LEAVES[..]));
    for frame in [report, leave] {
        assert_eq!(naive_checksum(&frame[14..38]), 0);
        assert_eq!(naive_checksum(&frame[38..46]), 0);
    }
}

#[test]
fn queries_are_read_as_the_standard_writes_them() {
    let query = |version, group, tenths| Query {
        version,
        group,
        max_response: Ns(tenths * 100_000_000),
        robustness: None,
        interval: None,
    };
    let v3 = |group, tenths| Query {
        robustness: Some(2),
        interval: Some(Ns(125 * SECOND)),
        ..query(V3, group, tenths)
    };
    // The checksums are those of captures of routers.
    let v2_general = Frame {
        dst: ALL,
        ..Frame::ip(2, vec![0x11, 0x64, 0xee, 0x9b, 0, 0, 0, 0])
    };
    let v3_general = vec![0x11, 0x64, 0xec, 0x1e, 0, 0, 0, 0, 2, 0x7d, 0, 0];
    let v3_general = Frame {
        dst: ALL,
        ..Frame::ip(2, v3_general)
    };
    for (frame, expected) in [
        (with_ttl(&v2_general, 1), query(V2, None, 100)),
        (with_ttl(&v3_general, 1), v3(None, 100)),
        (v1_query(), query(V1, None, 100)),
        (v2_query(10, GROUP), query(V2, Some(GROUP), 10)),
        (v3_query(GROUP, &[]), v3(Some(GROUP), 100)),
        (v3_query(GROUP, &[[10, 0, 0, 9]; 3]), v3(Some(GROUP), 100)),
    ] {
        assert_eq!(read(&frame, own()).unwrap(), Message::Query(expected));
    }
    // RFC 3376 section 4.1.1: mantissa and exponent from 128 on. 0x80: 16 << 3; 0xff: 31 << 10.
    for (code, value) in [(127, 127), (0x80, 128), (0x8f, 248), (0xff, 31_744)] {
        let bytes = [0x11, code, 0, 0, 0, 0, 0, 0, 0x0b, code, 0, 0];
        let expected = Query {
            robustness: Some(3),
            interval: Some(Ns(value * SECOND)),
            ..query(V3, None, value)
        };
        let read = read(&received(ALL, &bytes), own());
        assert_eq!(read, Ok(Message::Query(expected)));
    }
}

#[test]
fn bad_messages_are_ignored_and_counted() {
    let query = [0x11, 100, 0, 0, 239, 1, 2, 3, 2, 125, 0, 0];
    let to = GROUP.octets();
    let mut host = host(&[GROUP]);
    sent(&mut host, Ns(100 * SECOND));
    let now = Ns(100 * SECOND);
    let mut refused = |frame: &[u8], reject, what: &str| {
        assert_eq!(host.observe(frame, now), Err(reject), "{what}");
        assert_eq!(host.due(), Ns(u64::MAX), "{what}: nothing is to be said");
    };
    let mut damaged = received(to, &query);
    damaged[45] ^= 1;
    refused(&damaged, Reject::BadChecksum, "checksum");
    let mut damaged = received(to, &query);
    damaged[22] = 2;
    refused(&damaged, Reject::BadChecksum, "checksum of the header");
    let far = with_ttl(&message(to, &query), 2);
    refused(&far, Reject::Malformed, "from behind a router");
    for len in [4, 7, 9, 11] {
        let short = received(to, &query[..len]);
        refused(&short, Reject::Malformed, "length");
    }
    let mut more = query;
    more[11] = 1;
    refused(&received(to, &more), Reject::Malformed, "sources missing");
    let mut host_address = query;
    host_address[4] = 10;
    let odd = received(ALL, &host_address);
    refused(&odd, Reject::Malformed, "no group");
    let report = received(ALL, &[0x16, 0, 0, 0, 10, 1, 2, 3]);
    refused(&report, Reject::Malformed, "report of no group");
    let good = received(to, &query);
    for len in 34..good.len() {
        refused(&good[..len], Reject::Malformed, "cut");
    }
    let bad = 2 + 1 + 4 + 3 + (good.len() as u64 - 34);

    let elsewhere = received(OTHER.octets(), &query);
    refused(&elsewhere, Reject::NotForUs, "to another group");
    let general = received(OTHER.octets(), &[0x11, 100, 0, 0, 0, 0, 0, 0]);
    refused(&general, Reject::NotForUs, "for all, but to a group");
    let mut own = received(to, &query);
    own[6..12].copy_from_slice(&DST_MAC);
    refused(&own, Reject::NotForUs, "our own, come back");
    let mut tagged = message(to, &query);
    tagged.tags = vec![(0x8100, 5)];
    refused(&with_ttl(&tagged, 1), Reject::NotForUs, "of a VLAN");
    let unknown = received(to, &[0x42, 0, 0, 0, 239, 1, 2, 3]);
    refused(&unknown, Reject::NotForUs, "unknown type");
    refused(&Frame::udp(&[1; 30]).bytes(), Reject::NotForUs, "no IGMP");

    let counts = host.counts();
    assert_eq!((counts.bad.get(), counts.queries.get()), (bad, 0));
    assert!(host.observe(&good, now).is_ok());
    assert_eq!(counts.queries.get(), 1);
}
