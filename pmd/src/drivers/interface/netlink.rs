//! Interface attributes by one rtnetlink(7) request.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Bytes of an `nlmsghdr` and of the `ifinfomsg` behind it.
const HEADER: usize = 16;
const MESSAGE: usize = 16;

/// linux/if_link.h
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_TUN_NUM_QUEUES: u16 = 8;
const IFLA_TUN_NUM_DISABLED_QUEUES: u16 = 9;
const IFLA_STATS64: u16 = 23;
const IFLA_CARRIER_CHANGES: u16 = 35;

/// linux/netlink.h: the type of an attribute without its flags.
const NLA_TYPE_MASK: u16 = 0x3fff;

/// The fields of `rtnl_link_stats64` (linux/if_link.h), which grows at its end. Their meaning:
/// the kernel's Documentation/networking/statistics.rst.
const COUNTERS: [&str; 25] = [
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "multicast",
    "collisions",
    "rx_length_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
    "rx_missed_errors",
    "tx_aborted_errors",
    "tx_carrier_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_window_errors",
    "rx_compressed",
    "tx_compressed",
    "rx_nohandler",
    "rx_otherhost_dropped",
];

/// A socket to the kernel's routing code; it needs no privilege. One thread at a time sends a
/// request.
pub(super) struct Netlink(OwnedFd);

/// Content of the answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Number of changes of the carrier.
    pub(super) carrier_changes: u64,
    pub(super) counters: Vec<(&'static str, u64)>,
    /// Of a tap with several queues: files that are attached to it, of all programs.
    pub(super) tap_queues: Option<u32>,
}

impl Netlink {
    pub(super) fn new() -> io::Result<Self> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        // NETLINK_ROUTE is protocol 0.
        Ok(Self(socket_with(family, SocketType::RAW, flags, None)?))
    }

    /// Requests the attributes of the interface of that number; `None` if it does not exist (any
    /// more).
    pub(super) fn report(&self, index: i32) -> Option<Report> {
        let mut request = [0; HEADER + MESSAGE];
        request[..4].copy_from_slice(&((HEADER + MESSAGE) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
        request[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        request[HEADER + 4..HEADER + 8].copy_from_slice(&index.to_ne_bytes());
        send(&self.0, &request, SendFlags::empty()).ok()?;
        let mut answer = vec![0; 32 << 10];
        // The answer is available when the request has been sent: netlink handles it synchronously.
        let (len, _) = recv(&self.0, &mut answer[..], RecvFlags::DONTWAIT).ok()?;
        parse(answer.get(..len)?, index)
    }
}

/// Parses an RTM_NEWLINK message about an interface; `None` for any other.
fn parse(message: &[u8], index: i32) -> Option<Report> {
    let (kind, of) = (message.get(4..6)?, message.get(HEADER + 4..HEADER + 8)?);
    if kind != libc::RTM_NEWLINK.to_ne_bytes() || of != index.to_ne_bytes() {
        return None;
    }
    let mut report = Report::default();
    for attribute in attributes(message.get(HEADER + MESSAGE..)?) {
        let (kind, value) = attribute?;
        match kind {
            IFLA_CARRIER_CHANGES => report.carrier_changes = number(value)?.into(),
            IFLA_STATS64 => {
                let (values, _) = value.as_chunks();
                let values = values.iter().map(|&value| u64::from_ne_bytes(value));
                report.counters = COUNTERS.into_iter().zip(values).collect();
            }
            IFLA_LINKINFO => report.tap_queues = tap_queues(value),
            _ => {}
        }
    }
    Some(report)
}

/// The queues in the description of a link, enabled and disabled, if it is a multi-queue tap.
fn tap_queues(link: &[u8]) -> Option<u32> {
    let find = |of, wanted| {
        let mut all = attributes(of).flatten();
        all.find_map(|(kind, value)| (kind == wanted).then_some(value))
    };
    if find(link, IFLA_INFO_KIND)? != b"tun\0" {
        return None;
    }
    let data = find(link, IFLA_INFO_DATA)?;
    let used = number(find(data, IFLA_TUN_NUM_QUEUES)?)?;
    used.checked_add(number(find(data, IFLA_TUN_NUM_DISABLED_QUEUES)?)?)
}

fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}

/// Types and values of attributes; the last item is `None` if an attribute is longer than the rest.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = Option<(u16, &[u8])>> {
    // Each begins with its length, which includes the four bytes of the header, and its type.
    std::iter::from_fn(move || {
        let (&[a, b, c, d], _) = rest.split_first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let value = rest.get(4..len);
        let behind = rest.get(len.next_multiple_of(4)..);
        rest = value.and(behind).unwrap_or_default();
        Some(value.map(|value| (u16::from_ne_bytes([c, d]) & NLA_TYPE_MASK, value)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_loopback_interface_has_counters() {
        let netlink = Netlink::new().unwrap();
        for _ in 0..3 {
            let report = netlink.report(1).unwrap();
            let names: Vec<_> = report.counters.iter().map(|(name, _)| *name).collect();
            assert!(names.starts_with(&COUNTERS[..24]), "{names:?}");
        }
        assert_eq!(netlink.report(i32::MAX), None);
    }

    proptest! {
        #[test]
        fn any_message_is_survived(
            start in 0..8_usize,
            lens in prop::collection::vec((0..300_u16, 20..40_u16), 0..10),
            mut message in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            if let Some(header) = message.first_chunk_mut::<24>() {
                header[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
                header[20..24].copy_from_slice(&7_i32.to_ne_bytes());
            }
            let mut at = HEADER + MESSAGE + start;
            for (len, kind) in lens {
                let Some(attribute) = message.get_mut(at..at + 4) else { break };
                attribute[..2].copy_from_slice(&len.to_ne_bytes());
                attribute[2..].copy_from_slice(&kind.to_ne_bytes());
                at += usize::from(len).next_multiple_of(4);
            }
            let _ = parse(&message, 7);
        }
    }
}
