//! Sizes of frames, and how many buffers one may be in.

/// Ethernet header, and a VLAN tag beside the MTU.
pub(super) const ETHERNET: usize = 14;
pub(super) const TAG: usize = 4;

/// Most buffers that a frame may be in, for one system call.
pub(super) const MAX_SEGMENTS: usize = 64;
