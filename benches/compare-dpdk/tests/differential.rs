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
    use std::net::Ipv4Addr;

    use dpdk_sys as dpdk;
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

    fn is_ipv4(packet_type: u32) -> bool {
        let l3 = packet_type & dpdk::RTE_PTYPE_L3_MASK;
        l3 == dpdk::RTE_PTYPE_L3_IPV4 || l3 == dpdk::RTE_PTYPE_L3_IPV4_EXT
    }

    /// Ethernet, 0 to 2 VLAN tags, IPv4 with options, UDP, payload, padding.
    fn frame(
        tags: usize,
        options: usize,
        payload: &[u8],
        padding: usize,
        ports: (u16, u16),
    ) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in 0..tags {
            let outer = tags == 2 && tag == 0;
            frame.extend_from_slice(if outer { &[0x88, 0xa8] } else { &[0x81, 0x00] });
            frame.extend_from_slice(&[0, 7]);
        }
        frame.extend_from_slice(&[0x08, 0x00]);
        let (header, udp_len) = (20 + 4 * options, 8 + payload.len());
        let mut ip = vec![0x40 | (header / 4) as u8, 0];
        ip.extend_from_slice(&((header + udp_len) as u16).to_be_bytes());
        ip.extend_from_slice(&[0, 1, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        ip.resize(header, 1);
        let sum = !raw_cksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_ne_bytes());
        let mut udp = [ports.0, ports.1, udp_len as u16, 0]
            .map(u16::to_be_bytes)
            .concat();
        udp.extend_from_slice(payload);
        let sum = udptcp_cksum(&ip, &udp);
        udp[6..8].copy_from_slice(&sum.to_ne_bytes());
        frame.extend([ip, udp].concat());
        frame.resize(frame.len() + padding, 0);
        frame
    }

    /// DPDK's UDP checksum over IPv4, as it goes into the field in memory.
    fn udptcp_cksum(ip: &[u8], udp: &[u8]) -> u16 {
        // SAFETY: the header is at least 20 bytes long and says how long the datagram is.
        unsafe { dpdk::rte_ipv4_udptcp_cksum(ip.as_ptr().cast(), udp.as_ptr().cast()) }
    }

    /// A whole frame and what may happen to it: bytes overwritten, the end cut off.
    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let whole = (
            0usize..3,
            0usize..11,
            proptest::collection::vec(any::<u8>(), 0..80),
            0usize..20,
            any::<(u16, u16)>(),
        )
            .prop_map(|(tags, options, payload, padding, ports)| {
                frame(tags, options, &payload, padding, ports)
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

        /// What our parser calls a UDP datagram, DPDK calls one too, with its payload at the same
        /// place; and where DPDK finds none, neither do we.
        #[test]
        fn our_datagrams_are_dpdks(frame in frames()) {
            prop_assume!(tags_are_regular(&frame));
            if let Ok(Parsed::Udp(udp)) = parse(&frame, frame.len(), &ParseOptions::TRUSTED) {
                prop_assert_eq!(udp_payload(&frame), Some(usize::from(udp.payload_offset)));
            }
        }

        /// DPDK's type looks at no length. Where it finds a datagram over IPv4 and we do not, we
        /// say that a length is wrong or that it is a fragment; never that it is something else.
        #[test]
        fn dpdks_datagrams_are_ours_or_broken(frame in frames()) {
            prop_assume!(tags_are_regular(&frame));
            let (packet_type, lens) = ptype(&frame);
            if is_ipv4(packet_type) && udp_payload(&frame).is_some() {
                let ours = parse(&frame, frame.len(), &ParseOptions::TRUSTED);
                let told = matches!(
                    ours,
                    Ok(Parsed::Udp(_)) | Err(Reject::Malformed | Reject::IpFragment)
                );
                prop_assert!(told, "{ours:?}, DPDK: {packet_type:#x} {lens:?}");
            }
        }

        /// Undamaged frames: both find the same.
        #[test]
        fn whole_frames_are_datagrams_to_both(
            tags in 0usize..3, options in 0usize..11, padding in 0usize..20, ports in any::<(u16, u16)>(),
            payload in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let frame = frame(tags, options, &payload, padding, ports);
            // DPDK made both checksums; we verify them.
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
