//! Link types: conversion of captured frames to Ethernet.
//!
//! Captures from a loopback or tunnel device, or from `tcpdump -i any`, have no Ethernet header.
//! One is built from the fields of their own header, so that one parser handles all captures.

use crate::ledger::Cause;

/// Link type of a capture, by its LINKTYPE_ number (draft-ietf-opsawg-pcaplinktype).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    /// BSD loopback: a 4-byte address family in either byte order.
    Null,
    /// A bare IPv4 or IPv6 datagram.
    RawIp,
    /// `tcpdump -i any` on Linux, version 1.
    LinuxCooked,
    /// `tcpdump -i any` on Linux, version 2.
    LinuxCooked2,
    Other(u16),
}

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];

impl Link {
    /// Supported link types, for messages.
    pub(super) const KNOWN: &'static str =
        "Ethernet (1), BSD loopback (0, 108), raw IP (101, 228, 229), Linux cooked (113, 276)";

    pub(super) fn from_linktype(linktype: u16) -> Self {
        match linktype {
            1 => Self::Ethernet,
            0 | 108 => Self::Null,
            // 12 and 14 are the BSDs' own numbers for raw IP, which occur in files too.
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            113 => Self::LinuxCooked,
            276 => Self::LinuxCooked2,
            other => Self::Other(other),
        }
    }

    /// The captured bytes as an Ethernet frame, built in `scratch` if necessary.
    ///
    /// # Errors
    /// The cause for which the frame is dropped.
    pub(super) fn to_ethernet<'a>(
        self,
        data: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Cause> {
        let (header, source, ethertype): (usize, Option<&[u8]>, [u8; 2]) = match self {
            Self::Ethernet => return Ok(data),
            Self::Other(_) => return Err(Cause::Unsupported),
            Self::RawIp => (0, None, ip_version(data)?),
            Self::Null => {
                // The address family is that of the capturing host; the values for IPv6 differ.
                let ethertype = match data.first_chunk().ok_or(Cause::Malformed)? {
                    [2, 0, 0, 0] | [0, 0, 0, 2] => IPV4,
                    [24 | 28 | 30, 0, 0, 0] | [0, 0, 0, 24 | 28 | 30] => IPV6,
                    _ => return Err(Cause::Unsupported),
                };
                (4, None, ethertype)
            }
            // packet type, ARPHRD type, address length, address (8 bytes), protocol
            Self::LinuxCooked => {
                let header: &[u8; 16] = data.first_chunk().ok_or(Cause::Malformed)?;
                let source = (header[4..6] == [0, 6]).then_some(&header[6..12]);
                (16, source, [header[14], header[15]])
            }
            // protocol, zero (2), interface (4), ARPHRD type (2), packet type, address length,
            // address (8 bytes)
            Self::LinuxCooked2 => {
                let header: &[u8; 20] = data.first_chunk().ok_or(Cause::Malformed)?;
                let source = (header[11] == 6).then_some(&header[12..18]);
                (20, source, [header[0], header[1]])
            }
        };
        let payload = data.get(header..).unwrap_or_default();
        scratch.clear();
        scratch.extend([0; 6]); // the receiver's address was not captured
        scratch.extend(source.unwrap_or(&[0; 6]));
        scratch.extend(ethertype);
        scratch.extend_from_slice(payload);
        Ok(scratch)
    }
}

fn ip_version(data: &[u8]) -> Result<[u8; 2], Cause> {
    match data.first().map(|byte| byte >> 4) {
        Some(4) => Ok(IPV4),
        Some(6) => Ok(IPV6),
        _ => Err(Cause::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(linktype: u16, data: &[u8]) -> Result<Vec<u8>, Cause> {
        let mut scratch = Vec::new();
        Link::from_linktype(linktype)
            .to_ethernet(data, &mut scratch)
            .map(<[u8]>::to_vec)
    }

    #[test]
    fn other_link_types_become_ethernet() {
        let ip = [0x45, 1, 2, 3];
        let frame = |source: [u8; 6]| [&[0; 6][..], &source, &[8, 0], &ip].concat();
        let cooked = [&[0, 0, 0, 1, 0, 6, 2, 3, 4, 5, 6, 7, 0, 0, 8, 0][..], &ip].concat();
        let cooked2 = [
            &[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 3, 4, 5, 6, 7, 0, 0][..],
            &ip,
        ]
        .concat();
        assert_eq!(ethernet(1, &[9; 20]), Ok(vec![9; 20]));
        assert_eq!(ethernet(101, &ip), Ok(frame([0; 6])));
        assert_eq!(
            ethernet(0, &[&[2, 0, 0, 0][..], &ip].concat()),
            Ok(frame([0; 6]))
        );
        assert_eq!(
            ethernet(108, &[&[0, 0, 0, 2][..], &ip].concat()),
            Ok(frame([0; 6]))
        );
        assert_eq!(ethernet(113, &cooked), Ok(frame([2, 3, 4, 5, 6, 7])));
        assert_eq!(ethernet(276, &cooked2), Ok(frame([2, 3, 4, 5, 6, 7])));
    }

    #[test]
    fn what_has_no_meaning_is_dropped_for_a_cause() {
        assert_eq!(
            ethernet(105, &[0; 60]),
            Err(Cause::Unsupported),
            "IEEE 802.11"
        );
        for linktype in [0, 101, 113, 276] {
            assert_eq!(ethernet(linktype, &[]), Err(Cause::Malformed), "{linktype}");
        }
        assert_eq!(ethernet(101, &[0x55; 20]), Err(Cause::Malformed));
        assert_eq!(ethernet(0, &[7, 0, 0, 0]), Err(Cause::Unsupported));
    }
}
