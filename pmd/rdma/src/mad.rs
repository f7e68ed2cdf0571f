//! Management datagrams (InfiniBand, 13.4), as queue pair 1 carries them.

use std::net::Ipv4Addr;

/// Bytes of a management datagram (InfiniBand, 13.4.2).
pub const MAD_BYTES: usize = 256;

/// A management datagram from or to queue pair 1 of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad {
    /// The other host.
    pub host: Ipv4Addr,
    /// Its bytes.
    pub bytes: [u8; MAD_BYTES],
}
