//! ARP and ping responder, which keeps a port reachable without the kernel's network stack.

use std::net::Ipv4Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, IntoBytes};

use super::arp::arp_packet;
use super::headers::{
    ARP_REPLY, ARP_REQUEST, ArpPacket, ETHERTYPE_ARP, ETHERTYPE_IPV4, EthernetHeader,
    ICMP_ECHO_REPLY, ICMP_ECHO_REQUEST, IcmpEchoHeader, Ipv4Header, PROTOCOL_ICMP,
};
use super::parse::{ipv4_header, link_layer, view};
use super::{Checksum, MacAddr};

/// The shortest Ethernet frame, without its frame check sequence.
const MIN_FRAME: usize = 60;

/// Answers for one MAC and one IPv4 address.
///
/// A reply goes to one host, and is never longer than its request but for the padding of ARP to 60
/// bytes, so the responder amplifies nothing.
#[derive(Debug, Clone, Copy)]
pub struct Responder {
    mac: MacAddr,
    ip: Ipv4Addr,
}

impl Responder {
    /// A responder for the port with address `mac` and `ip`.
    #[must_use]
    pub const fn new(mac: MacAddr, ip: Ipv4Addr) -> Self {
        Self { mac, ip }
    }

    /// Writes the reply to `frame` into `out` and returns its length. VLAN tags are kept.
    ///
    /// `None` if no reply is due (other protocols, other addresses, malformed frames), or if `out`
    /// is too short.
    pub fn reply(&self, frame: &[u8], out: &mut [u8]) -> Option<usize> {
        let (ethertype, at) = link_layer(frame).ok()?;
        let ethernet: &EthernetHeader = view(frame, 0).ok()?;
        if !ethernet.src.is_unicast() || ethernet.src == self.mac {
            return None;
        }
        match ethertype {
            ETHERTYPE_ARP
                if matches!(ethernet.dst, MacAddr::BROADCAST) || ethernet.dst == self.mac =>
            {
                self.arp(frame, out)
            }
            // A broadcast ping is not answered (RFC 1122 section 3.2.2.6 permits that).
            ETHERTYPE_IPV4 if ethernet.dst == self.mac => self.echo(frame, at, out),
            _ => None,
        }
    }

    /// Writes an ARP request for `target` into `out` and returns its length.
    /// `None` where `out` is shorter than 60 bytes.
    pub fn request(&self, target: Ipv4Addr, out: &mut [u8]) -> Option<usize> {
        let link = EthernetHeader {
            dst: MacAddr::BROADCAST,
            src: self.mac,
            ethertype: U16::new(ETHERTYPE_ARP),
        };
        self.write_arp(
            link.as_bytes(),
            ARP_REQUEST,
            MacAddr::ZERO,
            target.octets(),
            out,
        )
    }

    /// RFC 826, "packet reception". A probe (sender address zero) is answered too: by the reply its
    /// sender learns that the address is in use (RFC 5227 section 2.1.1).
    fn arp(&self, frame: &[u8], out: &mut [u8]) -> Option<usize> {
        let (arp, at) = arp_packet(frame).ok()?;
        if arp.operation.get() != ARP_REQUEST
            || arp.target_ip != self.ip.octets()
            || !arp.sender_mac.is_unicast()
        {
            return None;
        }
        let mut link = [0; 22];
        let link = link.get_mut(..at)?;
        link.copy_from_slice(frame.get(..at)?);
        turn_back(link, arp.sender_mac, self.mac)?;
        self.write_arp(link, ARP_REPLY, arp.sender_mac, arp.sender_ip, out)
    }

    fn write_arp(
        &self,
        link: &[u8],
        operation: u16,
        target_mac: MacAddr,
        target_ip: [u8; 4],
        out: &mut [u8],
    ) -> Option<usize> {
        let arp = ArpPacket {
            hardware: U16::new(1),
            protocol: U16::new(ETHERTYPE_IPV4),
            hardware_len: 6,
            protocol_len: 4,
            operation: U16::new(operation),
            sender_mac: self.mac,
            sender_ip: self.ip.octets(),
            target_mac,
            target_ip,
        };
        let out = out.get_mut(..MIN_FRAME)?;
        let (head, body) = out.split_at_mut_checked(link.len())?;
        head.copy_from_slice(link);
        arp.write_to_prefix(body).ok()?;
        body.get_mut(size_of::<ArpPacket>()..)?.fill(0);
        Some(MIN_FRAME)
    }

    /// RFC 1122 section 3.2.2.6: the reply carries the full payload, and its source is the
    /// requested address. Requests with IP options are not answered: a source route would have to
    /// be reversed, and such pings do not occur in practice.
    fn echo(&self, frame: &[u8], at: usize, out: &mut [u8]) -> Option<usize> {
        let (ip, header_len) = ipv4_header(frame, at, frame.len(), true).ok()?;
        let src = Ipv4Addr::from(ip.src);
        if ip.protocol != PROTOCOL_ICMP
            || ip.dst != self.ip.octets()
            || header_len != size_of::<Ipv4Header>()
            || src.is_unspecified()
            || src.is_multicast()
            || src.is_broadcast()
        {
            return None;
        }
        let end = at + usize::from(ip.total_len.get());
        let message = frame.get(at + header_len..end)?;
        let request: &IcmpEchoHeader = view(message, 0).ok()?;
        let mut sum = Checksum::new();
        sum.add(message);
        if request.kind != ICMP_ECHO_REQUEST || request.code != 0 || !sum.is_valid() {
            return None;
        }

        let len = end.max(MIN_FRAME.min(frame.len()));
        let out = out.get_mut(..len)?;
        out.get_mut(..end)?.copy_from_slice(frame.get(..end)?);
        out.get_mut(end..)?.fill(0);
        let (link, datagram) = out.split_at_mut_checked(at)?;
        turn_back(link, view::<EthernetHeader>(frame, 0).ok()?.src, self.mac)?;

        let (reply, _) = Ipv4Header::mut_from_prefix(datagram).ok()?;
        (reply.src, reply.dst) = (ip.dst, ip.src);
        reply.ttl = 64;
        reply.checksum = U16::ZERO;
        let mut sum = Checksum::new();
        sum.add(reply.as_bytes());
        reply.checksum = U16::new(sum.finish());

        let message = datagram.get_mut(header_len..end - at)?;
        let (reply, _) = IcmpEchoHeader::mut_from_prefix(message).ok()?;
        reply.kind = ICMP_ECHO_REPLY;
        // Only the type changes, so the sum is that of the request corrected for it (RFC 1624
        // section 3). A type of 0 lowers the sum by the request's type, and raises its complement
        // as much.
        let (sum, carry) =
            (request.checksum.get()).overflowing_add(u16::from_be_bytes([ICMP_ECHO_REQUEST, 0]));
        reply.checksum = U16::new(sum + u16::from(carry));
        Some(len)
    }
}

/// Addresses a copied link header to `dst`.
fn turn_back(link: &mut [u8], dst: MacAddr, src: MacAddr) -> Option<()> {
    let (ethernet, _) = EthernetHeader::mut_from_prefix(link).ok()?;
    ethernet.dst = dst;
    ethernet.src = src;
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_pmd_testkit::frames::{
        DST_IP, DST_MAC, Frame, SRC_IP, SRC_MAC, ethernet, naive_checksum,
    };
    use proptest::prelude::*;

    /// A responder for the destination of the test frames.
    const OWN: Responder = Responder::new(
        MacAddr(DST_MAC),
        Ipv4Addr::new(DST_IP[0], DST_IP[1], DST_IP[2], DST_IP[3]),
    );

    fn arp(tags: &[(u16, u16)], operation: u8, sender_ip: [u8; 4], target_ip: [u8; 4]) -> Vec<u8> {
        let mut body = vec![0, 1, 8, 0, 6, 4, 0, operation];
        body.extend(SRC_MAC);
        body.extend(sender_ip);
        body.extend([0; 6]);
        body.extend(target_ip);
        let mut frame = ethernet(tags, 0x0806, &body);
        frame[..6].fill(0xff);
        frame
    }

    fn echo(payload: &[u8]) -> Frame {
        let mut message = vec![8, 0, 0, 0, 0x12, 0x34, 0, 7];
        message.extend(payload);
        let sum = naive_checksum(&message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        Frame::ip(1, message)
    }

    fn reply(frame: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0xcc; 2048];
        let len = OWN.reply(frame, &mut out)?;
        assert!(out[len..].iter().all(|&byte| byte == 0xcc));
        out.truncate(len);
        Some(out)
    }

    #[test]
    fn arp_request_is_answered() {
        for tags in [&[][..], &[(0x8100, 0x2005)], &[(0x88a8, 5), (0x8100, 6)]] {
            let out = reply(&arp(tags, 1, SRC_IP, DST_IP)).unwrap();
            assert_eq!(out.len(), 60);
            let mut body = vec![0, 1, 8, 0, 6, 4, 0, 2];
            body.extend(DST_MAC);
            body.extend(DST_IP);
            body.extend(SRC_MAC);
            body.extend(SRC_IP);
            let mut expected = ethernet(tags, 0x0806, &body);
            expected[..6].copy_from_slice(&SRC_MAC);
            expected[6..12].copy_from_slice(&DST_MAC);
            expected.resize(60, 0);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn arp_probe_is_answered_and_others_are_not() {
        let out = reply(&arp(&[], 1, [0; 4], DST_IP)).unwrap();
        assert_eq!(out[38..42], [0; 4]);
        assert_eq!(
            reply(&arp(&[], 1, SRC_IP, SRC_IP)),
            None,
            "announcement of another"
        );
        assert_eq!(reply(&arp(&[], 2, SRC_IP, DST_IP)), None, "reply");
        let mut own = arp(&[], 1, DST_IP, DST_IP);
        own[6..12].copy_from_slice(&DST_MAC);
        assert_eq!(reply(&own), None, "our own frame, come back");
        let mut token_ring = arp(&[], 1, SRC_IP, DST_IP);
        token_ring[15] = 6;
        assert_eq!(reply(&token_ring), None);
        let mut to_all = arp(&[], 1, SRC_IP, DST_IP);
        to_all[22] = 0xff;
        assert_eq!(reply(&to_all), None, "the reply would be a broadcast");
    }

    #[test]
    fn the_request_is_answered_by_its_target() {
        let own = Ipv4Addr::from(SRC_IP);
        let mut frame = [0xff; 64];
        let len = Responder::new(MacAddr(SRC_MAC), own)
            .request(DST_IP.into(), &mut frame)
            .unwrap();
        let mut expected = arp(&[], 1, SRC_IP, DST_IP);
        expected.resize(60, 0);
        assert_eq!(frame[..len], expected);
        assert_eq!(reply(&frame[..len]).unwrap()[28..32], DST_IP);
        assert_eq!(OWN.request(own, &mut [0; 59]), None);
    }

    #[test]
    fn echo_is_answered() {
        for tags in [vec![], vec![(0x8100, 0x2005)]] {
            for len in [0, 1, 18, 19, 1000] {
                let mut request = echo(&vec![0xa5; len]);
                request.tags.clone_from(&tags);
                request.padding = 18usize.saturating_sub(len);
                let bytes = request.bytes();
                let out = reply(&bytes).unwrap();
                let at = 14 + 4 * tags.len();
                assert_eq!(out.len(), (at + 28 + len).max(60));
                assert_eq!(out[..6], SRC_MAC);
                assert_eq!(out[6..12], DST_MAC);
                assert_eq!(out[12..at], bytes[12..at], "tags and type");
                assert_eq!(naive_checksum(&out[at..at + 20]), 0);
                assert_eq!(out[at + 12..at + 16], DST_IP);
                assert_eq!(out[at + 16..at + 20], SRC_IP);
                let message = &out[at + 20..at + 28 + len];
                assert_eq!(naive_checksum(message), 0);
                assert_eq!(message[..2], [0, 0]);
                assert_eq!(message[4..], bytes[at + 24..at + 28 + len]);
                assert!(
                    out[at + 28 + len..].iter().all(|&byte| byte == 0),
                    "padding"
                );
            }
        }
    }

    #[test]
    fn echo_that_is_not_answered() {
        let good = echo(b"ping");
        assert!(reply(&good.bytes()).is_some());
        let silent = |what: &str, change: &dyn Fn(&mut Frame)| {
            let mut frame = good.clone();
            change(&mut frame);
            assert_eq!(reply(&frame.bytes()), None, "{what}");
        };
        silent("to another", &|frame| frame.dst = [10, 0, 0, 3]);
        silent("to all", &|frame| frame.dst = [255; 4]);
        silent("from the unspecified address", &|frame| frame.src = [0; 4]);
        silent("from all", &|frame| frame.src = [255; 4]);
        silent("from a group", &|frame| frame.src = [224, 0, 0, 1]);
        silent("fragment", &|frame| frame.flags_offset = 0x2000);
        silent("options", &|frame| frame.options = vec![1; 4]);
        silent("bad checksum", &|frame| frame.body[9] ^= 1);
        silent("reply", &|frame| {
            frame.body[..4].fill(0);
            let sum = naive_checksum(&frame.body).to_be_bytes();
            frame.body[2..4].copy_from_slice(&sum);
        });
        silent("no ICMP header", &|frame| frame.body.truncate(7));
        silent("UDP", &|frame| frame.protocol = 17);
        let mut broadcast = good.bytes();
        broadcast[..6].fill(0xff);
        assert_eq!(reply(&broadcast), None);
        let mut from_group = good.bytes();
        from_group[6] |= 1;
        assert_eq!(reply(&from_group), None);
    }

    #[test]
    fn a_short_output_gives_no_reply() {
        for frame in [echo(&[1; 100]).bytes(), arp(&[], 1, SRC_IP, DST_IP)] {
            let full = reply(&frame).unwrap().len();
            for len in 0..full {
                assert_eq!(OWN.reply(&frame, &mut vec![0; len]), None);
            }
        }
    }

    #[test]
    fn truncated_requests_are_ignored() {
        for frame in [
            echo(&[1; 10]).bytes(),
            arp(&[(0x8100, 1)], 1, SRC_IP, DST_IP),
        ] {
            for len in 0..frame.len() {
                assert_eq!(reply(&frame[..len]), None, "{len}");
            }
        }
    }

    proptest! {
        #[test]
        fn damaged_requests_never_amplify(
            payload in proptest::collection::vec(any::<u8>(), 0..80),
            ask_arp: bool,
            damage in proptest::collection::vec((0usize..60, any::<u8>()), 0..3),
        ) {
            let mut frame = if ask_arp { arp(&[], 1, SRC_IP, DST_IP) } else { echo(&payload).bytes() };
            for (at, value) in damage {
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            if let Some(out) = reply(&frame) {
                prop_assert!(out.len() <= frame.len().max(60));
                prop_assert_eq!(out[0] & 1, 0, "to one station");
            }
        }
    }
}
