//! Which pools are in which VLANs: 32 entries of an identifier and its pools (VLVF), and a table of
//! the identifiers that pass at all (VFTA; datasheet sections 7.10.3 and 8.10).

use super::registers::{VFTA, VLVF, VLVF_POOLS, VLVF_VALID};
use crate::bus::Bus;

/// Entries that there are.
pub(super) const ENTRIES: usize = 32;

/// An entry; without pools it is free.
#[derive(Clone, Copy, Default)]
struct Entry {
    id: u16,
    pools: u8,
}

/// The entries, as they are in the device.
#[derive(Default)]
pub(super) struct Vlans([Entry; ENTRIES]);

impl Vlans {
    /// Has a pool receive the frames of a VLAN; false if there is no entry left.
    pub(super) fn join(&mut self, bus: &impl Bus, id: u16, pool: usize) -> bool {
        let taken = |entry: &Entry| entry.pools != 0;
        let has = self.0.iter().position(|e| taken(e) && e.id == id);
        let Some(at) = has.or_else(|| self.0.iter().position(|e| !taken(e))) else {
            return false;
        };
        let pools = self.0.get(at).map_or(0, |entry| entry.pools) | 1 << pool;
        self.set(bus, at, Entry { id, pools });
        true
    }

    /// Has a pool leave a VLAN, or all of them.
    pub(super) fn leave(&mut self, bus: &impl Bus, id: Option<u16>, pool: usize) {
        for at in 0..ENTRIES {
            let entry = self.0.get(at).copied().unwrap_or_default();
            let is_meant = id.is_none_or(|id| id == entry.id);
            if is_meant && entry.pools & 1 << pool != 0 {
                let pools = entry.pools & !(1 << pool);
                self.set(bus, at, Entry { pools, ..entry });
            }
        }
    }

    /// How many VLANs a pool is in.
    pub(super) fn of(&self, pool: usize) -> usize {
        let is_in = |entry: &&Entry| entry.pools & 1 << pool != 0;
        self.0.iter().filter(is_in).count()
    }

    fn set(&mut self, bus: &impl Bus, at: usize, entry: Entry) {
        let Some(slot) = self.0.get_mut(at) else {
            return;
        };
        *slot = entry;
        let pools = u32::from(entry.pools) << VLVF_POOLS.trailing_zeros();
        let valid = if entry.pools == 0 { 0 } else { VLVF_VALID };
        bus.write32(VLVF.of(at), valid | pools | u32::from(entry.id));
        // An identifier has one entry, so with it goes its bit.
        let row = VFTA.of(usize::from(entry.id >> 5));
        let bit = 1 << (entry.id & 31);
        let others = bus.read32(row) & !bit;
        bus.write32(row, others | if entry.pools == 0 { 0 } else { bit });
    }
}
