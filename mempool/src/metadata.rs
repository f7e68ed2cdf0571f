//! Metadata of frames that few programs need: a second, cold cache line for each buffer.
//!
//! A pool has these lines if it is [configured](crate::PoolConfig::metadata) so; they lie behind the
//! headers, in memory that no device and no peer reaches. A flag in the header, which is reset with
//! it, says whether the line belongs to the frame: allocation, release and forwarding do not touch
//! it.

use core::num::NonZeroU16;

use crate::buffers::LINE;
use crate::time::WireTime;

/// Metadata of a frame, in addition to that of its header. Each value is unset until a driver or a
/// stage sets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(C, align(64))]
pub struct Metadata {
    /// When the device is to send the frame.
    pub transmit_time: Option<WireTime>,
    /// Hash by which the device chose the receive queue.
    pub rss_hash: Option<u32>,
    /// Mark of the flow rule that the frame matched.
    pub flow_mark: Option<u32>,
    /// VLAN tag (TCI) that the device has removed, or is to insert.
    pub vlan: Option<u16>,
    /// Payload bytes of each frame into which the device is to segment this one.
    pub segment_size: Option<NonZeroU16>,
    /// Bytes of the link header with its VLAN tags; 0: unknown.
    pub l2_len: u16,
    /// Bytes of the network header with its options; 0: unknown.
    pub l3_len: u16,
    /// Bytes of the transport header; 0: unknown.
    pub l4_len: u16,
    /// Network protocol.
    pub network: Option<Network>,
    /// Transport protocol.
    pub transport: Option<Transport>,
}

const _: () = assert!(size_of::<Metadata>() == LINE);

/// Network protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Network {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Transport protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}
