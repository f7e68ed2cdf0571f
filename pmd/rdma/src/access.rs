//! What a peer needs to access memory: keys, rights, and the address of a range.

use std::fmt;

/// Key of a registered range, which a peer has to present (InfiniBand: `R_Key`; cHPP: QP magic). The low
/// eight bits are the number of the registration, the others are random and new each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub u32);

/// Eight hexadecimal digits.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Rights of peers to a registered range. The endpoint's own requests need none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// A peer may write it (PUT).
    pub remote_write: bool,
    /// A peer may read it (GET).
    pub remote_read: bool,
}

impl Access {
    /// For the endpoint's own requests alone.
    pub const LOCAL: Self = Self {
        remote_write: false,
        remote_read: false,
    };
    /// A peer may write.
    pub const WRITE: Self = Self {
        remote_write: true,
        remote_read: false,
    };
    /// A peer may read.
    pub const READ: Self = Self {
        remote_write: false,
        remote_read: true,
    };
    /// A peer may write and read.
    pub const ALL: Self = Self {
        remote_write: true,
        remote_read: true,
    };

    /// Whether these rights include all of `needed`.
    #[must_use]
    pub const fn permits(self, needed: Self) -> bool {
        (self.remote_write || !needed.remote_write) && (self.remote_read || !needed.remote_read)
    }
}

/// A registered range as a peer names it: what the owner of the memory tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteBuffer {
    /// Address of its first byte, as the owner counts addresses.
    pub address: u64,
    /// Its key.
    pub key: Key,
}

impl RemoteBuffer {
    /// The same range from `offset` on.
    #[must_use]
    pub const fn at(self, offset: u64) -> Self {
        Self {
            address: self.address.wrapping_add(offset),
            key: self.key,
        }
    }
}
