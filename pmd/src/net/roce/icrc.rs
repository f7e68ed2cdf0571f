//! Invariant CRC (annex A17.3.3): the CRC32 of Ethernet over the parts of a packet that no router changes.
//!
//! It covers eight bytes of ones in place of a link header, then the datagram from its IPv4 header to the
//! padding. Fields that change on the way are taken as ones: type of service, time to live, both checksums,
//! and the byte of the BTH with the congestion bits. The result is sent with its low byte first.

use crc32fast::Hasher;

use super::ICRC_LEN;

/// Bytes of ones in front.
const FRONT: usize = 8;
/// IPv4 header without options.
const IP: usize = 20;
/// UDP header and BTH.
const UDP_BTH: usize = 8 + 12;
/// Longest IPv4 header.
const MAX_IP: usize = 60;

/// ICRC of a datagram that begins with its IPv4 header and ends with the padding, in front of the ICRC;
/// `None` if it is too short for its headers.
#[must_use]
#[inline]
pub fn compute(datagram: &[u8]) -> Option<u32> {
    if datagram.first()? & 0x0f == 5 {
        return with_headers::<{ FRONT + IP + UDP_BTH }>(datagram, IP);
    }
    // Options: rare.
    let ip = usize::from(datagram.first()? & 0x0f) * 4;
    if !(IP..=MAX_IP).contains(&ip) {
        return None;
    }
    with_headers::<{ FRONT + MAX_IP + UDP_BTH }>(datagram, ip)
}

/// With an IPv4 header of `ip` bytes; `N` is room for the masked headers.
#[inline]
fn with_headers<const N: usize>(datagram: &[u8], ip: usize) -> Option<u32> {
    let (headers, rest) = datagram.split_at_checked(ip + UDP_BTH)?;
    let mut masked = [0xff; N];
    let masked = masked.get_mut(..FRONT + ip + UDP_BTH)?;
    masked.get_mut(FRONT..)?.copy_from_slice(headers);
    let (ip_header, udp_bth) = masked.get_mut(FRONT..)?.split_at_mut_checked(ip)?;
    let ip_header = ip_header.first_chunk_mut::<IP>()?;
    ip_header[1] = 0xff;
    ip_header[8] = 0xff;
    ip_header[10..12].fill(0xff);
    let udp_bth = udp_bth.first_chunk_mut::<UDP_BTH>()?;
    udp_bth[6..8].fill(0xff);
    udp_bth[8 + 4] = 0xff;
    let mut hasher = Hasher::new();
    hasher.update(masked);
    hasher.update(rest);
    Some(hasher.finalize())
}

/// Whether a datagram that begins with its IPv4 header and ends with its ICRC has the right one.
#[must_use]
#[inline]
pub fn is_valid(datagram: &[u8]) -> bool {
    datagram
        .split_last_chunk::<ICRC_LEN>()
        .is_some_and(|(covered, icrc)| compute(covered) == Some(u32::from_le_bytes(*icrc)))
}

/// Writes the ICRC to the last four bytes of a datagram that begins with its IPv4 header; false if it is
/// too short for its headers.
#[must_use]
#[inline]
pub fn write(datagram: &mut [u8]) -> bool {
    let Some((covered, icrc)) = datagram.split_last_chunk_mut::<ICRC_LEN>() else {
        return false;
    };
    let computed = compute(covered);
    if let Some(computed) = computed {
        *icrc = computed.to_le_bytes();
    }
    computed.is_some()
}
