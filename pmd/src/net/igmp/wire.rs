//! IGMP messages as frames: parses queries and other hosts' reports, builds reports and leaves.

use std::net::Ipv4Addr;

use pollux_mempool::time::Ns;
use zerocopy::IntoBytes;
use zerocopy::network_endian::U16;

use super::{ALL_SYSTEMS, IgmpVersion, MAX_GROUPS};
use crate::net::headers::{ETHERTYPE_IPV4, EthernetHeader, Ipv4Header, PROTOCOL_IGMP};
use crate::net::parse::{ipv4_header, link_layer, view};
use crate::net::{Checksum, MacAddr, Reject};

/// Destination of reports of version 3.
const V3_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// Destination of leaves of version 2.
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);

/// Types of messages (RFC 3376 section 4).
const QUERY: u8 = 0x11;
const V1_REPORT: u8 = 0x12;
const V2_REPORT: u8 = 0x16;
const V2_LEAVE: u8 = 0x17;
const V3_REPORT: u8 = 0x22;

/// The IP option Router Alert (RFC 2113): routers examine the packet, whatever its destination.
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];
/// Precedence "internetwork control" (RFC 3376 section 4).
const SERVICE: u8 = 0xc0;

const IP: usize = size_of::<EthernetHeader>();
const OPTION: usize = IP + size_of::<Ipv4Header>();
const BODY: usize = OPTION + ROUTER_ALERT.len();
const V3_HEADER: usize = 8;
const RECORD: usize = 8;

/// The shortest Ethernet frame, without its frame check sequence.
const MIN_FRAME: usize = 60;

/// The longest frame that is built.
const MAX_FRAME: usize = BODY + V3_HEADER + RECORD * MAX_GROUPS;

/// Longest delay of a version 1 host's answer (RFC 3376 section 7.2.1).
const V1_MAX_RESPONSE: Ns = tenths(100);

/// A received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    Query(Query),
    /// A report of version 1 or 2, about this group.
    Report(Ipv4Addr),
    /// For routers, or of an unknown type: no meaning for a host.
    Other,
}

/// A query of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) version: IgmpVersion,
    /// The queried group; `None` for all.
    pub(super) group: Option<Ipv4Addr>,
    /// Latest time of the answer.
    pub(super) max_response: Ns,
    /// Of version 3, where present: number of reports of a change.
    pub(super) robustness: Option<u8>,
    /// Of version 3, where present: the time between two queries.
    pub(super) interval: Option<Ns>,
}

const fn tenths(n: u64) -> Ns {
    Ns(n * 100_000_000)
}

/// Decodes an eight-bit time code of version 3: above 127 it has a mantissa of four bits and an
/// exponent of three (RFC 3376 sections 4.1.1 and 4.1.7).
const fn number(code: u8) -> u64 {
    match code {
        0..=127 => code as u64,
        _ => ((code & 0x0f) as u64 | 0x10) << (((code >> 4) & 7) + 3),
    }
}

/// Parses a frame that the host `own` received.
///
/// # Errors
/// [`Reject::NotForUs`]: not IGMP, in a VLAN, for another host, or from the host itself.
/// [`Reject::Malformed`]: a message that is truncated, or was forwarded by a router, which is
/// forbidden. [`Reject::BadChecksum`], and the errors of [`parse`](crate::net::parse) for IPv4.
pub(super) fn read(frame: &[u8], own: HostAddress) -> Result<Message, Reject> {
    let (ethertype, at) = link_layer(frame)?;
    let ethernet: &EthernetHeader = view(frame, 0)?;
    // A VLAN is another network, in which this host has no membership.
    if ethertype != ETHERTYPE_IPV4 || at != IP || ethernet.src == own.mac {
        return Err(Reject::NotForUs);
    }
    if view::<Ipv4Header>(frame, at)?.protocol != PROTOCOL_IGMP {
        return Err(Reject::NotForUs);
    }
    let (ip, header_len) = ipv4_header(frame, at, frame.len(), true)?;
    let body = at + header_len..at + usize::from(ip.total_len.get());
    let body = frame.get(body).ok_or(Reject::Malformed)?;
    let Some(&[kind, code, _, _, a, b, c, d]) = body.first_chunk() else {
        return Err(Reject::Malformed);
    };
    if ip.ttl != 1 {
        return Err(Reject::Malformed);
    }
    let mut sum = Checksum::new();
    sum.add(body);
    if !sum.is_valid() {
        return Err(Reject::BadChecksum);
    }
    let group = Ipv4Addr::new(a, b, c, d);
    match kind {
        QUERY => {
            let query = query(code, group, body)?;
            query.is_for(ip.dst.into(), own.ip)?;
            Ok(Message::Query(query))
        }
        V1_REPORT | V2_REPORT if group.is_multicast() => Ok(Message::Report(group)),
        V1_REPORT | V2_REPORT => Err(Reject::Malformed),
        _ => Ok(Message::Other),
    }
}

/// The length determines the version (RFC 3376 section 7.1).
///
/// The option Router Alert is not required: RFC 3376 section 9.1 makes a host ignore a query
/// without it, but some switches send such queries, and would cut off a host that does not answer.
fn query(code: u8, group: Ipv4Addr, body: &[u8]) -> Result<Query, Reject> {
    let (version, max_response) = match (body.len(), code) {
        // Its group field has no meaning (RFC 1112 appendix I).
        (8, 0) => {
            return Ok(Query {
                version: IgmpVersion::V1,
                group: None,
                max_response: V1_MAX_RESPONSE,
                robustness: None,
                interval: None,
            });
        }
        (8, _) => (IgmpVersion::V2, tenths(code.into())),
        (..12, _) => return Err(Reject::Malformed),
        _ => (IgmpVersion::V3, tenths(number(code))),
    };
    let (mut robustness, mut interval) = (None, None);
    if let Some(&[flags, seconds, high, low]) = body.get(8..12).and_then(<[u8]>::first_chunk) {
        let sources = usize::from(u16::from_be_bytes([high, low]));
        if body.len() < 12 + 4 * sources {
            return Err(Reject::Malformed);
        }
        robustness = Some(flags & 7).filter(|&times| times != 0);
        interval = Some(tenths(10 * number(seconds))).filter(|&time| time != Ns(0));
    }
    let group = Some(group).filter(|group| !group.is_unspecified());
    if group.is_some_and(|group| !group.is_multicast()) {
        return Err(Reject::Malformed);
    }
    Ok(Query {
        version,
        group,
        max_response,
        robustness,
        interval,
    })
}

impl Query {
    /// A general query goes to all hosts, a group's query to its members; either may go to one host
    /// (RFC 3376 sections 4.1.12 and 9.1).
    fn is_for(&self, dst: Ipv4Addr, own: Ipv4Addr) -> Result<(), Reject> {
        if dst == ALL_SYSTEMS || dst == own || self.group == Some(dst) {
            Ok(())
        } else {
            Err(Reject::NotForUs)
        }
    }
}

/// The sender of reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostAddress {
    pub(super) mac: MacAddr,
    pub(super) ip: Ipv4Addr,
}

/// Record type in a report of version 3 (RFC 3376 section 4.2.12), always for all sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// `MODE_IS_EXCLUDE`: it is joined.
    Joined = 2,
    /// `CHANGE_TO_INCLUDE_MODE`: it has been left.
    Leave = 3,
    /// `CHANGE_TO_EXCLUDE_MODE`: it has been joined.
    Join = 4,
}

/// A frame under construction.
pub(super) struct Frame {
    bytes: [u8; MAX_FRAME],
    len: usize,
}

impl Frame {
    /// A report of version 3. `None` without records; at most [`MAX_GROUPS`] records.
    pub(super) fn v3(
        from: HostAddress,
        records: impl Iterator<Item = (Record, Ipv4Addr)>,
    ) -> Option<Self> {
        let mut bytes = [0; MAX_FRAME];
        let mut count = 0;
        let rooms = bytes[BODY + V3_HEADER..].chunks_exact_mut(RECORD);
        for (room, (record, group)) in rooms.zip(records) {
            // Type, no auxiliary data, no sources, group.
            room[0] = record as u8;
            room[4..].copy_from_slice(&group.octets());
            count += 1;
        }
        bytes[BODY] = V3_REPORT;
        bytes[BODY + 6..BODY + 8].copy_from_slice(&(count as u16).to_be_bytes());
        let body = V3_HEADER + RECORD * count;
        (count > 0).then(|| Self::finish(from, V3_ROUTERS, bytes, body))
    }

    /// A report of version 1 or 2, sent to the group that it reports.
    pub(super) fn report(from: HostAddress, version: IgmpVersion, group: Ipv4Addr) -> Self {
        let kind = match version {
            IgmpVersion::V1 => V1_REPORT,
            IgmpVersion::V2 | IgmpVersion::V3 => V2_REPORT,
        };
        Self::short(from, kind, group, group)
    }

    /// A leave of version 2.
    pub(super) fn leave(from: HostAddress, group: Ipv4Addr) -> Self {
        Self::short(from, V2_LEAVE, ALL_ROUTERS, group)
    }

    fn short(from: HostAddress, kind: u8, to: Ipv4Addr, group: Ipv4Addr) -> Self {
        let mut bytes = [0; MAX_FRAME];
        bytes[BODY] = kind;
        bytes[BODY + 4..BODY + 8].copy_from_slice(&group.octets());
        Self::finish(from, to, bytes, 8)
    }

    /// Fills in the headers in front of a message of `body_len` bytes, and the checksums.
    fn finish(
        from: HostAddress,
        to: Ipv4Addr,
        mut bytes: [u8; MAX_FRAME],
        body_len: usize,
    ) -> Self {
        let link = EthernetHeader {
            dst: MacAddr::of_group(to),
            src: from.mac,
            ethertype: U16::new(ETHERTYPE_IPV4),
        };
        bytes[..IP].copy_from_slice(link.as_bytes());

        let mut ip = Ipv4Header {
            version_ihl: 0x46,
            service: SERVICE,
            total_len: U16::new((BODY - IP + body_len) as u16),
            // Never fragmented, so the identification has no meaning (RFC 6864 section 4.1).
            id: U16::ZERO,
            flags_offset: U16::new(0x4000),
            ttl: 1,
            protocol: PROTOCOL_IGMP,
            checksum: U16::ZERO,
            src: from.ip.octets(),
            dst: to.octets(),
        };
        let mut sum = Checksum::new();
        sum.add(ip.as_bytes());
        sum.add(&ROUTER_ALERT);
        ip.checksum = U16::new(sum.finish());
        bytes[IP..OPTION].copy_from_slice(ip.as_bytes());
        bytes[OPTION..BODY].copy_from_slice(&ROUTER_ALERT);

        let end = BODY + body_len;
        let mut sum = Checksum::new();
        sum.add(&bytes[BODY..end]);
        bytes[BODY + 2..BODY + 4].copy_from_slice(&sum.finish().to_be_bytes());
        Self {
            bytes,
            len: end.max(MIN_FRAME),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
