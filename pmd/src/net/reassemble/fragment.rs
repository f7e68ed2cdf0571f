//! IPv4 fragment headers.

use pollux_mempool::Mbuf;

use crate::ledger::Cause;
use crate::net::headers::{ETHERTYPE_IPV4, Ipv4Header, PROTOCOL_UDP};
use crate::net::parse::{any_ipv4_header, link_layer};

/// Identifies the datagram of a fragment (RFC 791 section 2.3): addresses and identification. The
/// protocol, the fourth part of the key, is UDP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Key {
    src: [u8; 4],
    dst: [u8; 4],
    id: u16,
}

/// A fragment of a UDP datagram over IPv4. It has a payload, of whole units of 8 bytes unless it is
/// the last fragment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fragment {
    pub(super) key: Key,
    /// Offset in the frame of the fragment's payload, behind the IP header.
    pub(super) at: usize,
    /// Bytes of the IP header.
    pub(super) header_len: usize,
    /// Its range in the datagram's payload, the UDP header included: start ...
    pub(super) start: usize,
    /// ... and end, exclusive.
    pub(super) end: usize,
    /// Whether it is the last fragment.
    pub(super) last: bool,
}

impl Fragment {
    /// Parses the headers of a frame whose checksum was verified.
    pub(super) fn of(mbuf: &Mbuf) -> Result<Self, Cause> {
        let frame = mbuf.data();
        let (ethertype, ip_at) = link_layer(frame)?;
        if ethertype != ETHERTYPE_IPV4 {
            return Err(Cause::IpFragment);
        }
        let (ip, header_len) = any_ipv4_header(frame, ip_at, mbuf.total_len(), false)?;
        if ip.protocol != PROTOCOL_UDP {
            return Err(Cause::IpFragment);
        }
        let len = usize::from(ip.total_len.get()) - header_len;
        let last = !ip.more_fragments();
        if len == 0 || !last && !len.is_multiple_of(8) {
            return Err(Cause::Malformed);
        }
        let start = ip.fragment_offset();
        Ok(Self {
            key: Key::of(ip),
            at: ip_at + header_len,
            header_len,
            start,
            end: start + len,
            last,
        })
    }
}

impl Key {
    fn of(ip: &Ipv4Header) -> Self {
        Self {
            src: ip.src,
            dst: ip.dst,
            id: ip.id.get(),
        }
    }
}
