//! Registered ranges: found by key, checked, and taken away while loops use them.
//!
//! A loop looks ranges up in a [`Session`], between two counts of its own: odd within, even without. Who
//! takes a range away clears its key first, and then waits until every loop that was within a session has
//! left it. So a loop finds a range without a lock, and holds it no longer than a session.

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use crate::access::{Access, Key, RemoteBuffer};
use crate::bytes::Bytes;
use crate::memory::OutOfBounds;
use crate::random;
use crate::sync::{
    AtomicPtr, AtomicU64, Mutex, MutexGuard, Ordering, fence, ordering, relax, store_and_fence,
};

use Ordering::{Acquire, Relaxed, Release, SeqCst};

/// Most ranges of an endpoint.
pub(crate) const MAX_BUFFERS: usize = 256;
/// A key word that has a key.
const VALID: u64 = 1 << 32;
/// Rights in a slot.
const WRITE: u64 = 1;
const READ: u64 = 2;

/// Why a range cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// No range has the key.
    Key,
    /// The range is not inside the registered one.
    Bounds,
    /// The peer does not have the right.
    Rights,
}

/// Why a range could not be registered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    #[error(
        "all {MAX_BUFFERS} registrations are in use: unregister buffers, or register larger ones"
    )]
    Full,
    #[error("the key {0} is in use")]
    KeyInUse(Key),
    #[error(transparent)]
    Bounds(#[from] OutOfBounds),
    #[error("no random bits for its key: {0}")]
    Random(#[from] io::Error),
}

/// What keeps the memory of a range mapped.
pub(crate) type Keep = Arc<dyn Send + Sync>;

/// A registered range. Written by the one who holds the lock, while no key is valid.
struct Slot {
    key: AtomicU64,
    address: AtomicU64,
    len: AtomicU64,
    rights: AtomicU64,
    start: AtomicPtr<u8>,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            key: AtomicU64::new(0),
            address: AtomicU64::new(0),
            len: AtomicU64::new(0),
            rights: AtomicU64::new(0),
            start: AtomicPtr::new(NonNull::dangling().as_ptr()),
        }
    }
}

/// Sessions of a loop so far, twice; odd within one. In a cache line of its own: only that loop writes it.
#[derive(Default)]
#[repr(align(64))]
struct Sessions(AtomicU64);

/// The registered ranges of an endpoint.
pub(crate) struct Registrations {
    slots: Box<[Slot]>,
    /// Longest way of a key from its own slot: 0, but for keys that a program chose.
    displacement: AtomicU64,
    sessions: Box<[Sessions]>,
    owner: Mutex<Owner>,
}

/// What only the registering side has.
struct Owner {
    /// Which of the sessions have a loop.
    readers: Box<[bool]>,
    /// The memory of each range.
    memories: Box<[Option<Keep>]>,
}

impl Registrations {
    /// A table of up to `slots` ranges, a power of two, which up to `readers` loops look up.
    pub(crate) fn new(slots: usize, readers: usize) -> Arc<Self> {
        debug_assert!(slots.is_power_of_two());
        Arc::new(Self {
            slots: (0..slots).map(|_| Slot::default()).collect(),
            displacement: AtomicU64::new(0),
            sessions: (0..readers).map(|_| Sessions::default()).collect(),
            owner: Mutex::new(Owner {
                readers: (0..readers).map(|_| false).collect(),
                memories: (0..slots).map(|_| None).collect(),
            }),
        })
    }

    /// A loop that looks ranges up; `None` if there are enough.
    pub(crate) fn reader(self: &Arc<Self>) -> Option<Reader> {
        let mut owner = self.owner();
        let number = owner.readers.iter().position(|is_used| !is_used)?;
        owner.readers[number] = true;
        Some(Reader {
            table: Arc::clone(self),
            number,
        })
    }

    /// Enters a range, under a key and at an address of the caller's choice, or under a random key of which
    /// the low bits are the slot, and at its own address. Returns its slot.
    ///
    /// # Safety
    /// The range can be read, and written if `access` has writing or a request of the endpoint writes it,
    /// for as long as `keep` lives; its bytes are accessed by copies alone.
    pub(crate) unsafe fn insert(
        &self,
        start: NonNull<u8>,
        len: usize,
        access: Access,
        choice: Option<RemoteBuffer>,
        keep: Keep,
    ) -> Result<(usize, RemoteBuffer), TableError> {
        let mut owner = self.owner();
        let count = self.slots.len();
        if let Some(taken) = choice.filter(|choice| self.find(choice.key).is_some()) {
            return Err(TableError::KeyInUse(taken.key));
        }
        let first = choice.map_or(0, |choice| self.home(choice.key));
        let mut ways = (0..count).map(|way| (way, self.place(first + way)));
        let free = ways.find(|&(_, slot)| owner.memories[slot].is_none());
        let (way, slot) = free.ok_or(TableError::Full)?;
        let remote = match choice {
            Some(choice) => choice,
            None => RemoteBuffer {
                address: start.as_ptr().expose_provenance() as u64,
                key: Key(random::bits()? << 8 | slot as u32),
            },
        };
        owner.memories[slot] = Some(keep);
        if choice.is_some() {
            self.displacement.fetch_max(way as u64, Relaxed);
        }
        let entry = &self.slots[slot];
        entry.address.store(remote.address, Relaxed);
        entry.len.store(len as u64, Relaxed);
        let write = if access.remote_write { WRITE } else { 0 };
        let read = if access.remote_read { READ } else { 0 };
        entry.rights.store(write | read, Relaxed);
        entry.start.store(start.as_ptr(), Relaxed);
        // Release pairs with the Acquire in `find`: who finds the key finds the range.
        entry
            .key
            .store(VALID | u64::from(remote.key.0), ordering("enter", Release));
        Ok((slot, remote))
    }

    fn owner(&self) -> MutexGuard<'_, Owner> {
        // What it guards is whole between two statements of its users.
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn home(&self, key: Key) -> usize {
        self.place(key.0 as usize)
    }

    /// A slot, counted round the table. A mask: every packet needs it.
    #[inline(always)]
    fn place(&self, slot: usize) -> usize {
        slot & self.slots.len().wrapping_sub(1)
    }

    /// The slot of a key.
    #[inline]
    fn find(&self, key: Key) -> Option<&Slot> {
        let first = self.home(key);
        let last = self.displacement.load(Relaxed) as usize;
        (0..=last)
            .map(|way| &self.slots[self.place(first + way)])
            // It acquires what `insert` releases; for its order see `Reader::enter`.
            .find(|slot| slot.key.load(ordering("find", SeqCst)) == VALID | u64::from(key.0))
    }

    /// Takes the range of a key away, as [`unregister`](Self::unregister); false if no range has the key.
    pub(crate) fn remove(&self, key: Key) -> bool {
        let entry = |slot: &Slot| slot.key.load(Relaxed) == VALID | u64::from(key.0);
        let slot = self.slots.iter().position(entry);
        slot.inspect(|&slot| self.unregister(slot)).is_some()
    }

    /// Takes a range away: when this returns no loop uses it, and none finds it.
    pub(crate) fn unregister(&self, slot: usize) {
        let mut owner = self.owner();
        self.slots[slot].key.store(0, Relaxed);
        // Pairs with the fence in `Reader::enter`: a loop whose session is not seen here does not see the
        // key in it.
        fence(SeqCst);
        for Sessions(session) in &self.sessions {
            // Acquire pairs with the Release at the end of a session: its accesses are over.
            let seen = session.load(ordering("see-end", Acquire));
            while seen % 2 == 1 && session.load(ordering("see-end", Acquire)) == seen {
                relax();
            }
        }
        owner.memories[slot] = None;
    }
}

/// A loop that looks ranges up.
pub(crate) struct Reader {
    table: Arc<Registrations>,
    number: usize,
}

impl Reader {
    /// Begins a session: no range that it finds is taken away before its end. Short ones, since
    /// unregistering waits for them.
    #[inline]
    pub(crate) fn enter(&mut self) -> Session<'_> {
        let Sessions(session) = &self.table.sessions[self.number];
        // Only this loop writes it. Release: who sees this session instead of the end of the one before it
        // sees that one's accesses as over.
        let next = session.load(Relaxed) + 1;
        store_and_fence("begin", session, next);
        Session {
            table: &self.table,
            session,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.table.owner().readers[self.number] = false;
    }
}

/// A time within which ranges are not taken away.
pub(crate) struct Session<'a> {
    table: &'a Registrations,
    session: &'a AtomicU64,
}

impl Drop for Session<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: the accesses of the session are over.
        let next = self.session.load(Relaxed) + 1;
        self.session.store(next, ordering("end", Release));
    }
}

impl Session<'_> {
    /// Bytes that a peer wants to access.
    #[inline]
    pub(crate) fn remote(
        &self,
        at: RemoteBuffer,
        len: u64,
        needed: Access,
    ) -> Result<Bytes<'_>, AccessError> {
        let slot = self.table.find(at.key).ok_or(AccessError::Key)?;
        let offset = at.address.wrapping_sub(slot.address.load(Relaxed));
        let rights = slot.rights.load(Relaxed);
        let permitted = Access {
            remote_write: rights & WRITE != 0,
            remote_read: rights & READ != 0,
        };
        if !permitted.permits(needed) {
            return Err(AccessError::Rights);
        }
        self.bytes(slot, offset, len)
    }

    /// Bytes of a registered range, for a request of the endpoint's own.
    #[inline]
    pub(crate) fn local(&self, key: Key, offset: u64, len: u64) -> Result<Bytes<'_>, AccessError> {
        let slot = self.table.find(key).ok_or(AccessError::Key)?;
        self.bytes(slot, offset, len)
    }

    #[inline]
    #[allow(clippy::unused_self)] // the bytes are there for as long as the session
    fn bytes(&self, slot: &Slot, offset: u64, len: u64) -> Result<Bytes<'_>, AccessError> {
        let of = slot.len.load(Relaxed);
        if offset > of || len > of - offset {
            return Err(AccessError::Bounds);
        }
        let start = slot.start.load(Relaxed);
        // SAFETY: the range begins at `start` and has `of` bytes, `offset` of them at least (`register`).
        let start = unsafe { NonNull::new_unchecked(start.add(offset as usize)) };
        // SAFETY: the range has so many bytes from there on; it is not taken away within the session, and
        // is accessed by copies alone (`insert`).
        Ok(unsafe { Bytes::new(start, len as usize) })
    }
}

#[cfg(test)]
mod tests;
