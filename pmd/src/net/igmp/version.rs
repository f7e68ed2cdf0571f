//! IGMP versions.

/// A version of IGMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IgmpVersion {
    /// RFC 1112: reports only, no leaves.
    V1 = 1,
    /// RFC 2236: reports and leaves, one for each group.
    V2 = 2,
    /// RFC 3376: reports of all groups together.
    V3 = 3,
}
