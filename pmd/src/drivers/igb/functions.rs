//! The virtual functions (VFs) as their physical one keeps them: what each is given, what it may
//! ask for, and what it is kept from (datasheet sections 7.10.3 and 8.14).
//!
//! VF `n` is pool `n` of the device, the physical function the pool behind the last of them. A
//! frame from the wire, or from another pool, comes to the pools that have its address and are in
//! its VLAN, and to no others. A VF sends with the addresses that it has, into the VLANs that it is
//! in; what else it sends the device drops and tells of (anti-spoofing). A VF that does not take
//! its frames loses them: it holds up nobody, as its queues drop what there is no descriptor for.
//!
//! What several see is what is for several: broadcasts; and of multicast groups, a VF that receives
//! any also receives those that others here have asked for, as the device has one table for all.

use super::mailbox::{Events, PfEnd};
use super::message::{Groups, Message, Reply, Request, mac_words};
use super::registers::{
    DTXSWC, DTXSWC_LOOPBACK, DTXSWC_MAC_ANTI_SPOOF, DTXSWC_VLAN_ANTI_SPOOF, LONGEST, MBVFIMR, MTA,
    QDE, RAH, RAH_POOLS, RAH_VALID, RAL, RPLOLR, RPLOLR_STRIP_CRC, RPLOLR_STRIP_VLAN, VFRE, VFTE,
    VMOLR, VMOLR_BROADCAST, VMOLR_LONG, VMOLR_MULTICAST_ALL, VMOLR_MULTICAST_TABLE,
    VMOLR_STRIP_CRC, VMOLR_STRIP_VLAN, VMOLR_UNTAGGED, VMVIR, VMVIR_ALWAYS, VT_CTL,
    VT_CTL_DEFAULT_POOL, VT_CTL_NO_DEFAULT_POOL, VT_CTL_REPLICATE, WVBR,
};
use super::vlans::{ENTRIES, Vlans};
use crate::bus::Bus;
use crate::driver::Statistics;
use crate::driver::filter::{Filter, Multicast};
use crate::net::MacAddr;

/// Bytes of a VLAN tag, which a frame may have beyond the length that was asked for.
const TAG: u32 = 4;

/// Longest frame with its check sequence that a VF receives before it asks for longer ones.
const USUAL: u32 = 1518;

/// What a VF is to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its address.
    pub mac: MacAddr,
    /// It may not choose another one.
    pub fixed: bool,
    /// The VLAN that it is in without knowing it: its frames are tagged on the way out, and lose
    /// the tag on the way in.
    pub vlan: Option<u16>,
}

/// What the physical function itself receives.
pub struct Own {
    /// Its address.
    pub mac: MacAddr,
    /// What it receives beside the frames to that.
    pub filter: Filter,
    /// VLANs that it receives.
    pub vlans: Vec<u16>,
    /// Longest frame with its check sequence, without a tag.
    pub longest: u32,
}

/// A VF.
#[allow(clippy::struct_excessive_bools)] // independent of each other
struct Function {
    given: Given,
    /// The address that it has now.
    mac: MacAddr,
    /// It has told of its reset, and may ask.
    clear: bool,
    /// It is to be told that, as the answer to its reset does not say so, or that something is new.
    untold: bool,
    /// It has not read its last answer, which nothing may be written over.
    unread: bool,
    groups: Groups,
    all_groups: bool,
    longest: u32,
}

/// What was counted.
#[derive(Default)]
struct Counts {
    requests: u64,
    refused: u64,
    resets: u64,
    spoofed: u64,
}

/// All VFs of a device, one at least.
pub struct Functions<B> {
    bus: B,
    mailbox: PfEnd<B>,
    own: Own,
    vfs: Vec<Function>,
    vlans: Vlans,
    /// The multicast table, as it is in the device.
    table: [u32; 128],
    counts: Counts,
}

impl<B: Bus> Functions<B> {
    /// Sets up pools and filters of a device that was reset just now. No VF receives or sends
    /// before it has told of its own reset.
    pub fn new(bus: &B, own: Own, given: &[Given]) -> Self {
        let function = |&given: &Given| Function {
            given,
            mac: given.mac,
            clear: false,
            untold: false,
            unread: false,
            groups: Groups::default(),
            all_groups: false,
            longest: USUAL,
        };
        let mut functions = Self {
            bus: bus.clone(),
            mailbox: PfEnd(bus.clone()),
            own,
            vfs: given.iter().map(function).collect(),
            vlans: Vlans::default(),
            table: [0; 128],
            counts: Counts::default(),
        };
        functions.share_out();
        functions.set_up_own();
        functions
    }

    /// What holds for all pools.
    fn share_out(&self) {
        let Self { bus, vfs, .. } = self;
        let all = (1 << vfs.len()) - 1;
        // Frames for nobody are the physical function's where it wants all.
        let wants_all = self.own.filter.promiscuous;
        let rest = if wants_all { 0 } else { VT_CTL_NO_DEFAULT_POOL };
        let own = (vfs.len() as u32) << VT_CTL_DEFAULT_POOL.trailing_zeros();
        bus.write32(VT_CTL.at, own | rest | VT_CTL_REPLICATE);
        // Between pools the device is a switch.
        let anti_spoof = all << DTXSWC_MAC_ANTI_SPOOF.trailing_zeros()
            | all << DTXSWC_VLAN_ANTI_SPOOF.trailing_zeros();
        bus.write32(DTXSWC.at, DTXSWC_LOOPBACK | anti_spoof);
        // A full queue is no reason for others to wait.
        bus.write32(QDE.at, 0xffff);
        // Frames for several pools are treated alike: all VFs have a VLAN of their own, or none.
        let strip = vfs.iter().any(|vf| vf.given.vlan.is_some());
        let strip = if strip { RPLOLR_STRIP_VLAN } else { 0 };
        bus.write32(RPLOLR.at, RPLOLR_STRIP_CRC | strip);
        bus.write32(MBVFIMR.at, all);
    }

    /// The pool of the physical function.
    fn set_up_own(&mut self) {
        let pool = self.vfs.len();
        write_address(&self.bus, 0, Some((self.own.mac, pool)));
        for vf in 0..pool {
            self.silence(vf);
        }
        for id in std::mem::take(&mut self.own.vlans) {
            // There is room: the spec's list was checked.
            self.vlans.join(&self.bus, id, pool);
        }
        let groups = match &self.own.filter.multicast {
            Multicast::All => VMOLR_MULTICAST_ALL,
            Multicast::Listed(groups) if groups.is_empty() => 0,
            Multicast::Listed(_) => VMOLR_MULTICAST_TABLE,
        };
        self.write_offloads(pool, self.own.longest, groups);
        self.write_table();
        self.enable(pool, true);
    }

    /// What the device has told since this was asked last. Answers the VFs.
    pub fn serve(&mut self) {
        let all = (1 << self.vfs.len()) - 1;
        let refused = match self.bus.read32(WVBR.at) {
            // The device is gone.
            u32::MAX => 0,
            refused => refused & all,
        };
        self.counts.spoofed += u64::from(refused.count_ones());
        let Events { asked, read, reset } = self.mailbox.events();
        for vf in 0..self.vfs.len() {
            if reset & 1 << vf != 0 {
                self.counts.resets += 1;
                self.forget(vf);
            }
            if let Some(function) = self.vfs.get_mut(vf) {
                function.unread &= read & 1 << vf == 0;
            }
            if asked & 1 << vf != 0
                && let Some(message) = self.mailbox.take(vf)
            {
                let reply = self.decide(vf, &message);
                self.counts.requests += 1;
                self.counts.refused += u64::from(!matches!(reply, Reply::Granted(_)));
                self.mailbox.answer(vf, message[0], reply);
                if let Some(function) = self.vfs.get_mut(vf) {
                    function.unread = true;
                }
            }
        }
        // One that has its answer and asks no more. Linux's igbvf looks for the word that says that
        // it may ask, in whatever was said last, before it believes in its link.
        for (vf, function) in self.vfs.iter_mut().enumerate() {
            if function.untold && !function.unread {
                function.untold = !self.mailbox.tell(vf, function.clear);
            }
        }
    }

    /// Has each VF told that something is new, when it is served next: it looks at its link then.
    pub(super) fn tell_all(&mut self) {
        for function in &mut self.vfs {
            function.untold = true;
        }
    }

    /// The device is about to be reset: no VF receives or sends any more, and each is told.
    pub(super) fn leave(&mut self) {
        for vf in 0..self.vfs.len() {
            self.enable(vf, false);
            self.mailbox.tell(vf, false);
        }
    }

    /// What was counted, by name.
    pub fn statistics(&self) -> Statistics {
        let Counts {
            requests,
            refused,
            resets,
            spoofed,
        } = self.counts;
        vec![
            ("vf_requests".into(), requests),
            ("vf_requests_refused".into(), refused),
            ("vf_resets".into(), resets),
            ("vf_spoof_events".into(), spoofed),
        ]
    }

    /// Grants what a VF asks for, or not.
    fn decide(&mut self, vf: usize, message: &Message) -> Reply {
        let request = Request::parse(message);
        let Some(function) = self.vfs.get_mut(vf) else {
            return Reply::ResetFirst;
        };
        function.untold = false;
        match request {
            Some(Request::Reset) => {
                self.forget(vf);
                return self.welcome(vf);
            }
            _ if !function.clear => return Reply::ResetFirst,
            Some(Request::Mac(mac)) => {
                if !self.may_have(vf, mac) {
                    return Reply::Refused;
                }
                self.set_mac(vf, mac);
            }
            Some(Request::Groups(groups)) => {
                function.groups = groups;
                self.write_table();
                self.write_vf_offloads(vf);
            }
            Some(Request::AllGroups(on)) => {
                function.all_groups = on;
                self.write_vf_offloads(vf);
            }
            Some(Request::Longest(len)) => {
                if !(64..=LONGEST - TAG).contains(&len) {
                    return Reply::Refused;
                }
                function.longest = len;
                self.write_vf_offloads(vf);
            }
            Some(Request::Vlan { id, on }) => {
                if function.given.vlan.is_some() || !self.set_vlan(vf, id, on) {
                    return Reply::Refused;
                }
            }
            None => return Reply::Refused,
        }
        Reply::Granted(MacAddr::ZERO)
    }

    /// Nothing passes to or from a VF, and what it had asked for is gone: who has it next is to
    /// find what it is given, and others may have what this one had.
    fn forget(&mut self, vf: usize) {
        self.silence(vf);
        self.vlans.leave(&self.bus, None, vf);
        let Some(function) = self.vfs.get_mut(vf) else {
            return;
        };
        function.mac = function.given.mac;
        (function.clear, function.untold, function.unread) = (false, false, false);
        function.groups = Groups::default();
        function.all_groups = false;
        function.longest = USUAL;
        self.write_table();
    }

    fn silence(&self, vf: usize) {
        self.enable(vf, false);
        write_address(&self.bus, 1 + vf, None);
        self.bus.write32(VMOLR.of(vf), VMOLR_STRIP_CRC);
        self.bus.write32(VMVIR.of(vf), 0);
    }

    /// A VF that was reset begins.
    fn welcome(&mut self, vf: usize) -> Reply {
        let Some(function) = self.vfs.get_mut(vf) else {
            return Reply::Refused;
        };
        (function.clear, function.untold) = (true, true);
        let (mac, vlan) = (function.mac, function.given.vlan);
        self.set_mac(vf, mac);
        if let Some(id) = vlan {
            self.vlans.join(&self.bus, id, vf);
            self.bus.write32(VMVIR.of(vf), VMVIR_ALWAYS | u32::from(id));
        }
        self.write_vf_offloads(vf);
        self.enable(vf, true);
        Reply::Granted(mac)
    }

    /// A station's address that nobody else here has.
    fn may_have(&self, vf: usize, mac: MacAddr) -> bool {
        let is_own = |function: &Function| function.mac == mac;
        let others = (0..).zip(&self.vfs).filter(|&(other, _)| other != vf);
        let taken = mac == self.own.mac || others.map(|(_, other)| other).any(is_own);
        match self.vfs.get(vf) {
            Some(function) if function.given.fixed => function.mac == mac,
            _ => mac.is_unicast() && !taken,
        }
    }

    fn set_mac(&mut self, vf: usize, mac: MacAddr) {
        if let Some(function) = self.vfs.get_mut(vf) {
            function.mac = mac;
            write_address(&self.bus, 1 + vf, Some((mac, vf)));
        }
    }

    /// Joins or leaves a VLAN; false if the VF has as many as it may have, or the device as many
    /// as it can. No VF can take the entries of the others.
    fn set_vlan(&mut self, vf: usize, id: u16, on: bool) -> bool {
        if !on {
            self.vlans.leave(&self.bus, Some(id), vf);
            return true;
        }
        let own = self.vlans.of(self.vfs.len());
        let share = (ENTRIES - own) / self.vfs.len().max(1);
        self.vlans.of(vf) < share && self.vlans.join(&self.bus, id, vf)
    }

    fn write_vf_offloads(&self, vf: usize) {
        if let Some(function) = self.vfs.get(vf) {
            let flag = |on: bool, bit: u32| if on { bit } else { 0 };
            let more = flag(function.all_groups, VMOLR_MULTICAST_ALL)
                | flag(!function.groups.hashes().is_empty(), VMOLR_MULTICAST_TABLE)
                | flag(function.given.vlan.is_some(), VMOLR_STRIP_VLAN);
            self.write_offloads(vf, function.longest, more);
        }
    }

    /// What a pool receives, beside the frames to its address. A VF with a VLAN of its own
    /// receives no untagged frames: they are of another VLAN.
    fn write_offloads(&self, pool: usize, longest: u32, more: u32) {
        let untagged = match more & VMOLR_STRIP_VLAN {
            0 => VMOLR_UNTAGGED,
            _ => 0,
        };
        let usual = VMOLR_BROADCAST | VMOLR_STRIP_CRC | VMOLR_LONG;
        let longest = (longest + TAG).min(LONGEST);
        self.bus
            .write32(VMOLR.of(pool), usual | untagged | more | longest);
    }

    /// The groups that anybody receives.
    fn write_table(&mut self) {
        let own = match &self.own.filter.multicast {
            Multicast::Listed(groups) => groups.as_slice(),
            Multicast::All => &[],
        };
        let own = own.iter().map(|&group| super::message::group_hash(group));
        let theirs = self.vfs.iter().flat_map(|vf| vf.groups.hashes()).copied();
        let mut table = [0; 128];
        for hash in own.chain(theirs) {
            if let Some(row) = table.get_mut(usize::from(hash >> 5)) {
                *row |= 1_u32 << (hash & 31);
            }
        }
        for (i, (row, old)) in table.iter().zip(self.table).enumerate() {
            if *row != old {
                self.bus.write32(MTA.of(i), *row);
            }
        }
        self.table = table;
    }

    /// Whether a pool receives and sends.
    fn enable(&self, pool: usize, on: bool) {
        for register in [VFRE.at, VFTE.at] {
            let others = self.bus.read32(register) & !(1 << pool);
            self.bus.write32(register, others | u32::from(on) << pool);
        }
    }
}

/// Writes an entry of the list of addresses: what comes to it goes to that pool.
fn write_address(bus: &impl Bus, entry: usize, address: Option<(MacAddr, usize)>) {
    let (low, high) = address.map_or((0, 0), |(mac, pool)| {
        let [low, high] = mac_words(mac);
        let pool = 1 << (RAH_POOLS.trailing_zeros() as usize + pool);
        (low, high | pool | RAH_VALID)
    });
    // Not valid while it is half written.
    bus.write32(RAH.of(entry), 0);
    bus.write32(RAL.of(entry), low);
    bus.write32(RAH.of(entry), high);
}
