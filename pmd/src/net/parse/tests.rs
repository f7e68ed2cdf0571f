//! Tests of the parser with frames built byte by byte.

#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use pollux_pmd_testkit::frames::{DST_IP, Frame, SRC_IP, ethernet, udp_datagram, udp_over_ipv6};
use proptest::prelude::*;

fn check(frame: &[u8]) -> Result<Parsed, Reject> {
    parse(frame, frame.len(), &ParseOptions::default())
}

fn udp_of(frame: &[u8]) -> Udp {
    match check(frame) {
        Ok(Parsed::Udp(udp)) => udp,
        other => panic!("{other:?}"),
    }
}

#[test]
fn udp_over_ipv4() {
    for len in [0, 1, 1472, 65_507] {
        let payload = &vec![7; len][..];
        let frame = Frame::udp(payload).bytes();
        let udp = udp_of(&frame);
        assert_eq!(udp.payload(&frame), payload);
        assert_eq!(udp.addresses.src(), IpAddr::from(SRC_IP));
        assert_eq!(udp.addresses.dst(), IpAddr::from(DST_IP));
        assert_eq!((udp.src_port, udp.dst_port), (1000, 2000));
        assert_eq!(udp.payload_offset, 42);
    }
}

#[test]
fn udp_over_ipv6_and_its_extension_headers() {
    let frame = udp_over_ipv6(17, b"hello");
    let udp = udp_of(&frame);
    assert_eq!(udp.payload(&frame), b"hello");
    assert_eq!(
        (udp.addresses.src(), udp.addresses.dst()),
        (IpAddr::from([0x20; 16]), IpAddr::from([0x21; 16]))
    );
    assert_eq!(check(&udp_over_ipv6(44, &[0; 16])), Err(Reject::IpFragment));
    for header in [0, 43, 50, 51, 60, 135, 139, 140] {
        assert_eq!(
            check(&udp_over_ipv6(header, &[0; 16])),
            Err(Reject::Unsupported)
        );
    }
    for other in [6, 58, 59] {
        assert_eq!(check(&udp_over_ipv6(other, &[0; 16])), Ok(Parsed::Other));
    }
    let mut none = frame.clone();
    none[14 + 40 + 6..14 + 40 + 8].fill(0);
    assert_eq!(
        check(&none),
        Err(Reject::BadChecksum),
        "IPv6 demands a checksum"
    );
    let mut long = frame;
    long[18 + 1] += 1;
    assert_eq!(check(&long), Err(Reject::Malformed));
}

#[test]
fn vlan_tags() {
    let mut frame = Frame::udp(b"tagged");
    for tags in [
        vec![(0x8100, 5)],
        vec![(0x88a8, 5), (0x8100, 6)],
        vec![(0x8100, 0); 2],
    ] {
        frame.tags = tags;
        let bytes = frame.bytes();
        assert_eq!(udp_of(&bytes).payload(&bytes), b"tagged");
    }
    frame.tags = vec![(0x8100, 1); 3];
    assert_eq!(check(&frame.bytes()), Err(Reject::Unsupported));
}

#[test]
fn other_kinds() {
    assert_eq!(check(&ethernet(&[], 0x0806, &[0; 28])), Ok(Parsed::Arp));
    assert_eq!(check(&ethernet(&[], 0x88cc, &[0; 46])), Ok(Parsed::Other));
    assert_eq!(check(&ethernet(&[], 38, &[0; 46])), Ok(Parsed::Other));
    assert_eq!(check(&Frame::ip(6, vec![0; 20]).bytes()), Ok(Parsed::Other));
    let echo = |kind| Frame::ip(1, vec![kind, 0, 0, 0, 0, 0, 0, 0]).bytes();
    assert_eq!(check(&echo(8)), Ok(Parsed::IcmpEcho));
    assert_eq!(check(&echo(0)), Ok(Parsed::Other));
    let mut short = Frame::ip(1, vec![8, 0, 0, 0]);
    short.padding = 20;
    assert_eq!(check(&short.bytes()), Err(Reject::Malformed));
}

#[test]
fn options_and_padding_are_legal() {
    let mut frame = Frame::udp(b"abc");
    frame.options = vec![1; 40];
    frame.padding = 15;
    let bytes = frame.bytes();
    let udp = udp_of(&bytes);
    assert_eq!(udp.payload(&bytes), b"abc");
    assert_eq!(udp.payload_offset, 14 + 60 + 8);
}

#[test]
fn every_fragment_is_one() {
    // first (more fragments), middle, last, and the last one of 8 bytes
    for flags_offset in [0x2000, 0x2001, 0x00b9, 0x0001, 0x1fff] {
        let mut frame = Frame::udp(&[0; 64]);
        frame.flags_offset = flags_offset;
        assert_eq!(
            check(&frame.bytes()),
            Err(Reject::IpFragment),
            "{flags_offset:#x}"
        );
    }
    let mut reserved = Frame::udp(b"whole");
    reserved.flags_offset = 0x8000;
    assert!(matches!(check(&reserved.bytes()), Ok(Parsed::Udp(_))));
}

/// Changes the IPv4 header and corrects its checksum.
fn with_ip(change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut bytes = Frame::udp(&[5; 30]).bytes();
    change(&mut bytes[14..]);
    let len = usize::from(bytes[14] & 15) * 4;
    bytes[24..26].fill(0);
    let sum = pollux_pmd_testkit::frames::naive_checksum(&bytes[14..14 + len]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes
}

#[test]
fn contradicting_lengths() {
    assert!(check(&with_ip(|_| ())).is_ok());
    // IHL 4; version 6; total length: 19, one above the frame, below header and UDP
    assert_eq!(check(&with_ip(|ip| ip[0] = 0x44)), Err(Reject::Malformed));
    assert_eq!(check(&with_ip(|ip| ip[0] = 0x65)), Err(Reject::Malformed));
    assert_eq!(check(&with_ip(|ip| ip[3] = 19)), Err(Reject::Malformed));
    assert_eq!(check(&with_ip(|ip| ip[3] = 59)), Err(Reject::Malformed));
    assert_eq!(check(&with_ip(|ip| ip[3] = 20)), Err(Reject::Malformed));
    assert_eq!(check(&with_ip(|ip| ip[3] = 57)), Err(Reject::Malformed));
    // as segmentation offload leaves it on the sending host
    assert_eq!(check(&with_ip(|ip| ip[3] = 0)), Err(Reject::Malformed));
    for len in [0, 7, 39] {
        let mut bytes = Frame::udp(&[5; 30]).bytes();
        bytes[39] = len;
        assert_eq!(check(&bytes), Err(Reject::Malformed), "UDP length {len}");
    }
    // UDP shorter than IP: legal, the rest is not payload
    let mut frame = Frame::udp(b"short");
    frame.body.extend([0xee; 10]);
    let bytes = frame.bytes();
    assert_eq!(udp_of(&bytes).payload(&bytes), b"short");
}

#[test]
fn checksums() {
    let good = Frame::udp(b"payload").bytes();
    let mut ip = good.clone();
    ip[22] ^= 1;
    let mut udp = good.clone();
    *udp.last_mut().unwrap() ^= 1;
    let mut none = udp.clone();
    none[40..42].fill(0);
    let all = ParseOptions::default();
    let ip_only = ParseOptions {
        udp_checksum: false,
        ..all
    };
    let len = good.len();
    assert_eq!(parse(&ip, len, &all), Err(Reject::BadChecksum));
    assert_eq!(parse(&udp, len, &all), Err(Reject::BadChecksum));
    assert!(parse(&none, len, &all).is_ok());
    assert!(parse(&udp, len, &ip_only).is_ok());
    assert_eq!(parse(&ip, len, &ip_only), Err(Reject::BadChecksum));
    assert!(parse(&ip, len, &ParseOptions::TRUSTED).is_ok());
}

#[test]
fn addresses() {
    let fragment_to = |dst, flags| {
        let mut frame = Frame::udp(b"x");
        frame.dst = dst;
        frame.flags_offset = flags;
        frame.body[6..8].fill(0);
        let options = ParseOptions {
            local: Some(DST_IP.into()),
            ..ParseOptions::default()
        };
        let bytes = frame.bytes();
        parse(&bytes, bytes.len(), &options).map(|_| ())
    };
    let to = |dst| fragment_to(dst, 0);
    assert_eq!(to(DST_IP), Ok(()));
    assert_eq!(to([239, 1, 2, 3]), Ok(()));
    assert_eq!(to([255; 4]), Ok(()));
    assert_eq!(to([10, 0, 0, 3]), Err(Reject::NotForUs));
    assert_eq!(fragment_to(DST_IP, 0x2000), Err(Reject::IpFragment));
    assert_eq!(fragment_to([10, 0, 0, 3], 0x2000), Err(Reject::NotForUs));
}

#[test]
fn chained_segments() {
    let payload: Vec<u8> = (0..9000).map(|i| i as u8).collect();
    let whole = Frame::udp(&payload).bytes();
    for cut in [42, 43, 100, 2047, 2048, 9041] {
        let (first, rest) = whole.split_at(cut);
        let parsed = parse(first, whole.len(), &ParseOptions::default());
        let Ok(Parsed::Udp(udp)) = parsed else {
            panic!("{cut}: {parsed:?}")
        };
        assert_eq!(usize::from(udp.payload_len), payload.len());
        assert_eq!(udp.payload(first), &payload[..cut - 42]);
        let (middle, last) = rest.split_at(rest.len() / 3);
        assert_eq!(udp.verify([first, middle, last]), Ok(()), "{cut}");
        assert_eq!(
            udp.verify([first, middle]),
            Err(Reject::BadChecksum),
            "{cut}"
        );
    }
    assert_eq!(
        parse(&whole[..41], whole.len(), &ParseOptions::default()),
        Err(Reject::Malformed)
    );
}

#[test]
fn a_missing_tail_of_zeros_is_missed() {
    let whole = Frame::udp(&[0; 100]).bytes();
    let udp = udp_of(&whole);
    assert_eq!(udp.verify([&whole[..]]), Ok(()));
    // zeros do not change the sum: the length must be checked
    assert_eq!(udp.verify([&whole[..100]]), Err(Reject::BadChecksum));
}

#[test]
fn the_total_length_bounds_the_first_segment() {
    let arp = ethernet(&[], 0x0806, &[0; 28]);
    assert_eq!(parse(&arp, 14, &ParseOptions::default()), Ok(Parsed::Arp));
    assert_eq!(
        parse(&arp, 13, &ParseOptions::default()),
        Err(Reject::Malformed)
    );
}

/// The payload lies within the frame, whatever the frame contains; and the fast path that most
/// frames take agrees with the general one.
fn assert_bounded(frame: &[u8], total_len: usize, options: ParseOptions) {
    let parsed = parse(frame, total_len, &options);
    let first = frame.get(..total_len).unwrap_or(frame);
    assert_eq!(parsed, super::by_headers(first, total_len, options));
    if let Ok(Parsed::Udp(udp)) = parsed {
        assert!(usize::from(udp.payload_offset) <= frame.len().min(total_len));
        assert!(usize::from(udp.payload_offset) + usize::from(udp.payload_len) <= total_len);
    }
}

#[test]
fn truncation_at_every_length() {
    let mut tagged = Frame::udp(&[3; 40]);
    tagged.tags = vec![(0x88a8, 5), (0x8100, 6)];
    tagged.options = vec![1; 12];
    for whole in [tagged.bytes(), udp_over_ipv6(17, &[4; 40])] {
        for len in 0..whole.len() {
            for options in [ParseOptions::TRUSTED, ParseOptions::default()] {
                // a truncated frame: no byte beyond it is accepted
                let short = parse(&whole[..len], len, &options);
                assert!(!matches!(short, Ok(Parsed::Udp(_))), "{len}: {short:?}");
                assert_bounded(&whole[..len], whole.len(), options);
                assert_bounded(&whole, len, options);
            }
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), more in 0usize..100,
    ) {
        assert_bounded(&bytes, bytes.len() + more, ParseOptions::default());
        assert_bounded(&bytes, bytes.len() + more, ParseOptions::TRUSTED);
    }

    #[test]
    fn damaged_frames_are_survived(
        payload in proptest::collection::vec(any::<u8>(), 0..100),
        tags in 0usize..3,
        v6: bool,
        damage in proptest::collection::vec((0usize..60, any::<u8>()), 0..4),
        cut in 0usize..160,
    ) {
        let mut frame = Frame::udp(&payload);
        frame.tags = vec![(0x8100, 1); tags];
        let mut bytes = if v6 { udp_over_ipv6(17, &payload) } else { frame.bytes() };
        for (at, value) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let total = bytes.len();
        bytes.truncate(cut);
        assert_bounded(&bytes, total, ParseOptions::TRUSTED);
        assert_bounded(&bytes, cut, ParseOptions::TRUSTED);
    }

    #[test]
    fn a_flipped_bit_of_the_datagram_is_found(
        payload in proptest::collection::vec(any::<u8>(), 0..64), bit in 0usize..800,
    ) {
        let mut bytes = Frame::udp(&payload).bytes();
        let bit = 14 * 8 + bit % ((bytes.len() - 14) * 8);
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        // clearing the last bit of the checksum means no checksum: RFC 768 allows it
        prop_assume!(bytes[40..42] != [0, 0]);
        prop_assert!(check(&bytes).is_err());
    }
}

#[test]
fn naive_datagrams_have_the_checksum_that_is_verified() {
    // the sum is 0xffff here: sent as all ones, and verified as correct
    let addresses = [&SRC_IP[..], &DST_IP].concat();
    let body = (0..=u16::MAX)
        .map(|word| udp_datagram(&addresses, &word.to_be_bytes()))
        .find(|udp| udp[6..8] == [0xff, 0xff])
        .unwrap();
    let bytes = Frame::ip(17, body).bytes();
    assert_eq!(udp_of(&bytes).checksum, 0xffff);
}
