//! Ours against DPDK's, call by call on the same bytes: checksums and packet types, on random,
//! well-formed and damaged frames. Nothing here needs DPDK to be started.

#[cfg(not(feature = "dpdk"))]
#[test]
fn equal_to_dpdk() {
    println!(
        "skipped: built without feature `dpdk`: install libdpdk-dev and clang, add --features dpdk"
    );
}

#[cfg(feature = "dpdk")]
mod with_dpdk {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::ffi::c_void;
    use std::mem;
    use std::net::{Ipv4Addr, Ipv6Addr};

    use pollux_dpdk_sys as dpdk;
    use pollux_pmd::net::{Checksum, ParseOptions, Parsed, Reject, parse};
    use proptest::prelude::*;

    const UDP: u8 = 17;

    /// DPDK's sum of the 16-bit words, as it lies in memory.
    fn raw_cksum(bytes: &[u8]) -> u16 {
        // SAFETY: reads `len` bytes.
        unsafe { dpdk::rte_raw_cksum(bytes.as_ptr().cast(), bytes.len()) }
    }

    /// DPDK's packet type and header lengths of a frame in one segment.
    fn ptype(frame: &[u8]) -> (u32, dpdk::rte_net_hdr_lens) {
        let layers = dpdk::RTE_PTYPE_L2_MASK | dpdk::RTE_PTYPE_L3_MASK | dpdk::RTE_PTYPE_L4_MASK;
        let mbuf = dpdk::rte_mbuf {
            buf_addr: frame.as_ptr().cast_mut().cast::<c_void>(),
            data_len: frame.len() as u16,
            pkt_len: frame.len() as u32,
            ..Default::default()
        };
        let mut lens = dpdk::rte_net_hdr_lens::default();
        // SAFETY: DPDK reads `data_len` bytes from `buf_addr` at most, and writes `lens`.
        let packet_type =
            unsafe { dpdk::rte_net_get_ptype(&raw const mbuf, &raw mut lens, layers) };
        (packet_type, lens)
    }

    /// Where DPDK sees UDP over an IP version (`RTE_PTYPE_L3_IPV4` or `_IPV6`, which may have
    /// options or extensions), whole and not a fragment: the offset of the UDP payload.
    fn udp_payload(frame: &[u8]) -> Option<usize> {
        let (packet_type, lens) = ptype(frame);
        let udp = packet_type & dpdk::RTE_PTYPE_L4_MASK == dpdk::RTE_PTYPE_L4_UDP;
        udp.then(|| usize::from(lens.l2_len) + usize::from(lens.l3_len) + 8)
    }

    /// Whether the tags are as DPDK takes them for granted: one of 802.1Q, or one of 802.1ad with
    /// one of 802.1Q in it, whose EtherType it does not read. We read each tag's.
    fn tags_are_regular(frame: &[u8]) -> bool {
        let ethertype = |at| frame.get(at..at + 2).map(|bytes| (bytes[0], bytes[1]));
        match (ethertype(12), ethertype(16)) {
            (Some((0x81, 0x00)), inner) => !matches!(inner, Some((0x81, 0x00) | (0x88, 0xa8))),
            (Some((0x88, 0xa8)), inner) => {
                inner == Some((0x81, 0x00)) && ethertype(20) != Some((0x81, 0x00))
            }
            _ => true,
        }
    }

    /// Whether DPDK is sure that it is IP.
    fn is_ip(packet_type: u32) -> bool {
        matches!(
            packet_type & dpdk::RTE_PTYPE_L3_MASK,
            dpdk::RTE_PTYPE_L3_IPV4
                | dpdk::RTE_PTYPE_L3_IPV4_EXT
                | dpdk::RTE_PTYPE_L3_IPV6
                | dpdk::RTE_PTYPE_L3_IPV6_EXT
        )
    }

    /// What carries the datagram.
    #[derive(Clone, Copy, Debug)]
    enum Ip {
        /// With so many words of options.
        V4(usize),
        V6,
    }

    impl Ip {
        fn ethertype(self) -> [u8; 2] {
            match self {
                Self::V4(_) => [0x08, 0x00],
                Self::V6 => [0x86, 0xdd],
            }
        }

        fn header(self, udp_len: usize) -> Vec<u8> {
            match self {
                Self::V4(options) => {
                    let len = 20 + 4 * options;
                    let mut ip = vec![0x40 | (len / 4) as u8, 0];
                    ip.extend_from_slice(&((len + udp_len) as u16).to_be_bytes());
                    ip.extend_from_slice(&[0, 1, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
                    ip.resize(len, 1);
                    let sum = !raw_cksum(&ip);
                    ip[10..12].copy_from_slice(&sum.to_ne_bytes());
                    ip
                }
                Self::V6 => ipv6_header([0xfd; 16], [0xfe; 16], udp_len as u16),
            }
        }
    }

    fn ipv6_header(src: [u8; 16], dst: [u8; 16], udp_len: u16) -> Vec<u8> {
        let [high, low] = udp_len.to_be_bytes();
        let fixed = [0x60, 0, 0, 0, high, low, UDP, 64];
        [&fixed[..], &src, &dst].concat()
    }

    fn ip() -> impl Strategy<Value = Ip> {
        prop_oneof![(0usize..11).prop_map(Ip::V4), Just(Ip::V6)]
    }

    /// Ethernet, 0 to 2 VLAN tags, IP, UDP, payload, padding.
    fn frame(tags: usize, ip: Ip, payload: &[u8], padding: usize, ports: (u16, u16)) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in 0..tags {
            let outer = tags == 2 && tag == 0;
            frame.extend_from_slice(if outer { &[0x88, 0xa8] } else { &[0x81, 0x00] });
            frame.extend_from_slice(&[0, 7]);
        }
        frame.extend_from_slice(&ip.ethertype());
        let udp_len = 8 + payload.len();
        let header = ip.header(udp_len);
        let mut udp = [ports.0, ports.1, udp_len as u16, 0]
            .map(u16::to_be_bytes)
            .concat();
        udp.extend_from_slice(payload);
        let sum = udptcp_cksum(&header, &udp);
        udp[6..8].copy_from_slice(&sum.to_ne_bytes());
        frame.extend([header, udp].concat());
        frame.resize(frame.len() + padding, 0);
        frame
    }

    /// DPDK's UDP checksum, as it goes into the field in memory.
    fn udptcp_cksum(ip: &[u8], udp: &[u8]) -> u16 {
        let udp = udp.as_ptr().cast();
        // SAFETY: a whole header of its version, which says how long the datagram is.
        unsafe {
            match ip[0] >> 4 {
                4 => dpdk::rte_ipv4_udptcp_cksum(ip.as_ptr().cast(), udp),
                _ => dpdk::rte_ipv6_udptcp_cksum(ip.as_ptr().cast(), udp),
            }
        }
    }

    /// Whether the UDP checksum is right, as DPDK says. It takes the datagram to be all that is in
    /// the packet, and a field of zero for a checksum.
    fn udptcp_cksum_is_valid(ip: &[u8], udp: &[u8]) -> bool {
        let udp = udp.as_ptr().cast();
        // SAFETY: a whole header of its version, and the datagram that it says the length of.
        let status = unsafe {
            match ip[0] >> 4 {
                4 => dpdk::rte_ipv4_udptcp_cksum_verify(ip.as_ptr().cast(), udp),
                _ => dpdk::rte_ipv6_udptcp_cksum_verify(ip.as_ptr().cast(), udp),
            }
        };
        status == 0
    }

    /// A whole frame and what may happen to it: bytes overwritten, the end cut off. Or noise behind
    /// an EtherType.
    fn frames() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![7 => damaged(), 1 => noise()]
    }

    fn noise() -> impl Strategy<Value = Vec<u8>> {
        let ethertypes = vec![[0x08, 0x00], [0x86, 0xdd], [0x81, 0x00], [0x88, 0xa8]];
        let bytes = proptest::collection::vec(any::<u8>(), 14..100);
        (bytes, prop::sample::select(ethertypes)).prop_map(|(mut frame, ethertype)| {
            frame[12..14].copy_from_slice(&ethertype);
            frame
        })
    }

    fn damaged() -> impl Strategy<Value = Vec<u8>> {
        let whole = (
            0usize..3,
            ip(),
            proptest::collection::vec(any::<u8>(), 0..80),
            0usize..20,
            any::<(u16, u16)>(),
        )
            .prop_map(|(tags, ip, payload, padding, ports)| {
                frame(tags, ip, &payload, padding, ports)
            });
        // Mostly in the headers, and often with values that mean something there.
        let value = prop_oneof![
            any::<u8>(),
            prop::sample::select(vec![
                0x08, 0x00, 0x81, 0x86, 0xdd, 0x45, 0x46, 0x60, 17, 6, 0x20
            ])
        ];
        let damage = proptest::collection::vec((0usize..60, value), 0..4);
        (whole, damage, proptest::option::of(0usize..80)).prop_map(|(mut frame, damage, cut)| {
            for (at, value) in damage {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            frame.truncate(cut.unwrap_or(usize::MAX));
            frame
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn the_sum_is_dpdks(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let mut sum = Checksum::new();
            sum.add(&bytes);
            prop_assert_eq!(sum.finish().to_be(), !raw_cksum(&bytes));
        }

        #[test]
        fn the_udp_checksum_is_dpdks(
            src in any::<u32>(), dst in any::<u32>(),
            payload in proptest::collection::vec(any::<u8>(), 0..1473),
        ) {
            let (src, dst) = (Ipv4Addr::from_bits(src), Ipv4Addr::from_bits(dst));
            let len = 8 + payload.len() as u16;
            let mut ip = vec![0x45, 0];
            ip.extend_from_slice(&(20 + len).to_be_bytes());
            ip.extend_from_slice(&[0, 0, 0, 0, 64, UDP, 0, 0]);
            ip.extend([src.octets(), dst.octets()].concat());
            let mut udp = [1000, 2000, len, 0].map(u16::to_be_bytes).concat();
            udp.extend_from_slice(&payload);
            let mut sum = Checksum::pseudo_v4(src, dst, UDP, len);
            sum.add(&udp);
            prop_assert_eq!(sum.finish_udp().to_be(), udptcp_cksum(&ip, &udp));
        }

        #[test]
        fn the_udp_checksum_over_ipv6_is_dpdks(
            src in any::<[u8; 16]>(), dst in any::<[u8; 16]>(),
            payload in proptest::collection::vec(any::<u8>(), 0..1453),
        ) {
            let len = 8 + payload.len() as u16;
            let ip = ipv6_header(src, dst, len);
            let mut udp = [1000, 2000, len, 0].map(u16::to_be_bytes).concat();
            udp.extend_from_slice(&payload);
            let mut sum = Checksum::pseudo_v6(Ipv6Addr::from(src), Ipv6Addr::from(dst), UDP, len);
            sum.add(&udp);
            prop_assert_eq!(sum.finish_udp().to_be(), udptcp_cksum(&ip, &udp));
        }

        /// A datagram that may be damaged has the right checksum to both or to neither.
        #[test]
        fn a_wrong_checksum_is_wrong_to_both(frame in frames()) {
            let Ok(Parsed::Udp(udp)) = parse(&frame, frame.len(), &ParseOptions::TRUSTED) else {
                return Ok(());
            };
            prop_assume!(tags_are_regular(&frame) && udp.checksum != 0);
            let (_, lens) = ptype(&frame);
            let (link, header) = (usize::from(lens.l2_len), usize::from(lens.l3_len));
            let (ip, datagram) = frame[link..].split_at(header);
            let field = |at: usize| usize::from(u16::from_be_bytes([ip[at], ip[at + 1]]));
            let in_packet = match ip[0] >> 4 {
                4 => field(2) - header,
                _ => field(4),
            };
            prop_assume!(in_packet == 8 + usize::from(udp.payload_len));
            let ours = udp.verify([&frame[..]]).is_ok();
            prop_assert_eq!(ours, udptcp_cksum_is_valid(ip, datagram));
        }

        /// What our parser calls a UDP datagram, DPDK calls one too, with its payload at the same
        /// place; and where DPDK finds none, neither do we.
        #[test]
        fn our_datagrams_are_dpdks(frame in frames()) {
            prop_assume!(tags_are_regular(&frame));
            if let Ok(Parsed::Udp(udp)) = parse(&frame, frame.len(), &ParseOptions::TRUSTED) {
                prop_assert_eq!(udp_payload(&frame), Some(usize::from(udp.payload_offset)));
            }
        }

        /// DPDK's type looks at no length and no version. Where it finds a datagram and we do not,
        /// we say that one of these is wrong, that it is a fragment, or that it is behind extension
        /// headers of IPv6, which we do not read; never that it is something else.
        #[test]
        fn dpdks_datagrams_are_ours_or_broken(frame in frames()) {
            prop_assume!(tags_are_regular(&frame));
            let (packet_type, lens) = ptype(&frame);
            if is_ip(packet_type) && udp_payload(&frame).is_some() {
                let ours = parse(&frame, frame.len(), &ParseOptions::TRUSTED);
                let extended =
                    packet_type & dpdk::RTE_PTYPE_L3_MASK == dpdk::RTE_PTYPE_L3_IPV6_EXT;
                let agrees = match ours {
                    Ok(Parsed::Udp(_)) | Err(Reject::Malformed | Reject::IpFragment) => true,
                    Err(Reject::Unsupported) => extended,
                    _ => false,
                };
                prop_assert!(agrees, "{ours:?}, DPDK: {packet_type:#x} {lens:?}");
            }
        }

        /// Undamaged frames: both find the same.
        #[test]
        fn whole_frames_are_datagrams_to_both(
            tags in 0usize..3, ip in ip(), padding in 0usize..20, ports in any::<(u16, u16)>(),
            payload in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let frame = frame(tags, ip, &payload, padding, ports);
            // DPDK made the checksums; we verify them.
            let Ok(Parsed::Udp(udp)) = parse(&frame, frame.len(), &ParseOptions::default()) else {
                return Err(TestCaseError::fail("not a datagram to us"));
            };
            prop_assert_eq!(udp_payload(&frame), Some(usize::from(udp.payload_offset)));
            prop_assert_eq!(udp.payload(&frame), &payload[..]);
            prop_assert_eq!((udp.src_port, udp.dst_port), ports);
        }
    }

    #[test]
    fn keys_and_headers_have_dpdks_layout() {
        assert_eq!(mem::size_of::<dpdk::stream_key>(), 16);
        assert_eq!(mem::size_of::<dpdk::rte_mbuf>(), 128);
    }
}
