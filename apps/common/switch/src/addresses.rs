//! Address table of the switch: which address was last seen at which port (IEEE 802.1D-2004, 7.9).

use std::collections::HashMap;

use pollux_pmd::mempool::time::Tsc;
use pollux_pmd::net::MacAddr;

/// No entry.
const NONE: u32 = u32::MAX;

/// Result of [`AddressTable::learn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    /// The address was known at this port.
    Known,
    /// The address was not known.
    New,
    /// The address was known at another port.
    Moved,
    /// The table is full of addresses that have not aged: this one is not known.
    Full,
}

/// An entry, in the list of entries ordered by the time when they were last seen.
struct Entry {
    mac: MacAddr,
    port: u16,
    seen: Tsc,
    older: u32,
    newer: u32,
}

/// Bounded table. Each operation takes constant time: the entry that was seen longest ago is the
/// first to age, so only this one is looked at when an entry is needed.
///
/// The hash function is keyed at random, so that no sender can make addresses collide.
pub(crate) struct AddressTable {
    index: HashMap<MacAddr, u32>,
    entries: Vec<Entry>,
    capacity: usize,
    oldest: u32,
    newest: u32,
    /// Ageing time in cycles.
    age: u64,
}

impl AddressTable {
    /// A table of up to `capacity` addresses, which allocates nothing afterwards.
    pub(crate) fn new(capacity: usize, age: u64) -> Self {
        Self {
            // At most half full, a map that needs to reorganise itself does so in place.
            index: HashMap::with_capacity(2 * capacity),
            entries: Vec::with_capacity(capacity),
            capacity,
            oldest: NONE,
            newest: NONE,
            age,
        }
    }

    /// Port of an address that has not aged.
    pub(crate) fn find(&self, mac: MacAddr, now: Tsc) -> Option<u16> {
        let entry = self.entry(*self.index.get(&mac)?)?;
        (!self.has_aged(entry, now)).then_some(entry.port)
    }

    /// Records that an address was seen at a port.
    pub(crate) fn learn(&mut self, mac: MacAddr, port: u16, now: Tsc) -> Learned {
        if let Some(&at) = self.index.get(&mac) {
            let Some(entry) = self.entry(at) else {
                return Learned::Full;
            };
            let learned = match () {
                () if self.has_aged(entry, now) => Learned::New,
                () if entry.port != port => Learned::Moved,
                () => Learned::Known,
            };
            self.unlink(at);
            self.set(at, mac, port, now);
            return learned;
        }
        let at = if self.entries.len() < self.capacity {
            self.entries.push(Entry {
                mac,
                port,
                seen: now,
                older: NONE,
                newer: NONE,
            });
            (self.entries.len() - 1) as u32
        } else {
            let at = self.oldest;
            let aged = self.entry(at).filter(|entry| self.has_aged(entry, now));
            let Some(old) = aged.map(|entry| entry.mac) else {
                return Learned::Full;
            };
            self.index.remove(&old);
            self.unlink(at);
            at
        };
        self.index.insert(mac, at);
        self.set(at, mac, port, now);
        Learned::New
    }

    /// Number of addresses that have not aged.
    pub(crate) fn len(&self, now: Tsc) -> usize {
        let live = |entry: &&Entry| !self.has_aged(entry, now);
        self.entries.iter().filter(live).count()
    }

    fn has_aged(&self, entry: &Entry, now: Tsc) -> bool {
        now.since(entry.seen) >= self.age
    }

    fn entry(&self, at: u32) -> Option<&Entry> {
        self.entries.get(at as usize)
    }

    fn entry_mut(&mut self, at: u32) -> Option<&mut Entry> {
        self.entries.get_mut(at as usize)
    }

    /// Takes an entry out of the list.
    fn unlink(&mut self, at: u32) {
        let Some(&Entry { older, newer, .. }) = self.entry(at) else {
            return;
        };
        match self.entry_mut(older) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
        match self.entry_mut(newer) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
    }

    /// Writes an entry, and appends it to the list as the newest.
    fn set(&mut self, at: u32, mac: MacAddr, port: u16, now: Tsc) {
        let older = self.newest;
        match self.entry_mut(older) {
            Some(entry) => entry.newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
        if let Some(entry) = self.entry_mut(at) {
            *entry = Entry {
                mac,
                port,
                seen: now,
                older,
                newer: NONE,
            };
        }
    }
}
