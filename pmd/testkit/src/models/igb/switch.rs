//! Which queues a frame comes to (sections 7.1.1 and 7.10.3).

use pollux_pmd::drivers::igb::message::{group_hash, words_mac};
use pollux_pmd::drivers::igb::registers::*;
use pollux_pmd::net::MacAddr;

use super::Chip;

/// Tag of a VLAN.
const TAG: [u8; 2] = [0x81, 0];

fn address(frame: &[u8], at: usize) -> MacAddr {
    let octets = frame
        .get(at..at + 6)
        .and_then(|octets| octets.try_into().ok());
    MacAddr(octets.unwrap_or_default())
}

fn vlan(frame: &[u8]) -> Option<u16> {
    let tag: [u8; 4] = frame.get(12..16)?.try_into().ok()?;
    let [a, b, c, d] = tag;
    ([a, b] == TAG).then_some(u16::from_be_bytes([c, d]) & 0xfff)
}

impl Chip {
    /// A frame that a pool sends: to other pools, to the wire, or nowhere.
    pub(super) fn switch(&mut self, mut frame: Vec<u8>, source: Option<usize>) {
        let Some(pool) = source else {
            return self.wire.push_back(frame);
        };
        let tag = self.get(VMVIR.of(pool));
        if tag & VMVIR_ALWAYS != 0 {
            let [high, low] = (tag as u16).to_be_bytes();
            frame.splice(12..12, [TAG[0], TAG[1], high, low]);
        }
        let spoofs = self.get(DTXSWC.at);
        let from = address(&frame, 6);
        let bad_address = spoofs & 1 << pool != 0 && self.addressed(from) & 1 << pool == 0;
        let others = |id| self.members(id) & 1 << pool == 0;
        let bad_vlan = spoofs & 1 << (8 + pool) != 0 && vlan(&frame).is_some_and(others);
        if bad_address || bad_vlan {
            self.spoofed += 1;
            return self.set_bits(WVBR.at, 1 << pool, true);
        }
        if !self.has(DTXSWC.at, DTXSWC_LOOPBACK) {
            return self.wire.push_back(frame);
        }
        let local = self.receive(&frame, source);
        let is_group = frame.first().is_some_and(|first| first & 1 != 0);
        if !local || is_group {
            self.wire.push_back(frame);
        }
    }

    /// Pools that have an address.
    fn addressed(&self, mac: MacAddr) -> u32 {
        let entry = |i: usize| (self.get(RAL.of(i)), self.get(RAH.of(i)));
        let is_it =
            |&(low, high): &(u32, u32)| high & RAH_VALID != 0 && words_mac([low, high]) == mac;
        let pools = |(_, high): (u32, u32)| (high & RAH_POOLS) >> RAH_POOLS.trailing_zeros();
        // Without pools any entry will do.
        let all = (0..16).map(entry).filter(is_it);
        all.fold(0, |found, entry| found | pools(entry) | 1 << 31)
    }

    /// Pools that are in a VLAN.
    fn members(&self, id: u16) -> u32 {
        let entries = (0..32).map(|i| self.get(VLVF.of(i)));
        let is_it = |entry: &u32| entry & VLVF_VALID != 0 && entry & VLVF_ID == id.into();
        let pools = |entry: u32| (entry & VLVF_POOLS) >> VLVF_POOLS.trailing_zeros();
        entries
            .filter(is_it)
            .fold(0, |found, entry| found | pools(entry))
    }

    fn in_table(&self, group: MacAddr) -> bool {
        let hash = usize::from(group_hash(group));
        self.has(MTA.of(hash >> 5), 1 << (hash & 31))
    }

    /// A frame arrives whose check sequence is wrong.
    pub fn receive_broken(&mut self) {
        self.set(CRCERRS.at, self.get(CRCERRS.at).wrapping_add(1));
    }

    /// A frame comes in front of the queues; whether any pool has its address.
    pub(super) fn receive(&mut self, frame: &[u8], source: Option<usize>) -> bool {
        let to = address(frame, 0);
        if !self.pool_mode() {
            let is_group = to.0[0] & 1 != 0;
            let wanted = self.addressed(to) != 0
                || to == MacAddr::BROADCAST && self.has(RCTL.at, RCTL_BROADCAST)
                || is_group && (self.has(RCTL.at, RCTL_MULTICAST_ALL) || self.in_table(to))
                || !is_group && self.has(RCTL.at, RCTL_UNICAST_ALL);
            if wanted && frame.len() as u32 + 4 > self.get(RLPML.at) {
                self.set(ROC.at, self.get(ROC.at).wrapping_add(1));
            } else if wanted {
                self.enqueue(self.hashed_queue(frame), frame.to_vec());
            }
            return wanted;
        }
        let by_address = self.addressed(to) & 0xff;
        let pools = self.pools(frame, to, by_address, source);
        for pool in (0..8).filter(|pool| pools & 1 << pool != 0 && Some(*pool) != source) {
            let strip = match to.0[0] & 1 {
                0 => self.has(VMOLR.of(pool), VMOLR_STRIP_VLAN),
                _ => self.has(RPLOLR.at, RPLOLR_STRIP_VLAN),
            };
            let mut copy = frame.to_vec();
            if strip && vlan(frame).is_some() {
                copy.drain(12..16);
            }
            self.enqueue(pool, copy);
        }
        by_address != 0
    }

    /// Pools that a frame is for.
    fn pools(&self, frame: &[u8], to: MacAddr, by_address: u32, source: Option<usize>) -> u32 {
        let with = |bit| {
            (0..8)
                .filter(|&pool| self.has(VMOLR.of(pool), bit))
                .fold(0, |all, pool| all | 1 << pool)
        };
        let group = to.0[0] & 1 != 0;
        let mut pools = match to {
            MacAddr::BROADCAST => with(VMOLR_BROADCAST),
            _ if group && self.in_table(to) => {
                with(VMOLR_MULTICAST_TABLE) | with(VMOLR_MULTICAST_ALL)
            }
            _ if group => with(VMOLR_MULTICAST_ALL),
            _ => by_address,
        };
        if self.has(RCTL.at, RCTL_VLAN_FILTER) {
            pools &= match vlan(frame) {
                Some(id) => self.members(id),
                None => with(VMOLR_UNTAGGED),
            };
        }
        let control = self.get(VT_CTL.at);
        if by_address == 0 && !group && source.is_none() && control & VT_CTL_NO_DEFAULT_POOL == 0 {
            pools = 1 << ((control & VT_CTL_DEFAULT_POOL) >> VT_CTL_DEFAULT_POOL.trailing_zeros());
        }
        let fits = |pool: &usize| {
            let limits = self.get(VMOLR.of(*pool));
            limits & VMOLR_LONG != 0 && frame.len() as u32 + 4 <= limits & VMOLR_LONGEST
        };
        let fitting = (0..8).filter(fits).fold(0, |all, pool| all | 1 << pool);
        pools & fitting & self.get(VFRE.at)
    }
}
