//! A registered range of memory as the program has it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::access::{Access, Key, RemoteBuffer};
use crate::memory::{Memory, OutOfBounds};
use crate::registrations::{Registrations, TableError};

/// Tells a peer that has a range mapped that it is about to be taken away.
pub(crate) trait Withdraw: Send + Sync {
    /// Returns when the peer does not access the range any more, or has had its time.
    fn withdraw(&self, key: Key);
}

impl Registrations {
    /// Registers a range, under a key and at an address of the caller's choice, or under a random key of
    /// which the low bits are the slot, and at its own address.
    pub(crate) fn register(
        self: &Arc<Self>,
        memory: &Memory,
        range: Range<usize>,
        access: Access,
        choice: Option<RemoteBuffer>,
    ) -> Result<Buffer, TableError> {
        let start = memory.at(&range)?;
        let keep = Arc::new(memory.clone());
        // SAFETY: so many bytes are in the region from `start` on (`at`), and the region lives as long as
        // the memory; they are accessed by copies alone (`Memory`).
        let (slot, remote) = unsafe { self.insert(start, range.len(), access, choice, keep) }?;
        Ok(Buffer {
            table: Arc::clone(self),
            memory: memory.clone(),
            range,
            access,
            remote,
            slot,
            peer: None,
        })
    }
}

/// A registered range of memory: with its key a peer may access it, according to its rights. Dropping it
/// takes the range away, and waits for loops that are about to use it, which takes no longer than a poll
/// of theirs.
pub struct Buffer {
    table: Arc<Registrations>,
    memory: Memory,
    range: Range<usize>,
    access: Access,
    remote: RemoteBuffer,
    slot: usize,
    /// The peer that has it mapped.
    peer: Option<Arc<dyn Withdraw>>,
}

impl Buffer {
    /// The same, which `peer` is told about when it is dropped.
    pub(crate) fn shared_with(mut self, peer: Arc<dyn Withdraw>) -> Self {
        self.peer = Some(peer);
        self
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> Key {
        self.remote.key
    }

    /// What a peer has to know to access it.
    #[must_use]
    pub fn remote(&self) -> RemoteBuffer {
        self.remote
    }

    /// Rights of peers.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// A part of it, for a request.
    #[must_use]
    pub fn part(&self, offset: u64, len: u32) -> crate::Local {
        crate::Local {
            key: self.key(),
            offset,
            len,
        }
    }

    /// Copies bytes from `offset` on to `to`, as [`Memory::read`] does.
    ///
    /// # Errors
    /// The range is not inside the buffer.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), OutOfBounds> {
        self.memory.read(self.at(offset, to.len())?, to)
    }

    /// Copies `from` to the bytes from `offset` on, as [`Memory::write`] does.
    ///
    /// # Errors
    /// The range is not inside the buffer.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfBounds> {
        self.memory.write(self.at(offset, from.len())?, from)
    }

    fn at(&self, offset: usize, len: usize) -> Result<usize, OutOfBounds> {
        let of = self.range.len();
        let is_inside = offset <= of && len <= of - offset;
        let refused = OutOfBounds { offset, len, of };
        is_inside.then(|| self.range.start + offset).ok_or(refused)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(peer) = &self.peer {
            peer.withdraw(self.key());
        }
        self.table.unregister(self.slot);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("key", &self.remote.key)
            .field("address", &self.remote.address)
            .field("len", &self.range.len())
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
