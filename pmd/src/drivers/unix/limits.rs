//! Frame size limits.

/// Size of the Ethernet header; the MTU counts neither it nor a VLAN tag.
pub(super) const ETHERNET: usize = 14;
pub(super) const TAG: usize = 4;
