//! UDP header template: Ethernet, IPv6 and UDP headers made once, completed for each payload.

use std::mem::offset_of;
use std::net::SocketAddrV6;

use pollux_mempool::ChecksumRequest;
use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::headers::{ETHERTYPE_IPV6, EthernetHeader, Ipv6Header, PROTOCOL_UDP, UdpHeader};
use super::{Checksum, MacAddr};

/// Bytes of Ethernet, IPv6 and UDP headers: the headroom that a payload needs.
pub const UDP_HEADERS_V6: usize = size_of::<Headers>();

/// The longest UDP payload over IPv6, in bytes: 65 535 less the UDP header.
pub const MAX_PAYLOAD_V6: usize = 65_535 - size_of::<UdpHeader>();

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Headers {
    ethernet: EthernetHeader,
    ip: Ipv6Header,
    udp: UdpHeader,
}

/// One endpoint of a UDP flow over IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpEndpointV6 {
    /// MAC address.
    pub mac: MacAddr,
    /// IP address and port; flow label and scope are not sent.
    pub socket: SocketAddrV6,
}

/// The headers from one endpoint to another, with all fields and sums that do not depend on the
/// payload. The checksum is mandatory: over IPv6 a datagram without one is dropped (RFC 8200
/// section 8.1).
#[derive(Debug, Clone)]
pub struct UdpTemplateV6 {
    headers: Headers,
    /// Sum of the pseudo header, its length zero.
    pseudo_sum: Checksum,
    /// Sum of the pseudo header and both ports, all lengths zero.
    udp_sum: Checksum,
    /// The device computes the checksum.
    left: bool,
}

impl UdpTemplateV6 {
    /// Headers from `src` to `dst`, with a UDP checksum over the payload.
    #[must_use]
    pub fn new(src: UdpEndpointV6, dst: UdpEndpointV6) -> Self {
        let headers = Headers {
            ethernet: EthernetHeader {
                dst: dst.mac,
                src: src.mac,
                ethertype: U16::new(ETHERTYPE_IPV6),
            },
            ip: Ipv6Header {
                version_class_flow: U32::new(6 << 28),
                payload_len: U16::ZERO,
                next_header: PROTOCOL_UDP,
                hop_limit: 64,
                src: src.socket.ip().octets(),
                dst: dst.socket.ip().octets(),
            },
            udp: UdpHeader {
                src_port: U16::new(src.socket.port()),
                dst_port: U16::new(dst.socket.port()),
                len: U16::ZERO,
                checksum: U16::ZERO,
            },
        };
        let (from, to) = (*src.socket.ip(), *dst.socket.ip());
        let pseudo_sum = Checksum::pseudo_v6(from, to, PROTOCOL_UDP, 0);
        let mut udp_sum = pseudo_sum;
        udp_sum.add(headers.udp.as_bytes());
        Self {
            headers,
            pseudo_sum,
            udp_sum,
            left: false,
        }
    }

    /// As [`UdpTemplate::checksum_request`](super::UdpTemplate::checksum_request).
    #[must_use]
    pub const fn checksum_request(tags: usize) -> Option<ChecksumRequest> {
        let udp = offset_of!(Headers, udp) + tags;
        ChecksumRequest::new(udp, udp + offset_of!(UdpHeader, checksum))
    }

    /// Leaves the checksum to the device that sends the frame, as
    /// [`UdpChecksum::Left`](super::UdpChecksum::Left).
    #[must_use]
    pub fn with_checksum_left(mut self) -> Self {
        self.left = true;
        self
    }

    /// Writes the headers to the first [`UDP_HEADERS_V6`] bytes of `buf`, in front of the
    /// `payload_len` bytes of payload that are already there, and returns the length of the frame.
    ///
    /// `None`, with nothing written, if `buf` ends before the payload does or the payload is longer
    /// than [`MAX_PAYLOAD_V6`].
    #[must_use = "None means that there is no frame to send"]
    #[inline]
    pub fn write(&self, buf: &mut [u8], payload_len: usize) -> Option<usize> {
        if payload_len > MAX_PAYLOAD_V6 {
            return None;
        }
        let frame = buf.get_mut(..UDP_HEADERS_V6 + payload_len)?;
        let (headers, payload) = Headers::mut_from_prefix(frame).ok()?;
        *headers = self.headers;
        let udp_len = (payload_len + size_of::<UdpHeader>()) as u16;
        headers.ip.payload_len = U16::new(udp_len);
        headers.udp.len = U16::new(udp_len);
        let sum = if self.left {
            let mut sum = self.pseudo_sum;
            sum.add_field(udp_len);
            sum.partial()
        } else {
            let mut sum = self.udp_sum;
            sum.add_field(udp_len); // of the pseudo header
            sum.add_field(udp_len); // of the header
            sum.add(payload);
            sum.finish_udp()
        };
        headers.udp.checksum = U16::new(sum);
        Some(UDP_HEADERS_V6 + payload_len)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::net::{ParseOptions, Parsed, parse};
    use pollux_pmd_testkit::frames::{DST_MAC, SRC_MAC, naive_checksum};
    use proptest::prelude::*;

    fn end(mac: [u8; 6], (ip, port): ([u8; 16], u16)) -> UdpEndpointV6 {
        let socket = SocketAddrV6::new(ip.into(), port, 0, 0);
        UdpEndpointV6 {
            mac: MacAddr(mac),
            socket,
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let template = UdpTemplateV6::new(end(SRC_MAC, ([1; 16], 1)), end(DST_MAC, ([2; 16], 2)));
        let mut buf = vec![0; UDP_HEADERS_V6 + 10];
        assert_eq!(template.write(&mut buf, 11), None);
        assert_eq!(template.write(&mut [], 0), None);
        let mut large = vec![0; UDP_HEADERS_V6 + MAX_PAYLOAD_V6 + 1];
        assert_eq!(template.write(&mut large, MAX_PAYLOAD_V6 + 1), None);
        assert_eq!(template.write(&mut large, usize::MAX), None);
        assert!(buf.iter().chain(&large).all(|&byte| byte == 0));
        let len = template.write(&mut large, MAX_PAYLOAD_V6).unwrap();
        let parsed = parse(&large[..len], len, &ParseOptions::default());
        assert!(matches!(parsed, Ok(Parsed::Udp(_))), "{parsed:?}");
    }

    proptest! {
        #[test]
        fn parse_reads_what_was_written(
            src in any::<([u8; 16], u16)>(), dst in any::<([u8; 16], u16)>(),
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            spare in 0usize..20,
        ) {
            let template = UdpTemplateV6::new(end(SRC_MAC, src), end(DST_MAC, dst));
            let mut buf = vec![0; UDP_HEADERS_V6];
            buf.extend(&payload);
            buf.extend(vec![0xbb; spare]);
            let len = template.write(&mut buf, payload.len()).unwrap();
            let parsed = parse(&buf[..len], len, &ParseOptions::default());
            let Ok(Parsed::Udp(udp)) = parsed else { panic!("{parsed:?}") };
            prop_assert_eq!((udp.addresses.src(), udp.src_port), (src.0.into(), src.1));
            prop_assert_eq!((udp.addresses.dst(), udp.dst_port), (dst.0.into(), dst.1));
            prop_assert_eq!(udp.payload(&buf), &payload[..]);
            prop_assert!(buf[len..].iter().all(|&byte| byte == 0xbb));
            // RFC 8200 section 8.1: addresses, length in 32 bits, protocol in 32 bits, datagram.
            let udp_len = (8 + payload.len()) as u32;
            let mut summed = [&src.0[..], &dst.0, &udp_len.to_be_bytes(), &[0, 0, 0, 17]].concat();
            summed.extend(&buf[54..len]);
            prop_assert_eq!(naive_checksum(&summed), 0);
            prop_assert!(udp.checksum != 0);
        }
    }
}
