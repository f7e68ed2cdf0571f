//! UDP header template: Ethernet, IPv4 and UDP headers made once, completed for each payload.

use std::mem::offset_of;
use std::net::SocketAddrV4;

use pollux_mempool::ChecksumRequest;
use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::headers::{ETHERTYPE_IPV4, EthernetHeader, Ipv4Header, PROTOCOL_UDP, UdpHeader};
use super::{Checksum, MacAddr};

/// Bytes of Ethernet, IPv4 and UDP headers: the headroom that a payload needs.
pub const UDP_HEADERS: usize = size_of::<Headers>();

/// The longest UDP payload over IPv4, in bytes: 65 535 less both headers.
pub const MAX_PAYLOAD: usize = 65_535 - 20 - 8;

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Headers {
    ethernet: EthernetHeader,
    ip: Ipv4Header,
    udp: UdpHeader,
}

/// One endpoint of a UDP flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpEndpoint {
    /// MAC address.
    pub mac: MacAddr,
    /// IP address and port.
    pub socket: SocketAddrV4,
}

/// The headers from one endpoint to another, with all fields and sums that do not depend on the
/// payload.
#[derive(Debug, Clone)]
pub struct UdpTemplate {
    headers: Headers,
    /// Sum of the IPv4 header with length and checksum zero.
    ip_sum: Checksum,
    /// Sum of the pseudo header, its length zero.
    pseudo_sum: Checksum,
    /// Sum of the pseudo header and both ports, all lengths zero.
    udp_sum: Checksum,
    checksum: UdpChecksum,
}

/// Mode of the UDP checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UdpChecksum {
    /// Computed over the payload.
    Whole,
    /// Left to the device that sends the frame, by a request ([`UdpTemplate::checksum_request`]):
    /// the field holds the sum of the pseudo header. The payload is not read.
    Left,
    /// None: the field is zero, as RFC 768 allows over IPv4. The payload is not read.
    Absent,
}

impl UdpTemplate {
    /// Headers from `src` to `dst`, with a UDP checksum over the payload.
    #[must_use]
    pub fn new(src: UdpEndpoint, dst: UdpEndpoint) -> Self {
        let headers = Headers {
            ethernet: EthernetHeader {
                dst: dst.mac,
                src: src.mac,
                ethertype: U16::new(ETHERTYPE_IPV4),
            },
            ip: Ipv4Header {
                version_ihl: 0x45,
                service: 0,
                total_len: U16::ZERO,
                // Never fragmented, so the identification has no meaning (RFC 6864 section 4.1).
                id: U16::ZERO,
                flags_offset: U16::new(0x4000),
                ttl: 64,
                protocol: PROTOCOL_UDP,
                checksum: U16::ZERO,
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
        let mut ip_sum = Checksum::new();
        ip_sum.add(headers.ip.as_bytes());
        let (from, to) = (*src.socket.ip(), *dst.socket.ip());
        let pseudo_sum = Checksum::pseudo_v4(from, to, PROTOCOL_UDP, 0);
        let mut udp_sum = pseudo_sum;
        udp_sum.add(headers.udp.as_bytes());
        Self {
            headers,
            ip_sum,
            pseudo_sum,
            udp_sum,
            checksum: UdpChecksum::Whole,
        }
    }

    /// The request for the device that completes the UDP checksum
    /// ([`Mbuf::set_checksum_request`](pollux_mempool::Mbuf::set_checksum_request)) of a frame with
    /// `tags` bytes of VLAN tags; `None` if that is too many.
    #[must_use]
    pub const fn checksum_request(tags: usize) -> Option<ChecksumRequest> {
        let udp = offset_of!(Headers, udp) + tags;
        ChecksumRequest::new(udp, udp + offset_of!(UdpHeader, checksum))
    }

    /// Selects the mode of the UDP checksum.
    #[must_use]
    pub fn with_checksum(mut self, checksum: UdpChecksum) -> Self {
        self.checksum = checksum;
        self
    }

    /// Sets the byte of differentiated services and ECN; it is 0 otherwise.
    #[must_use]
    pub fn with_service(mut self, service: u8) -> Self {
        self.headers.ip.service = service;
        self.ip_sum = Checksum::new();
        self.ip_sum.add(self.headers.ip.as_bytes());
        self
    }

    /// Writes the headers to the first [`UDP_HEADERS`] bytes of `buf`, in front of the
    /// `payload_len` bytes of payload that are already there, and returns the length of the frame.
    /// The port pads short frames to the 60 bytes of Ethernet.
    ///
    /// `None`, with nothing written, if `buf` ends before the payload does or the payload is longer
    /// than [`MAX_PAYLOAD`].
    #[must_use = "None means that there is no frame to send"]
    #[inline]
    pub fn write(&self, buf: &mut [u8], payload_len: usize) -> Option<usize> {
        if payload_len > MAX_PAYLOAD {
            return None;
        }
        let frame = buf.get_mut(..UDP_HEADERS + payload_len)?;
        let (headers, payload) = Headers::mut_from_prefix(frame).ok()?;
        *headers = self.headers;

        let total_len = (payload_len + 28) as u16;
        let mut ip_sum = self.ip_sum;
        ip_sum.add_field(total_len);
        headers.ip.total_len = U16::new(total_len);
        headers.ip.checksum = U16::new(ip_sum.finish());

        let udp_len = (payload_len + 8) as u16;
        headers.udp.len = U16::new(udp_len);
        match self.checksum {
            UdpChecksum::Whole => {
                let mut sum = self.udp_sum;
                sum.add_field(udp_len); // of the pseudo header
                sum.add_field(udp_len); // of the header
                sum.add(payload);
                headers.udp.checksum = U16::new(sum.finish_udp());
            }
            UdpChecksum::Left => {
                let mut sum = self.pseudo_sum;
                sum.add_field(udp_len);
                headers.udp.checksum = U16::new(sum.partial());
            }
            UdpChecksum::Absent => {}
        }
        Some(UDP_HEADERS + payload_len)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::net::{ParseOptions, Parsed, parse};
    use pollux_pmd_testkit::frames::{DST_IP, DST_MAC, Frame, SRC_IP, SRC_MAC, naive_checksum};
    use proptest::prelude::*;

    fn template() -> UdpTemplate {
        let src = UdpEndpoint {
            mac: MacAddr(SRC_MAC),
            socket: SocketAddrV4::new(SRC_IP.into(), 1000),
        };
        let dst = UdpEndpoint {
            mac: MacAddr(DST_MAC),
            socket: SocketAddrV4::new(DST_IP.into(), 2000),
        };
        UdpTemplate::new(src, dst)
    }

    #[test]
    fn bytes_equal_the_naive_frame() {
        for len in [0, 1, 1472, MAX_PAYLOAD] {
            let payload = &vec![7; len][..];
            let mut buf = vec![0xaa; UDP_HEADERS];
            buf.extend(payload);
            assert_eq!(template().write(&mut buf, payload.len()), Some(buf.len()));
            let mut naive = Frame::udp(payload).bytes();
            // the naive frame has an identification, which changes the header's checksum
            naive[18..20].fill(0);
            naive[24..26].copy_from_slice(&buf[24..26]);
            assert_eq!(buf, naive);
            assert_eq!(naive_checksum(&buf[14..34]), 0);
        }
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        let sums: Vec<_> = (0..=u16::MAX)
            .map(|word| {
                let mut buf = [0; UDP_HEADERS + 2];
                buf[UDP_HEADERS..].copy_from_slice(&word.to_be_bytes());
                template().write(&mut buf, 2).unwrap();
                u16::from_be_bytes([buf[40], buf[41]])
            })
            .collect();
        assert!(sums.contains(&0xffff));
        assert!(!sums.contains(&0));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut buf = vec![0; UDP_HEADERS + 10];
        assert_eq!(template().write(&mut buf, 11), None);
        assert_eq!(template().write(&mut [], 0), None);
        let mut large = vec![0; UDP_HEADERS + MAX_PAYLOAD + 1];
        assert_eq!(template().write(&mut large, MAX_PAYLOAD + 1), None);
        assert_eq!(template().write(&mut large, usize::MAX), None);
        assert!(buf.iter().chain(&large).all(|&byte| byte == 0));
    }

    proptest! {
        #[test]
        fn parse_reads_what_was_written(
            src in any::<([u8; 4], u16)>(), dst in any::<([u8; 4], u16)>(),
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            absent: bool, spare in 0usize..20, service: u8,
        ) {
            let end = |mac, (ip, port): ([u8; 4], u16)| UdpEndpoint {
                mac: MacAddr(mac), socket: SocketAddrV4::new(ip.into(), port),
            };
            let checksum = if absent { UdpChecksum::Absent } else { UdpChecksum::Whole };
            let template = UdpTemplate::new(end(SRC_MAC, src), end(DST_MAC, dst))
                .with_checksum(checksum)
                .with_service(service);
            let mut buf = vec![0; UDP_HEADERS];
            buf.extend(&payload);
            buf.extend(vec![0xbb; spare]);
            let len = template.write(&mut buf, payload.len()).unwrap();
            let parsed = parse(&buf[..len], len, &ParseOptions::default());
            let Ok(Parsed::Udp(udp)) = parsed else { panic!("{parsed:?}") };
            prop_assert_eq!((udp.addresses.src(), udp.src_port), (src.0.into(), src.1));
            prop_assert_eq!((udp.addresses.dst(), udp.dst_port), (dst.0.into(), dst.1));
            prop_assert_eq!(udp.payload(&buf), &payload[..]);
            prop_assert_eq!(udp.checksum == 0, absent);
            prop_assert_eq!(buf[15], service);
            prop_assert!(buf[len..].iter().all(|&byte| byte == 0xbb));
        }
    }
}
