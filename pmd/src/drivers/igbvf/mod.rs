//! A virtual function (VF) of the 82576: one queue each way, in a process or a virtual machine of
//! its own. Sections are those of the Intel 82576EB Gigabit Ethernet Controller datasheet, revision
//! 2.7.
//!
//! | | | module |
//! | --- | --- | --- |
//! | registers | as a table | `registers.rs` |
//! | `VfEnd` | the mailbox, by which it asks its physical function (PF) | `mailbox.rs` |
//! | `Counters` | statistics | `counters.rs` |
//! | queues, messages | as the physical function's | `igb/queues.rs`, `igb/message.rs` |
//! | tests | of both drivers together | `igb/tests/` |
//!
//! Its PF belongs to others: Linux's igb, or a port of ours with `vfs=`. It gives the VF its
//! address and opens its filters, and resets it when it likes. Its replies are checked, and waited
//! for a bounded time; a request that it refuses is an error of the start. When it is reset, so are
//! its VFs: their link is down then, until the port is stopped and started.

mod counters;
mod mailbox;
mod registers;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use self::counters::Counters;
use self::mailbox::{Failure, VfEnd};
use self::registers::{
    CTRL, CTRL_RESET, EIAC, EIMC, REGISTERS, RX, STATUS, TX, VTIVAR, VTIVAR_RX_VALID, WINDOW,
};
use super::igb::HEADER;
use super::igb::drops::DropReader;
use super::igb::message::{Groups, MAX_GROUPS, Request};
use super::igb::options::{OVERHEAD, TAG, VLANS, mtu, vlans};
use super::igb::queues::{self, Plan};
use super::intel::link::{Watched, rx_state};
use crate::bus::exclusive::Exclusive;
use crate::bus::registers::Dump;
use crate::bus::{Bus, BusError, Device, Interrupts};
use crate::driver::filter::{Filter, MULTICAST, Multicast};
use crate::driver::{Capabilities, Driver, Link, Queues, Statistics};
use crate::grant::MemoryGrant;
use crate::net::MacAddr;
use crate::port::bus_error;
use crate::port::{PortConfig, PortError, QueueSupport, RxState, SharedRxState};
use crate::quarantine::Quarantine;
use crate::quarantine::quarantined;
use crate::spec::PortSpec;

/// The options that its specs have.
pub(crate) const OPTIONS: &[&str] = &["mtu", "multicast", "vlans"];

/// Looks at a device and takes it over.
///
/// # Errors
/// An option's value, or a device that cannot be had, or whose physical function does not answer.
pub fn open<D: Device>(
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let mtu = mtu(spec)?;
    let Filter { multicast, .. } = Filter::from_spec(spec)?;
    let (groups, all_groups) = match &multicast {
        Multicast::All => (Some(Groups::default()), true),
        Multicast::Listed(listed) => (Groups::new(listed), false),
    };
    let groups = groups.ok_or_else(|| {
        let value = spec.option(MULTICAST.key).unwrap_or_default();
        let expected = format!("at most {MAX_GROUPS} groups, or all");
        spec.bad_value(MULTICAST.key, value, &expected)
    })?;
    let vlans = vlans(spec, VLANS.key)?.unwrap_or_default();
    let port = spec.to_string();
    let device = Exclusive::new(device).map_err(bus_error(&port))?;
    let bus = device.bar(0, WINDOW).map_err(bus_error(&port))?;
    let mailbox = VfEnd::new(bus.clone(), device.clock());
    let mut igbvf = Igbvf {
        grant,
        quarantine: Quarantine::new(port.clone()),
        port,
        mac: MacAddr::ZERO,
        mtu,
        groups,
        all_groups,
        vlans,
        counters: Counters::new(),
        link: Watched::new(),
        lost: Arc::default(),
        state: SharedRxState::default(),
        drops: None,
        mailbox: Mutex::new(mailbox),
        interrupts: None,
        device,
        bus,
    };
    igbvf
        .device
        .set_bus_master(false)
        .map_err(bus_error(&igbvf.port))?;
    igbvf.begin()?;
    Ok(Box::new(igbvf))
}

struct Igbvf<D: Device> {
    device: Exclusive<D>,
    bus: D::Bus,
    grant: MemoryGrant,
    /// What it was lent, and what it may still write: of the run that began last.
    quarantine: Quarantine,
    port: String,
    mac: MacAddr,
    mtu: u32,
    groups: Groups,
    all_groups: bool,
    vlans: Vec<u16>,
    counters: Counters,
    link: Watched,
    /// The physical function was reset under the running port, or the function's owner wants it
    /// back.
    lost: Arc<AtomicBool>,
    /// State of the queue at the last [`Driver::link`].
    state: SharedRxState,
    /// While it runs. Ends before a reset: it reads registers.
    drops: Option<DropReader<D::Bus>>,
    mailbox: Mutex<VfEnd<D::Bus, D::Clock>>,
    /// While it runs.
    interrupts: Option<Arc<Interrupts>>,
}

impl<D: Device> Igbvf<D> {
    fn failed(&self, what: &str) -> PortError {
        PortError::Device {
            port: self.port.clone(),
            what: what.into(),
        }
    }

    /// Has the function begin anew, with the address that it is given.
    fn begin(&mut self) -> Result<(), PortError> {
        self.bus.write32(EIMC.at, u32::MAX);
        self.bus.write32(CTRL.at, CTRL_RESET);
        let mailbox = self
            .mailbox
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let answer = mailbox
            .wait_for_pf()
            .and_then(|()| match mailbox.ask(&Request::Reset) {
                // Linux's igb sends no address to a function without a configured one, which
                // chooses its own.
                Err(Failure::Refused) => {
                    let mac = if self.mac.is_unicast() {
                        self.mac
                    } else {
                        random_mac()
                    };
                    mailbox.ask(&Request::Mac(mac)).map(|_| mac)
                }
                other => other,
            });
        match answer {
            Ok(mac) if mac.is_unicast() => {
                self.mac = mac;
                self.lost.store(false, Ordering::Relaxed);
                Ok(())
            }
            Ok(mac) => Err(self.failed(&format!(
                "the physical function gives it {mac}, which is no station's address; give it \
                 another there"
            ))),
            Err(failure) => Err(self.failed(&why(failure, "an address"))),
        }
    }

    /// Asks for all that the spec says.
    fn ask_for_all(&self) -> Result<(), PortError> {
        let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ask = |request: &Request, what: &str| {
            mailbox
                .ask(request)
                .map_err(|failure| self.failed(&why(failure, what)))
        };
        ask(
            &Request::Longest(self.mtu + OVERHEAD),
            "frames that long (mtu)",
        )?;
        if !self.groups.hashes().is_empty() {
            ask(&Request::Groups(self.groups), "multicast groups")?;
        }
        if self.all_groups {
            ask(&Request::AllGroups(true), "all multicast groups")?;
        }
        for &id in &self.vlans {
            ask(&Request::Vlan { id, on: true }, "a VLAN")?;
        }
        Ok(())
    }

    fn run(&mut self, config: &PortConfig) -> Result<Queues, BusError> {
        let Self { bus, .. } = &*self;
        self.counters.begin(bus);
        // Without interrupts no wait is possible; the queue can still be polled.
        let interrupts = self.device.interrupts(1).ok().map(Arc::new);
        if interrupts.is_some() {
            bus.write32(VTIVAR.at, VTIVAR_RX_VALID);
            bus.write32(EIAC.at, 1);
        }
        let plan = Plan {
            device: &self.device,
            bus,
            longest: self.mtu as usize + HEADER + TAG as usize,
            blocks: (RX.at, TX.at, 0),
            interrupts: interrupts.clone().map(|all| (all, 0)),
            state: &self.state,
            grant: self.grant,
            quarantine: &self.quarantine,
        };
        self.state.set(RxState::Live);
        let (queues, drops) = plan.start(config, |_| ())?;
        self.drops = Some(DropReader::start(&*self.device, drops)?);
        self.interrupts = interrupts;
        Ok(queues)
    }

    /// Brings the function to rest, and takes its memory away from it. It does not acknowledge a
    /// reset: that it is at rest is proven by its configuration space, or by the IOMMU.
    ///
    /// # Errors
    /// It is not proven.
    fn rest(&mut self) -> Result<(), PortError> {
        self.drops = None;
        self.bus.write32(CTRL.at, CTRL_RESET);
        let cut_off = self.device.cut_off();
        self.interrupts = None;
        if self.quarantine.settle(cut_off) {
            return Ok(());
        }
        Err(self.failed(
            "it does not come to rest, so that its pool does without the buffers that it may still \
             write; have its physical function reset, or power the device off",
        ))
    }
}

/// What a failure means, and what to do about it.
fn why(failure: Failure, what: &str) -> String {
    let pf = "the physical function";
    match failure {
        Failure::Absent => format!(
            "{pf} has no driver, or is being reset: bind it to its kernel driver, or start a port \
             on it with vfs="
        ),
        Failure::Silent => format!("{pf} does not answer when asked for {what}; restart its port"),
        Failure::Refused => format!(
            "{pf} refuses {what}: leave that out of the port's spec, or allow it there (vf-macs= \
             and vf-vlans= of its port; with the kernel's driver: `ip link set DEVICE vf N trust \
             on`)"
        ),
        Failure::Forgotten => format!("{pf} was reset in between; start the port again"),
    }
}

/// A local address (IEEE 802-2014 section 8.2.2).
fn random_mac() -> MacAddr {
    let [a, b, c, d, e, f, ..] = RandomState::new().hash_one(0).to_le_bytes();
    MacAddr([a & !1 | 2, b, c, d, e, f])
}

impl<D: Device> Driver for Igbvf<D> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: 1,
            max_tx_queues: 1,
            mac: Some(self.mac),
            max_frame: self.mtu as usize + HEADER,
            checksum_offload: true,
            wire_time: false,
            recorded: false,
            kernel_backed: false,
        }
    }

    fn queue_support(&self) -> QueueSupport {
        QueueSupport::ALL
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        queues::validate(&self.port, config)
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        self.begin()?;
        self.quarantine = Quarantine::new(self.port.clone());
        let port = self.port.clone();
        let started = self
            .ask_for_all()
            .and_then(|()| self.run(config).map_err(bus_error(&port)));
        started.inspect_err(|_| {
            // That it could not be started is what there is to tell.
            let _ = self.rest();
        })
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.counters.statistics(&self.bus);
        self.rest()
    }

    fn link(&self) -> Link {
        let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = self.device.is_gone();
        if mailbox.pf_was_reset() || gone {
            self.lost.store(true, Ordering::Relaxed);
        }
        let lost = self.lost.load(Ordering::Relaxed);
        let status = || self.bus.read32(STATUS.at);
        self.state.set(rx_state(status(), lost));
        if let Some(drops) = &self.drops {
            drops.read();
        }
        self.link.look(status, || false, lost, gone)
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.counters.statistics(&self.bus);
        all.push(quarantined(&self.quarantine));
        all
    }

    fn registers(&self) -> String {
        let (bus, table) = (&self.bus, REGISTERS);
        Dump {
            bus,
            base: 0,
            table,
        }
        .to_string()
    }
}

impl<D: Device> Drop for Igbvf<D> {
    /// A port that is dropped while it runs has not been stopped.
    fn drop(&mut self) {
        if !self.quarantine.is_empty() {
            let _ = self.rest();
        }
    }
}
