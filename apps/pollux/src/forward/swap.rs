//! Exchange of source and destination in a forwarded frame, layer by layer.
//!
//! A ones' complement sum does not depend on the order of its words (RFC 1071 section 2), so
//! exchanging two fields under one checksum keeps it valid: none is recomputed.

use pollux_pmd::mempool::Mbuf;
use pollux_pmd::net::headers::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_QINQ, ETHERTYPE_VLAN, EthernetHeader, Ipv4Header,
    Ipv6Header, PROTOCOL_UDP, VlanTag,
};
use zerocopy::FromBytes;

/// IP protocol number of TCP (RFC 9293). Its header begins with the ports, as UDP's does.
const PROTOCOL_TCP: u8 = 6;

/// Exchanged fields, with the names of testpmd's forwarding engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// Nothing
    Io,
    /// The Ethernet addresses
    Mac,
    /// Ethernet and IP addresses, and UDP or TCP ports
    #[value(name = "5tswap")]
    FiveTuple,
}

impl Mode {
    /// Name on the command line and in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Mac => "mac",
            Self::FiveTuple => "5tswap",
        }
    }

    /// Applies the exchange to all frames of a burst. A header that the frame cuts off is left
    /// unchanged.
    #[inline]
    pub(super) fn apply(self, burst: &mut [Mbuf]) {
        match self {
            Self::Io => {}
            Self::Mac => burst.iter_mut().for_each(|mbuf| {
                let _ = swap_mac(mbuf.data_mut());
            }),
            Self::FiveTuple => burst.iter_mut().for_each(|mbuf| {
                let _ = swap_five_tuple(mbuf.data_mut());
            }),
        }
    }
}

/// Exchanges the addresses. Returns the EtherType and the data behind the header.
#[inline]
fn swap_mac(frame: &mut [u8]) -> Option<(u16, &mut [u8])> {
    let (ethernet, rest) = EthernetHeader::mut_from_prefix(frame).ok()?;
    std::mem::swap(&mut ethernet.src, &mut ethernet.dst);
    Some((ethernet.ethertype.get(), rest))
}

#[inline]
fn swap_five_tuple(frame: &mut [u8]) -> Option<()> {
    let (mut ethertype, mut rest) = swap_mac(frame)?;
    // As many tags as the parser accepts: one, or two of QinQ.
    for _ in 0..2 {
        if matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ) {
            let (tag, inner) = VlanTag::mut_from_prefix(rest).ok()?;
            (ethertype, rest) = (tag.ethertype.get(), inner);
        }
    }
    let (protocol, transport) = match ethertype {
        ETHERTYPE_IPV4 => swap_ipv4(rest)?,
        ETHERTYPE_IPV6 => swap_ipv6(rest)?,
        _ => return None,
    };
    if matches!(protocol, PROTOCOL_UDP | PROTOCOL_TCP) {
        let (src, rest) = transport.split_first_chunk_mut::<2>()?;
        std::mem::swap(src, rest.first_chunk_mut()?);
    }
    Some(())
}

/// Exchanges the addresses. Returns the protocol and the data behind the header, if that is the
/// beginning of the datagram and not a later fragment.
#[inline]
fn swap_ipv4(packet: &mut [u8]) -> Option<(u8, &mut [u8])> {
    let (ip, rest) = Ipv4Header::mut_from_prefix(packet).ok()?;
    let options = ip.header_len().checked_sub(size_of::<Ipv4Header>());
    // Another version, or a header length below the minimum: the fields are undefined.
    let options = options.filter(|_| ip.version_ihl >> 4 == 4)?;
    std::mem::swap(&mut ip.src, &mut ip.dst);
    let offset = ip.flags_offset.get() & 0x1fff;
    let transport = rest.get_mut(options..).filter(|_| offset == 0)?;
    Some((ip.protocol, transport))
}

/// Ports behind extension headers are not searched for.
#[inline]
fn swap_ipv6(packet: &mut [u8]) -> Option<(u8, &mut [u8])> {
    let (ip, rest) = Ipv6Header::mut_from_prefix(packet).ok()?;
    if ip.version_class_flow.get() >> 28 != 6 {
        return None;
    }
    std::mem::swap(&mut ip.src, &mut ip.dst);
    Some((ip.next_header, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use std::net::SocketAddrV4;

    use pollux_pmd::net::{
        MacAddr, ParseOptions, Parsed, UDP_HEADERS, UdpEndpoint, UdpTemplate, parse,
    };

    fn end(n: u8) -> UdpEndpoint {
        UdpEndpoint {
            mac: MacAddr([2, 0, 0, 0, 0, n]),
            socket: SocketAddrV4::new([10, 0, 0, n].into(), 1000 + u16::from(n)),
        }
    }

    fn frame(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = [&[0; UDP_HEADERS][..], payload].concat();
        UdpTemplate::new(end(from), end(to))
            .write(&mut frame, payload.len())
            .unwrap();
        frame
    }

    /// The frame with a tag of this EtherType in front of its own.
    fn tagged(frame: &[u8], ethertype: [u8; 2]) -> Vec<u8> {
        [&frame[..12], &ethertype, &[0, 7], &frame[12..]].concat()
    }

    #[test]
    fn a_swapped_frame_is_the_one_sent_the_other_way() {
        let (there, back) = (frame(1, 2, b"payload"), frame(2, 1, b"payload"));
        let tag = [0x81, 0];
        for (mut there, back) in [
            (there.clone(), back.clone()),
            (tagged(&there, tag), tagged(&back, tag)),
            (
                tagged(&tagged(&there, tag), [0x88, 0xa8]),
                tagged(&tagged(&back, tag), [0x88, 0xa8]),
            ),
        ] {
            swap_five_tuple(&mut there).unwrap();
            assert_eq!(there, back);
            let parsed = parse(&there, there.len(), &ParseOptions::default());
            assert!(matches!(parsed, Ok(Parsed::Udp(_))), "{parsed:?}");
        }
    }

    #[test]
    fn tcp_and_ipv6_are_swapped_too() {
        let mut tcp = frame(1, 2, &[7; 20]);
        tcp[23] = PROTOCOL_TCP;
        let before = tcp.clone();
        swap_five_tuple(&mut tcp).unwrap();
        assert_eq!(
            (&tcp[34..36], &tcp[36..38]),
            (&before[36..38], &before[34..36])
        );
        let ip = [
            &[0x60, 0, 0, 0, 0, 12, PROTOCOL_UDP, 64][..],
            &[1; 16],
            &[2; 16],
            &[0, 1, 0, 2, 0, 12, 0, 0, 9, 9, 9, 9],
        ];
        let mut v6 = [&before[..12], &[0x86, 0xdd], &ip.concat()].concat();
        swap_five_tuple(&mut v6).unwrap();
        assert_eq!(v6[22..54], [[2; 16], [1; 16]].concat());
        assert_eq!(v6[54..58], [0, 2, 0, 1]);
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let mut fragment = frame(1, 2, &[7; 20]);
        fragment[21] = 5;
        let before = fragment.clone();
        assert_eq!(swap_five_tuple(&mut fragment), None);
        assert_eq!(fragment[34..], before[34..]);
        assert_eq!(fragment[26..30], before[30..34]);
    }

    #[test]
    fn frames_cut_anywhere_are_survived_and_swapped_twice_are_the_same() {
        let whole = tagged(&frame(1, 2, b"x"), [0x81, 0]);
        for len in 0..whole.len() {
            let mut cut = whole[..len].to_vec();
            let _ = swap_five_tuple(&mut cut);
            let _ = swap_five_tuple(&mut cut);
            assert_eq!(cut, whole[..len]);
        }
    }
}
