//! Packets out: frames with their headers and ICRC, collected to bursts.

use std::net::{Ipv4Addr, SocketAddrV4};

use pollux_mempool::{Burst, PoolCache};
use pollux_pmd::endpoint::PortEndpoint;
use pollux_pmd::net::roce::{Bth, ICRC_LEN, UDP_PORT, icrc};
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpChecksum, UdpEndpoint, UdpTemplate};
use zerocopy::IntoBytes;

use super::counts::Counts;

/// Bytes of the Ethernet header: the ICRC begins behind it.
const ETHERNET: usize = 14;
/// ECT(0), with which a bottleneck may mark packets instead of dropping them (RFC 3168).
const ECN_CAPABLE: u8 = 0b10;
/// Bytes of a frame beside the payload: the longest headers, padding and ICRC.
pub(super) const OVERHEAD: usize = UDP_HEADERS + size_of::<Bth>() + 28 + 3 + ICRC_LEN;

/// Headers of packets to a peer. The source port tells its connections apart for the hashes of switches
/// (annex A17.3.1).
pub(super) fn headers_to(
    host: &PortEndpoint,
    ip: Ipv4Addr,
    peer: (MacAddr, Ipv4Addr),
    qp: u32,
) -> UdpTemplate {
    let source = UdpEndpoint {
        mac: host.mac(),
        socket: SocketAddrV4::new(ip, 0xc000 | (qp ^ qp >> 10) as u16 & 0x3fff),
    };
    let destination = UdpEndpoint {
        mac: peer.0,
        socket: SocketAddrV4::new(peer.1, UDP_PORT),
    };
    UdpTemplate::new(source, destination)
        .with_checksum(UdpChecksum::Absent)
        .with_service(ECN_CAPABLE)
}

/// The sending side of the endpoint.
pub(super) struct Output {
    pub(super) host: PortEndpoint,
    pub(super) cache: PoolCache,
    pub(super) counts: Counts,
    /// Bytes of all frames so far.
    pub(super) bytes: u64,
    burst: Burst<32>,
}

impl Output {
    pub(super) fn new(host: PortEndpoint, cache: PoolCache, counts: Counts) -> Self {
        Self {
            host,
            cache,
            counts,
            bytes: 0,
            burst: Burst::new(),
        }
    }

    /// Whether a packet can be sent now.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        if self.burst.is_full() {
            self.flush();
        }
        !self.burst.is_full()
    }

    /// Sends a packet with `extended` headers and `len` bytes of payload, which `fill` writes. Returns
    /// false if there is no buffer, no room in the transmit queue, or if `fill` has no data.
    #[inline]
    pub(super) fn send(
        &mut self,
        headers: &UdpTemplate,
        bth: Bth,
        extended: &[&[u8]],
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(mut mbuf) = self.cache.alloc() else {
            return false;
        };
        let pad = len.wrapping_neg() & 3;
        let extended_len: usize = extended.iter().map(|header| header.len()).sum();
        let datagram = size_of::<Bth>() + extended_len + len + pad + ICRC_LEN;
        let is_written = mbuf
            .append(UDP_HEADERS + datagram)
            .is_some_and(|frame| write(frame, headers, bth.with_pad(pad), extended, len, fill));
        if !is_written {
            self.cache.free(mbuf);
            return false;
        }
        self.bytes = self.bytes.wrapping_add(mbuf.data().len() as u64);
        // The burst has room.
        drop(self.burst.push(mbuf));
        self.counts.sent();
        true
    }

    /// Passes the collected frames to the port; what it does not take stays.
    #[inline]
    pub(super) fn flush(&mut self) {
        if self.burst.is_empty() {
            return;
        }
        if let Some(tx) = self.host.tx() {
            tx.tx(&mut self.cache, &mut self.burst);
        }
    }

    /// Frees the frames that the port has not taken, at the end.
    pub(super) fn abandon(&mut self) {
        self.cache.free_burst(&mut self.burst);
    }
}

/// Writes a frame from its first byte to its ICRC.
#[inline]
fn write(
    frame: &mut [u8],
    headers: &UdpTemplate,
    bth: Bth,
    extended: &[&[u8]],
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> bool,
) -> bool {
    let datagram = frame.len() - UDP_HEADERS;
    if headers.write(frame, datagram).is_none() {
        return false;
    }
    let mut rest = &mut frame[UDP_HEADERS..];
    for header in std::iter::once(bth.as_bytes()).chain(extended.iter().copied()) {
        let Some((to, behind)) = rest.split_at_mut_checked(header.len()) else {
            return false;
        };
        to.copy_from_slice(header);
        rest = behind;
    }
    let Some((payload, behind)) = rest.split_at_mut_checked(len) else {
        return false;
    };
    behind.fill(0);
    fill(payload) && icrc::write(&mut frame[ETHERNET..])
}
