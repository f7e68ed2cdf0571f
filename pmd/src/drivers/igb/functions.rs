//! Virtual functions (VFs), seen from the physical function (PF): configuration, requests, and
//! isolation (datasheet sections 7.10.3 and 8.14).
//!
//! VF `n` has pool `n` of the device. The PF has the pool after that of the last VF. A pool
//! receives a frame, from the wire or from another pool, if the pool has the destination address
//! and is in the VLAN of the frame. A VF may send with its own source addresses and into its own
//! VLANs; the device drops all other frames of the VF and reports them (anti-spoofing). The queues
//! of a VF drop frames that find no descriptor, so a VF that does not poll loses only its own
//! frames and delays no other pool.
//!
//! Several pools receive broadcasts. Multicast groups are not separated: the device has one hash
//! table for all pools, so a VF that receives any group also receives the groups that other pools
//! of the device have requested.

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

/// Bytes of a VLAN tag. A frame may exceed the requested length by a tag.
const TAG: u32 = 4;

/// Longest frame, with its check sequence, that a VF receives before it requests another limit.
const USUAL: u32 = 1518;

/// Configuration of a VF by the PF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VfConfig {
    /// MAC address after a reset.
    pub mac: MacAddr,
    /// The VF may not change its address.
    pub fixed: bool,
    /// Port VLAN: the device tags the frames that the VF sends and strips the tag of those that it
    /// receives. The VF does not see the tag.
    pub vlan: Option<u16>,
}

/// Receive configuration of the PF.
pub struct PfConfig {
    /// MAC address.
    pub mac: MacAddr,
    /// Frames that the PF receives in addition to those to its address.
    pub filter: Filter,
    /// VLANs that the PF receives.
    pub vlans: Vec<u16>,
    /// Longest frame with its check sequence, without a tag.
    pub longest: u32,
}

/// State of a VF.
#[allow(clippy::struct_excessive_bools)] // independent of each other
struct Function {
    config: VfConfig,
    /// Current address.
    mac: MacAddr,
    /// The VF has reported its reset and may send requests.
    clear_to_send: bool,
    /// A notice is pending: the reply to a reset does not carry `CLEAR_TO_SEND`, or the link has
    /// changed.
    notice_due: bool,
    /// The VF has not read the last reply; the mailbox must not be overwritten.
    reply_unread: bool,
    groups: Groups,
    all_groups: bool,
    longest: u32,
}

/// Counters of requests and violations.
#[derive(Default)]
struct Counts {
    requests: u64,
    refused: u64,
    resets: u64,
    spoofed: u64,
}

/// The VFs of a device, at least one.
pub struct Functions<B> {
    bus: B,
    mailbox: PfEnd<B>,
    pf: PfConfig,
    vfs: Vec<Function>,
    vlans: Vlans,
    /// Copy of the device's multicast table.
    table: [u32; 128],
    counts: Counts,
}

impl<B: Bus> Functions<B> {
    /// Sets up pools and filters of a device after its reset. A VF neither receives nor sends
    /// until it has reported its own reset.
    pub fn new(bus: &B, pf: PfConfig, vfs: &[VfConfig]) -> Self {
        let function = |&config: &VfConfig| Function {
            config,
            mac: config.mac,
            clear_to_send: false,
            notice_due: false,
            reply_unread: false,
            groups: Groups::default(),
            all_groups: false,
            longest: USUAL,
        };
        let mut functions = Self {
            bus: bus.clone(),
            mailbox: PfEnd(bus.clone()),
            pf,
            vfs: vfs.iter().map(function).collect(),
            vlans: Vlans::default(),
            table: [0; 128],
            counts: Counts::default(),
        };
        functions.set_up_device();
        functions.set_up_pf();
        functions
    }

    /// Writes the registers that apply to all pools.
    fn set_up_device(&self) {
        let Self { bus, vfs, .. } = self;
        let all = (1 << vfs.len()) - 1;
        // A promiscuous PF receives the frames that match no pool.
        let promiscuous = self.pf.filter.promiscuous;
        let rest = if promiscuous {
            0
        } else {
            VT_CTL_NO_DEFAULT_POOL
        };
        let pf = (vfs.len() as u32) << VT_CTL_DEFAULT_POOL.trailing_zeros();
        bus.write32(VT_CTL.at, pf | rest | VT_CTL_REPLICATE);
        // The device switches frames between pools.
        let anti_spoof = all << DTXSWC_MAC_ANTI_SPOOF.trailing_zeros()
            | all << DTXSWC_VLAN_ANTI_SPOOF.trailing_zeros();
        bus.write32(DTXSWC.at, DTXSWC_LOOPBACK | anti_spoof);
        // A queue without descriptors drops its frames, so that other queues do not wait for it.
        bus.write32(QDE.at, 0xffff);
        // The device strips the tag of a replicated frame for all of its pools or for none; so
        // either all VFs have a port VLAN, or none has.
        let strip = vfs.iter().any(|vf| vf.config.vlan.is_some());
        let strip = if strip { RPLOLR_STRIP_VLAN } else { 0 };
        bus.write32(RPLOLR.at, RPLOLR_STRIP_CRC | strip);
        bus.write32(MBVFIMR.at, all);
    }

    /// Sets up the pool of the PF.
    fn set_up_pf(&mut self) {
        let pool = self.vfs.len();
        write_address(&self.bus, 0, Some((self.pf.mac, pool)));
        for vf in 0..pool {
            self.silence(vf);
        }
        for id in std::mem::take(&mut self.pf.vlans) {
            // The table has room: the length of the spec's list was checked.
            self.vlans.join(&self.bus, id, pool);
        }
        let groups = match &self.pf.filter.multicast {
            Multicast::All => VMOLR_MULTICAST_ALL,
            Multicast::Listed(groups) if groups.is_empty() => 0,
            Multicast::Listed(_) => VMOLR_MULTICAST_TABLE,
        };
        self.write_offloads(pool, self.pf.longest, groups);
        self.write_table();
        self.enable(pool, true);
    }

    /// Processes the events since the last call and replies to the VFs.
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
                function.reply_unread &= read & 1 << vf == 0;
            }
            if asked & 1 << vf != 0
                && let Some(message) = self.mailbox.take(vf)
            {
                let reply = self.decide(vf, &message);
                self.counts.requests += 1;
                self.counts.refused += u64::from(!matches!(reply, Reply::Granted(_)));
                self.mailbox.answer(vf, message[0], reply);
                if let Some(function) = self.vfs.get_mut(vf) {
                    function.reply_unread = true;
                }
            }
        }
        // A notice is sent once the VF has read its reply and has no request pending. Linux's igbvf
        // requires `CLEAR_TO_SEND` in the last message before it reports its link as up.
        for (vf, function) in self.vfs.iter_mut().enumerate() {
            if function.notice_due && !function.reply_unread {
                function.notice_due = !self.mailbox.notify(vf, function.clear_to_send);
            }
        }
    }

    /// Schedules a notice to each VF at the next [`serve`](Self::serve): a VF reads its link state
    /// then.
    pub(super) fn notify_all(&mut self) {
        for function in &mut self.vfs {
            function.notice_due = true;
        }
    }

    /// Disables and notifies all VFs, before a reset of the device.
    pub(super) fn leave(&mut self) {
        for vf in 0..self.vfs.len() {
            self.enable(vf, false);
            self.mailbox.notify(vf, false);
        }
    }

    /// Counters by name.
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

    /// Executes a request of a VF, or refuses it.
    fn decide(&mut self, vf: usize, message: &Message) -> Reply {
        let request = Request::parse(message);
        let Some(function) = self.vfs.get_mut(vf) else {
            return Reply::ResetFirst;
        };
        function.notice_due = false;
        match request {
            Some(Request::Reset) => {
                self.forget(vf);
                return self.welcome(vf);
            }
            _ if !function.clear_to_send => return Reply::ResetFirst,
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
                if function.config.vlan.is_some() || !self.set_vlan(vf, id, on) {
                    return Reply::Refused;
                }
            }
            None => return Reply::Refused,
        }
        Reply::Granted(MacAddr::ZERO)
    }

    /// Disables a VF and resets its state to its configuration. The next owner of the VF inherits
    /// nothing, and other VFs may take the released address and VLANs.
    fn forget(&mut self, vf: usize) {
        self.silence(vf);
        self.vlans.leave(&self.bus, None, vf);
        let Some(function) = self.vfs.get_mut(vf) else {
            return;
        };
        function.mac = function.config.mac;
        function.clear_to_send = false;
        function.notice_due = false;
        function.reply_unread = false;
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

    /// Enables a VF that has reported its reset.
    fn welcome(&mut self, vf: usize) -> Reply {
        let Some(function) = self.vfs.get_mut(vf) else {
            return Reply::Refused;
        };
        (function.clear_to_send, function.notice_due) = (true, true);
        let (mac, vlan) = (function.mac, function.config.vlan);
        self.set_mac(vf, mac);
        if let Some(id) = vlan {
            self.vlans.join(&self.bus, id, vf);
            self.bus.write32(VMVIR.of(vf), VMVIR_ALWAYS | u32::from(id));
        }
        self.write_vf_offloads(vf);
        self.enable(vf, true);
        Reply::Granted(mac)
    }

    /// Whether a VF may take an address: a unicast address that no other function of the device
    /// has, or its own where that is fixed.
    fn may_have(&self, vf: usize, mac: MacAddr) -> bool {
        let is_own = |function: &Function| function.mac == mac;
        let others = (0..).zip(&self.vfs).filter(|&(other, _)| other != vf);
        let taken = mac == self.pf.mac || others.map(|(_, other)| other).any(is_own);
        match self.vfs.get(vf) {
            Some(function) if function.config.fixed => function.mac == mac,
            _ => mac.is_unicast() && !taken,
        }
    }

    fn set_mac(&mut self, vf: usize, mac: MacAddr) {
        if let Some(function) = self.vfs.get_mut(vf) {
            function.mac = mac;
            write_address(&self.bus, 1 + vf, Some((mac, vf)));
        }
    }

    /// Joins or leaves a VLAN; false if the VF has used up its share of the table, or the table is
    /// full. The shares keep a VF from using up the entries of the others.
    fn set_vlan(&mut self, vf: usize, id: u16, on: bool) -> bool {
        if !on {
            self.vlans.leave(&self.bus, Some(id), vf);
            return true;
        }
        let of_pf = self.vlans.of(self.vfs.len());
        let share = (ENTRIES - of_pf) / self.vfs.len().max(1);
        self.vlans.of(vf) < share && self.vlans.join(&self.bus, id, vf)
    }

    fn write_vf_offloads(&self, vf: usize) {
        if let Some(function) = self.vfs.get(vf) {
            let flag = |on: bool, bit: u32| if on { bit } else { 0 };
            let more = flag(function.all_groups, VMOLR_MULTICAST_ALL)
                | flag(!function.groups.hashes().is_empty(), VMOLR_MULTICAST_TABLE)
                | flag(function.config.vlan.is_some(), VMOLR_STRIP_VLAN);
            self.write_offloads(vf, function.longest, more);
        }
    }

    /// Writes what a pool receives in addition to the frames to its address. A VF with a port VLAN
    /// receives no untagged frames: they belong to another VLAN.
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

    /// Writes the multicast table: the groups of all functions.
    fn write_table(&mut self) {
        let of_pf = match &self.pf.filter.multicast {
            Multicast::Listed(groups) => groups.as_slice(),
            Multicast::All => &[],
        };
        let of_pf = of_pf.iter().map(|&group| super::message::group_hash(group));
        let of_vfs = self.vfs.iter().flat_map(|vf| vf.groups.hashes()).copied();
        let mut table = [0; 128];
        for hash in of_pf.chain(of_vfs) {
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

    /// Enables or disables receive and transmit of a pool.
    fn enable(&self, pool: usize, on: bool) {
        for register in [VFRE.at, VFTE.at] {
            let others = self.bus.read32(register) & !(1 << pool);
            self.bus.write32(register, others | u32::from(on) << pool);
        }
    }
}

/// Writes an entry of the receive address table: frames to the address go to the pool.
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
