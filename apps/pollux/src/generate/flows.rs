//! The flows: who sends to whom, and the headers that say so.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Context, anyhow};
use pollux_pmd::Capabilities;
use pollux_pmd::mempool::{ChecksumRequest, Mbuf};
use pollux_pmd::net::headers::{ETHERTYPE_VLAN, VlanTag};
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpChecksum, UdpEndpoint, UdpTemplate};

use crate::payload::{Content, Header};

/// Bytes of an 802.1Q tag.
pub(super) const TAG: usize = size_of::<VlanTag>();

/// Who sends to whom, on the command line.
#[derive(clap::Args)]
pub(crate) struct Ends {
    /// Source of flow 0
    #[arg(long, value_name = "IP:PORT", default_value = "198.18.0.2:1024")]
    #[arg(help_heading = "Flows")]
    src: SocketAddrV4,

    /// Destination of flow 0
    #[arg(long, value_name = "IP:PORT", default_value = "198.18.0.1:9000")]
    #[arg(help_heading = "Flows")]
    dst: SocketAddrV4,

    /// Source station [default: that of the port, or else 02:00:00:00:00:02]
    #[arg(long, value_name = "MAC", help_heading = "Flows")]
    src_mac: Option<MacAddr>,

    /// Destination station
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:01")]
    #[arg(help_heading = "Flows")]
    dst_mac: MacAddr,
}

impl Ends {
    /// The ends of flow 0, which a port sends.
    pub(crate) fn endpoints(&self, port: &Capabilities) -> (UdpEndpoint, UdpEndpoint) {
        let own = self.src_mac.or(port.mac);
        let src = UdpEndpoint {
            mac: own.unwrap_or(MacAddr([2, 0, 0, 0, 0, 2])),
            socket: self.src,
        };
        let dst = UdpEndpoint {
            mac: self.dst_mac,
            socket: self.dst,
        };
        (src, dst)
    }
}

/// What differs from flow to flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Vary {
    SrcPort,
    DstPort,
    SrcIp,
    DstIp,
}

/// Where flow 0 comes from and goes to; flow n has n added to what varies.
pub(super) struct Addresses<'a> {
    pub(super) src: UdpEndpoint,
    pub(super) dst: UdpEndpoint,
    pub(super) vary: &'a [Vary],
    pub(super) checksum: UdpChecksum,
}

impl Addresses<'_> {
    /// The headers of a flow.
    fn template(&self, flow: u16) -> anyhow::Result<UdpTemplate> {
        let shift = |end: UdpEndpoint, ip: Vary, port: Vary| {
            let by = |what| if self.vary.contains(&what) { flow } else { 0 };
            let address = end.socket.ip().to_bits().checked_add(by(ip).into());
            let address = address.context("the last flow's address would be above 255.255.255.255");
            let port = end.socket.port().checked_add(by(port));
            let port = port.context("the last flow's port would be above 65535");
            let socket = SocketAddrV4::new(Ipv4Addr::from_bits(address?), port?);
            Ok::<_, anyhow::Error>(UdpEndpoint { socket, ..end })
        };
        let src = shift(self.src, Vary::SrcIp, Vary::SrcPort)?;
        let dst = shift(self.dst, Vary::DstIp, Vary::DstPort)?;
        Ok(UdpTemplate::new(src, dst).with_checksum(self.checksum))
    }
}

/// One flow of a loop.
#[derive(Clone)]
struct Flow {
    number: u16,
    /// Of the next frame.
    sequence: u32,
    template: UdpTemplate,
}

/// The flows of one loop, which come in turn.
#[derive(Clone)]
pub(crate) struct Flows {
    mine: Box<[Flow]>,
    next: usize,
    tag: Option<[u8; TAG]>,
    /// What is left to the device.
    request: Option<ChecksumRequest>,
}

impl Flows {
    /// Of `n` flows that differ in their source ports, those of loop `i` of `loops`, as in
    /// [`new`](Self::new).
    pub(crate) fn by_port(
        (src, dst): (UdpEndpoint, UdpEndpoint),
        n: u16,
        place: (usize, usize),
    ) -> anyhow::Result<Self> {
        let addresses = Addresses {
            src,
            dst,
            vary: &[Vary::SrcPort],
            checksum: UdpChecksum::Whole,
        };
        Self::new(&addresses, n, place, None)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.mine.len()
    }

    /// The same flows, with numbers that are greater by `first`.
    pub(crate) fn numbered_from(mut self, first: u16) -> Self {
        for flow in &mut self.mine {
            flow.number = flow.number.wrapping_add(first);
        }
        self
    }

    /// Of `n` flows, those whose turn it is when `loops` loops share them out and this is number
    /// `i`.
    pub(super) fn new(
        addresses: &Addresses<'_>,
        n: u16,
        (i, loops): (usize, usize),
        vlan: Option<u16>,
    ) -> anyhow::Result<Self> {
        let mine = (0..n).skip(i).step_by(loops).map(|number| {
            Ok(Flow {
                number,
                sequence: 0,
                template: addresses.template(number)?,
            })
        });
        let mine: Box<[Flow]> = mine.collect::<anyhow::Result<_>>()?;
        if mine.is_empty() {
            return Err(anyhow!("{n} flows for {loops} loops: give fewer --cores"));
        }
        Ok(Self {
            mine,
            next: 0,
            request: match addresses.checksum {
                UdpChecksum::Left => {
                    UdpTemplate::checksum_request(if vlan.is_some() { TAG } else { 0 })
                }
                UdpChecksum::Whole | UdpChecksum::Absent => None,
            },
            // The tag control is the VLAN identifier: no priority (IEEE 802.1Q section 9.6).
            tag: vlan.map(|id| {
                let ([a, b], [c, d]) = (ETHERTYPE_VLAN.to_be_bytes(), id.to_be_bytes());
                [a, b, c, d]
            }),
        })
    }

    /// Makes the next frame, `size` bytes long, in an empty buffer. `None` where it does not fit.
    #[inline]
    pub(super) fn make(
        &mut self,
        mbuf: &mut Mbuf,
        size: usize,
        content: &Content,
        header: impl Fn(u16, u32) -> Header,
    ) -> Option<()> {
        let turn = self.next;
        self.next = if turn + 1 == self.mine.len() {
            0
        } else {
            turn + 1
        };
        let flow = self.mine.get_mut(turn)?;
        let frame = mbuf.append(size)?;
        let at = if self.tag.is_some() { TAG } else { 0 };
        let inner = frame.get_mut(at..)?;
        let payload = inner.get_mut(UDP_HEADERS..)?;
        content.write(header(flow.number, flow.sequence), payload);
        let len = payload.len();
        flow.template.write(inner, len)?;
        flow.sequence = flow.sequence.wrapping_add(1);
        if let Some(tag) = self.tag {
            // The addresses move in front of the tag; the EtherType stays behind it.
            frame.copy_within(TAG..TAG + 2 * size_of::<MacAddr>(), 0);
            frame[2 * size_of::<MacAddr>()..][..TAG].copy_from_slice(&tag);
        }
        mbuf.set_checksum_request(self.request);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::payload::Pattern;
    use pollux_pmd::mempool::time::Tsc;
    use pollux_pmd::mempool::{Mempool, PoolConfig};
    use pollux_pmd::net::finish_checksum;

    /// The first frame of a flow.
    fn first(checksum: UdpChecksum, vlan: Option<u16>) -> (Mempool, Mbuf) {
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let end = |n| UdpEndpoint {
            mac: MacAddr([2, 0, 0, 0, 0, n]),
            socket: SocketAddrV4::new([10, 0, 0, n].into(), 9000),
        };
        let addresses = Addresses {
            src: end(1),
            dst: end(2),
            vary: &[],
            checksum,
        };
        let mut flows = Flows::new(&addresses, 1, (0, 1), vlan).unwrap();
        let mut mbuf = pool.cache(16).unwrap().alloc().unwrap();
        let content = Content::new(Pattern::Random, 1, 500);
        let header = |flow, sequence| Header {
            flow,
            sequence,
            sent: Tsc(0),
        };
        flows.make(&mut mbuf, 500, &content, header).unwrap();
        (pool, mbuf)
    }

    #[test]
    fn a_checksum_that_is_left_is_finished_to_what_it_would_have_been() {
        for vlan in [None, Some(7)] {
            let (_whole_pool, whole) = first(UdpChecksum::Whole, vlan);
            let (_left_pool, mut left) = first(UdpChecksum::Left, vlan);
            assert_eq!(whole.checksum_request(), None);
            assert_ne!(whole.data(), left.data());
            assert!(left.checksum_request().is_some() && finish_checksum(&mut left));
            assert_eq!(whole.data(), left.data());
        }
    }
}
