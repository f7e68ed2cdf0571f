//! IGMP host, versions 1 to 3 (RFC 1112, RFC 2236, RFC 3376): membership in IPv4 multicast groups,
//! so that switches and routers forward a group's frames to a port without the kernel's network
//! stack.

mod group;
mod host;
mod version;
mod wire;

pub use group::{ALL_SYSTEMS, GroupError, MAX_GROUPS, check_group, group_stations};
pub use host::{IgmpCounts, IgmpHost};
pub use version::IgmpVersion;

#[cfg(test)]
mod tests;
