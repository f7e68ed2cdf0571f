//! Frame size limits, and the maximum number of buffers of a frame.

/// Size of the Ethernet header; the MTU counts neither it nor a VLAN tag.
pub(super) const ETHERNET: usize = 14;
pub(super) const TAG: usize = 4;

/// Maximum number of buffers of a frame, for one system call.
pub(super) const MAX_SEGMENTS: usize = 64;
