//! Reasons for which the parser refuses a frame.

use crate::ledger::Cause;

/// Why [`parse`](super::parse()) refused a frame. Each is one drop cause of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// A length or a version contradicts the bytes of the frame.
    #[error("malformed: a header's length or version contradicts the frame")]
    Malformed,
    /// An IP fragment, the first one included: streams carry whole datagrams only. A
    /// [`Reassembler`](super::Reassembler) can reassemble the datagram.
    #[error("IP fragment: let the sender keep datagrams within the MTU, or reassemble them")]
    IpFragment,
    /// The IPv4 header checksum or the UDP checksum is wrong.
    #[error("bad checksum")]
    BadChecksum,
    /// A unicast datagram for another address.
    #[error("addressed to another host")]
    NotForUs,
    /// Well-formed, but not supported: IPv6 extension headers, three VLAN tags.
    #[error("unsupported header")]
    Unsupported,
}

impl From<Reject> for Cause {
    fn from(reject: Reject) -> Self {
        match reject {
            Reject::Malformed => Self::Malformed,
            Reject::IpFragment => Self::IpFragment,
            Reject::BadChecksum => Self::BadChecksum,
            Reject::NotForUs => Self::NotForUs,
            Reject::Unsupported => Self::Unsupported,
        }
    }
}
