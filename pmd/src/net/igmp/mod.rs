//! Membership in IPv4 multicast groups, so that switches and routers pass a group's frames on to a
//! port that the kernel no longer serves: IGMP of versions 1 to 3, the host's part (RFC 1112,
//! RFC 2236, RFC 3376).

mod group;
mod host;
mod version;
mod wire;

pub use group::{ALL_SYSTEMS, GroupError, MAX_GROUPS, check_group, group_stations};
pub use host::{IgmpCounts, IgmpHost};
pub use version::IgmpVersion;

#[cfg(test)]
mod tests;
