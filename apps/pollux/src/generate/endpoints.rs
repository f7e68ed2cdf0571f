//! Source and destination of generated flows, over IPv4 or IPv6.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::anyhow;
use pollux_pmd::Capabilities;
use pollux_pmd::mempool::ChecksumRequest;
use pollux_pmd::net::{
    MacAddr, UDP_HEADERS, UDP_HEADERS_V6, UdpChecksum, UdpEndpoint, UdpEndpointV6, UdpTemplate,
    UdpTemplateV6,
};

/// Addresses of RFC 2544 and RFC 5180, reserved for benchmarks.
const SRC_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const DST_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SRC_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 2);
const DST_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1);
const SRC_PORT: u16 = 1024;
const DST_PORT: u16 = 9000;

/// Endpoint options on the command line.
#[derive(clap::Args)]
pub(crate) struct EndpointOptions {
    /// Source of flow 0, of IPv4 or IPv6: 10.0.0.2:1024, `[fd00::2]:1024`
    /// [default: 198.18.0.2:1024, or `[2001:2::2]:1024` where --dst is of IPv6]
    #[arg(long, value_name = "IP:PORT", help_heading = "Flows")]
    src: Option<SocketAddr>,

    /// Destination of flow 0
    /// [default: 198.18.0.1:9000, or `[2001:2::1]:9000` where --src is of IPv6]
    #[arg(long, value_name = "IP:PORT", help_heading = "Flows")]
    dst: Option<SocketAddr>,

    /// Source station [default: that of the port, or else 02:00:00:00:00:02]
    #[arg(long, value_name = "MAC", help_heading = "Flows")]
    src_mac: Option<MacAddr>,

    /// Destination station
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:01")]
    #[arg(help_heading = "Flows")]
    dst_mac: MacAddr,
}

/// An endpoint of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    pub(crate) mac: MacAddr,
    pub(crate) socket: SocketAddr,
}

impl EndpointOptions {
    fn is_ipv6(&self) -> bool {
        self.src.or(self.dst).is_some_and(|end| end.is_ipv6())
    }

    /// Bytes of the headers in front of a payload.
    pub(crate) fn header_len(&self) -> usize {
        if self.is_ipv6() {
            UDP_HEADERS_V6
        } else {
            UDP_HEADERS
        }
    }

    /// The endpoints of flow 0, sent by a port.
    pub(crate) fn endpoints(&self, port: &Capabilities) -> anyhow::Result<(Endpoint, Endpoint)> {
        let (src, dst) = if self.is_ipv6() {
            ((SRC_V6, SRC_PORT).into(), (DST_V6, DST_PORT).into())
        } else {
            ((SRC_V4, SRC_PORT).into(), (DST_V4, DST_PORT).into())
        };
        let (src, dst) = (self.src.unwrap_or(src), self.dst.unwrap_or(dst));
        if src.is_ipv6() != dst.is_ipv6() {
            return Err(anyhow!(
                "--src {src} and --dst {dst} are of two kinds: give both of IPv4, or both of IPv6"
            ));
        }
        let own = self.src_mac.or(port.mac);
        let src = Endpoint {
            mac: own.unwrap_or(MacAddr([2, 0, 0, 0, 0, 2])),
            socket: src,
        };
        let dst = Endpoint {
            mac: self.dst_mac,
            socket: dst,
        };
        Ok((src, dst))
    }
}

/// The headers of a flow, of either IP version.
#[derive(Clone)]
pub(super) enum Headers {
    V4(UdpTemplate),
    V6(UdpTemplateV6),
}

impl Headers {
    pub(super) fn new(src: Endpoint, dst: Endpoint, checksum: UdpChecksum) -> anyhow::Result<Self> {
        match (src.socket, dst.socket) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => {
                let end = |mac, socket| UdpEndpoint { mac, socket };
                let template = UdpTemplate::new(end(src.mac, from), end(dst.mac, to));
                Ok(Self::V4(template.with_checksum(checksum)))
            }
            (SocketAddr::V6(from), SocketAddr::V6(to)) => {
                let end = |mac, socket| UdpEndpointV6 { mac, socket };
                let template = UdpTemplateV6::new(end(src.mac, from), end(dst.mac, to));
                match checksum {
                    UdpChecksum::Whole => Ok(Self::V6(template)),
                    UdpChecksum::Left => Ok(Self::V6(template.with_checksum_left())),
                    UdpChecksum::Absent => Err(anyhow!(
                        "--no-checksum: over IPv6 every datagram has one (RFC 8200 section 8.1)"
                    )),
                }
            }
            _ => Err(anyhow!(
                "from {} to {}: of two kinds",
                src.socket,
                dst.socket
            )),
        }
    }

    /// How many bytes they are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::V4(_) => UDP_HEADERS,
            Self::V6(_) => UDP_HEADERS_V6,
        }
    }

    /// Offload request for a device that completes the checksum.
    pub(super) fn checksum_request(&self, tags: usize) -> Option<ChecksumRequest> {
        match self {
            Self::V4(_) => UdpTemplate::checksum_request(tags),
            Self::V6(_) => UdpTemplateV6::checksum_request(tags),
        }
    }

    /// Writes the headers in front of a payload of `len` bytes; `None` where that does not fit.
    #[inline]
    pub(super) fn write(&self, frame: &mut [u8], len: usize) -> Option<usize> {
        match self {
            Self::V4(template) => template.write(frame, len),
            Self::V6(template) => template.write(frame, len),
        }
    }
}
