//! Generated flows and their headers.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, anyhow};
use pollux_pmd::mempool::{ChecksumRequest, Mbuf};
use pollux_pmd::net::headers::{ETHERTYPE_VLAN, VlanTag};
use pollux_pmd::net::{MacAddr, UdpChecksum};

use super::endpoints::{Endpoint, Headers};
use crate::payload::{Content, Header};

/// Bytes of an 802.1Q tag.
pub(super) const TAG: usize = size_of::<VlanTag>();

/// Field that varies between flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Vary {
    SrcPort,
    DstPort,
    SrcIp,
    DstIp,
}

/// Endpoints of flow 0; flow n has n added to the varied field.
pub(super) struct Addresses<'a> {
    pub(super) src: Endpoint,
    pub(super) dst: Endpoint,
    pub(super) vary: &'a [Vary],
    pub(super) checksum: UdpChecksum,
}

impl Addresses<'_> {
    /// The headers of a flow.
    fn headers(&self, flow: u16) -> anyhow::Result<Headers> {
        let shift = |end: Endpoint, ip: Vary, port: Vary| {
            let by = |what| if self.vary.contains(&what) { flow } else { 0 };
            let ip = shifted(end.socket.ip(), by(ip));
            let ip = ip.context("the last flow's address would be above the highest one")?;
            let port = end.socket.port().checked_add(by(port));
            let port = port.context("the last flow's port would be above 65535")?;
            let socket = SocketAddr::new(ip, port);
            Ok::<_, anyhow::Error>(Endpoint { socket, ..end })
        };
        let src = shift(self.src, Vary::SrcIp, Vary::SrcPort)?;
        let dst = shift(self.dst, Vary::DstIp, Vary::DstPort)?;
        Headers::new(src, dst, self.checksum)
    }
}

/// The address plus `n`.
fn shifted(ip: IpAddr, n: u16) -> Option<IpAddr> {
    Some(match ip {
        IpAddr::V4(ip) => IpAddr::V4(ip.to_bits().checked_add(n.into())?.into()),
        IpAddr::V6(ip) => IpAddr::V6(ip.to_bits().checked_add(n.into())?.into()),
    })
}

/// One flow of a loop.
#[derive(Clone)]
struct Flow {
    number: u16,
    /// Sequence number of the next frame.
    sequence: u32,
    headers: Headers,
}

/// The flows of one loop, in round-robin order.
#[derive(Clone)]
pub(crate) struct Flows {
    mine: Box<[Flow]>,
    next: usize,
    tag: Option<[u8; TAG]>,
    /// Offload request for the device.
    request: Option<ChecksumRequest>,
}

impl Flows {
    /// Of `n` flows that differ in their source ports, those of loop `i` of `loops`, as in
    /// [`new`](Self::new).
    pub(crate) fn by_port(
        (src, dst): (Endpoint, Endpoint),
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

    /// Number of flows.
    pub(crate) fn len(&self) -> usize {
        self.mine.len()
    }

    /// The same flows, with `first` added to their numbers.
    pub(crate) fn numbered_from(mut self, first: u16) -> Self {
        for flow in &mut self.mine {
            flow.number = flow.number.wrapping_add(first);
        }
        self
    }

    /// Of `n` flows, those of loop `i` when `loops` loops share them in turn.
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
                headers: addresses.headers(number)?,
            })
        });
        let mine: Box<[Flow]> = mine.collect::<anyhow::Result<_>>()?;
        let first = mine
            .first()
            .ok_or_else(|| anyhow!("{n} flows for {loops} loops: give fewer --cores"))?;
        let tags = if vlan.is_some() { TAG } else { 0 };
        let request = first.headers.checksum_request(tags);
        Ok(Self {
            next: 0,
            request: match addresses.checksum {
                UdpChecksum::Left => request,
                UdpChecksum::Whole | UdpChecksum::Absent => None,
            },
            // The tag control is the VLAN identifier: no priority (IEEE 802.1Q section 9.6).
            tag: vlan.map(|id| {
                let ([a, b], [c, d]) = (ETHERTYPE_VLAN.to_be_bytes(), id.to_be_bytes());
                [a, b, c, d]
            }),
            mine,
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
        let payload = inner.get_mut(flow.headers.len()..)?;
        content.write(header(flow.number, flow.sequence), payload);
        let len = payload.len();
        flow.headers.write(inner, len)?;
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
    fn first(ipv6: bool, checksum: UdpChecksum, vlan: Option<u16>) -> (Mempool, Mbuf) {
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let end = |n: u16| Endpoint {
            mac: MacAddr([2, 0, 0, 0, 0, n as u8]),
            socket: if ipv6 {
                ([0xfd00, 0, 0, 0, 0, 0, 0, n], 9000).into()
            } else {
                ([10, 0, 0, n as u8], 9000).into()
            },
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
        for (ipv6, vlan) in [
            (false, None),
            (false, Some(7)),
            (true, None),
            (true, Some(7)),
        ] {
            let (_whole_pool, whole) = first(ipv6, UdpChecksum::Whole, vlan);
            let (_left_pool, mut left) = first(ipv6, UdpChecksum::Left, vlan);
            assert_eq!(whole.checksum_request(), None);
            assert_ne!(whole.data(), left.data());
            assert!(left.checksum_request().is_some() && finish_checksum(&mut left));
            assert_eq!(whole.data(), left.data());
        }
    }
}
