//! Multicast groups: validity, and the Ethernet addresses of groups.

use std::net::Ipv4Addr;

use crate::net::mac::MacAddr;

/// Maximum number of groups that a port can join at a time: their records fit in one report.
pub const MAX_GROUPS: usize = 64;

/// The group of all hosts, which queries are sent to. Every host is a member, and does not report
/// it.
pub const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// Error: a group cannot be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// Not a group address, or the group of all hosts.
    #[error(
        "{0} is no multicast group to join: give one of 224.0.0.2 to 239.255.255.255, as in \
         239.1.2.3"
    )]
    NotAGroup(Ipv4Addr),
    /// The table is full.
    #[error("a port can be in {MAX_GROUPS} multicast groups: join fewer, or by several ports")]
    TooMany,
}

/// Checks that a group can be joined.
///
/// # Errors
/// [`GroupError::NotAGroup`].
pub fn check_group(group: Ipv4Addr) -> Result<(), GroupError> {
    if group.is_multicast() && group > ALL_SYSTEMS {
        Ok(())
    } else {
        Err(GroupError::NotAGroup(group))
    }
}

/// The Ethernet addresses that a port must receive to be a member of groups: those of the groups
/// and of the queries for them, without duplicates.
#[must_use]
pub fn group_stations(groups: &[Ipv4Addr]) -> Vec<MacAddr> {
    let all = groups.iter().chain([&ALL_SYSTEMS]);
    let mut addresses: Vec<_> = all.map(|&group| MacAddr::of_group(group)).collect();
    addresses.sort_unstable_by_key(|address| address.0);
    addresses.dedup();
    addresses
}
