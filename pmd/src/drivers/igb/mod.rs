//! Intel's 82576, as its physical function (PF) drives it, alone or with virtual functions (VFs):
//! 1 Gb/s, eight queues each way, or one and up to seven VFs. Sections are those of the Intel
//! 82576EB Gigabit Ethernet Controller datasheet, revision 2.7.
//!
//! | | | module |
//! | --- | --- | --- |
//! | registers | as a table, and which of them are statistics | `registers.rs` |
//! | `Hardware` | the device as a whole: reset, link, filters | `hardware.rs` |
//! | `Plan` | the queues, of a virtual function too; what they are made of is in `intel` | `queues.rs` |
//! | [`Functions`] | configuration and requests of VFs | `functions.rs`, `vlans.rs` |
//! | messages | messages between PF and VF, and the PF's end of the mailbox | `message.rs`, `mailbox.rs` |
//! | `Housekeeper` | the thread that answers VFs | `housekeeping.rs` |
//! | `Drops` | counters of 12 bits, and the thread that reads them | `drops.rs`, `periodic.rs` |
//!
//! # Trust
//!
//! The driver trusts neither the device (as in `e1000e`) nor the VFs, which belong to other
//! processes. Every number of a message is checked. A request takes nothing from another VF, a
//! request for what no VF may have is refused and counted, and a VF cannot make the PF wait. The
//! device's pools and anti-spoofing separate the traffic of the VFs; the IOMMU, which has tables of
//! its own for each VF, separates their memory.

pub(super) mod drops;
#[doc(hidden)]
pub mod functions;
pub(crate) mod hardware;
mod housekeeping;
mod mailbox;
#[doc(hidden)]
pub mod message;
pub(crate) mod options;
mod periodic;
pub(crate) mod queues;
#[doc(hidden)]
pub mod registers;
mod vlans;

use std::sync::{Arc, Mutex, PoisonError};

use self::drops::DropReader;
use self::functions::{Functions, PfConfig};
use self::hardware::Hardware;
use self::housekeeping::Housekeeper;
use self::options::{Options, TAG};
use self::queues::Plan;
use self::registers::{
    EIAC, EIMS, GPIE, GPIE_CLEAR_BY_READ, GPIE_MSIX, GPIE_PENDING_BITS, IMS, IMS_LINK, IMS_MAILBOX,
    IVAR, IVAR_MISC, LOST, REGISTERS, RX, STATISTICS, TX, WINDOW,
};
use super::intel::counters::{Losses, Sums};
use super::intel::link::{Watched, rx_state, speed};
use crate::bus::exclusive::Exclusive;
use crate::bus::registers::Dump;
use crate::bus::{Bus, BusError, Device, Interrupts};
use crate::driver::rss::{RSS_KEY, RSS_TABLE, RssSupport};
use crate::driver::{Capabilities, Driver, Link, Queues, Statistics};
use crate::drivers::intel::RSS;
use crate::grant::MemoryGrant;
use crate::ledger::Tally;
use crate::net::MacAddr;
use crate::port::bus_error;
use crate::port::{PortConfig, PortError, QueueSupport, RxState, SharedRxState};
use crate::quarantine::Quarantine;
use crate::quarantine::quarantined;
use crate::spec::PortSpec;

/// The options that its specs have.
pub(crate) const OPTIONS: &[&str] = &[
    "mtu",
    "promisc",
    "multicast",
    "vlans",
    "vfs",
    "vf-macs",
    "vf-vlans",
    RSS_KEY.key,
    RSS_TABLE.key,
];

/// Most queues each way. The device has 16, and vectors for nine.
const QUEUES: u16 = 8;

/// Bytes of an Ethernet header.
pub(crate) const HEADER: usize = 14;

/// Vector of the mailboxes; those of receive queues come behind it.
const MAILBOX_VECTOR: u16 = 0;

/// In a register of vectors: this entry counts.
const VALID: u32 = 0x80;

/// Looks at a device and takes it over.
///
/// # Errors
/// An option's value, or a device that cannot be had or does not answer.
pub fn open<D: Device>(
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let options = Options::parse(spec)?;
    let port = spec.to_string();
    let device = Exclusive::new(device).map_err(bus_error(&port))?;
    let bus = device.bar(0, WINDOW).map_err(bus_error(&port))?;
    let clock = device.clock();
    let hardware = Hardware { bus, clock };
    let mut igb = Igb {
        device,
        hardware,
        grant,
        quarantine: Quarantine::new(port.clone()),
        port,
        mac: MacAddr::ZERO,
        options,
        counters: Arc::new(Sums::new(STATISTICS)),
        link: Arc::new(Watched::new()),
        state: SharedRxState::default(),
        has_functions: false,
        running: None,
    };
    // The previous owner may have left the device running.
    igb.rest()?;
    let mac = igb.hardware.mac();
    igb.mac = mac.map_err(|what| igb.failed(what))?;
    Ok(Box::new(igb))
}

struct Igb<D: Device> {
    device: Exclusive<D>,
    hardware: Hardware<D::Bus, D::Clock>,
    grant: MemoryGrant,
    /// What it was lent, and what it may still write: of the run that began last.
    quarantine: Quarantine,
    port: String,
    mac: MacAddr,
    options: Options,
    counters: Arc<Sums>,
    link: Arc<Watched>,
    /// State of the queues at the last [`Driver::link`].
    state: SharedRxState,
    /// It has had virtual functions made.
    has_functions: bool,
    running: Option<Running<D::Bus>>,
}

/// State of a running port. Fields are dropped in this order: the threads that access the device
/// end before its vectors are released.
struct Running<B: Bus> {
    /// Both end before the device is reset: they access registers.
    housekeeper: Option<Housekeeper>,
    drops: Option<DropReader<B>>,
    functions: Option<Arc<Mutex<Functions<B>>>>,
    _interrupts: Option<Arc<Interrupts>>,
}

impl<D: Device> Igb<D> {
    fn failed(&self, what: String) -> PortError {
        PortError::Device {
            port: self.port.clone(),
            what,
        }
    }

    /// Brings the device to rest: no interrupts, no frames, no access to memory, which is taken away
    /// from it. The quarantine is settled by its configuration space, or by the IOMMU.
    fn rest(&self) -> Result<(), PortError> {
        let reset = self
            .hardware
            .reset()
            .map_err(|what| self.failed(what.into()));
        let cut_off = self.device.cut_off();
        self.quarantine.settle(cut_off);
        reset
    }

    /// Has the virtual functions made that the port is to have.
    fn make_functions(&mut self) -> Result<(), BusError> {
        let count = self.options.vfs as u16;
        if count > 0 && !self.has_functions {
            self.device.set_virtual_functions(count)?;
            self.has_functions = true;
        }
        Ok(())
    }

    fn run(&self, config: &PortConfig) -> Result<(Queues, Running<D::Bus>), BusError> {
        let Self {
            hardware, options, ..
        } = self;
        let bus = &hardware.bus;
        let vfs = options.vfs;
        self.counters.clear(bus);
        let functions = if vfs > 0 {
            hardware.share_by_pool();
            let pf = PfConfig {
                mac: self.mac,
                filter: options.filter.clone(),
                vlans: options.vlans.clone(),
                longest: options.longest(),
            };
            let functions = Functions::new(bus, pf, &options.vf_configs(self.mac));
            Some(Arc::new(Mutex::new(functions)))
        } else {
            hardware.share_by_hash(config.rx_queues, &config.rss.or(&options.rss));
            hardware.set_filter(&options.filter);
            None
        };
        let interrupts = self.interrupts(config.rx_queues)?;
        hardware.start_link().map_err(|what| BusError::Device {
            device: self.device.name().into(),
            what: what.into(),
        })?;
        let longest = options.longest() + TAG;
        hardware.enable(&options.filter, longest, vfs > 0);
        // The physical function's pool is behind those of the virtual ones (section 7.10).
        let plan = Plan {
            device: &self.device,
            bus,
            longest: options.mtu as usize + HEADER + TAG as usize,
            blocks: (RX.of(vfs), TX.of(vfs), RX.step),
            interrupts: interrupts.clone().map(|all| (all, MAILBOX_VECTOR + 1)),
            state: &self.state,
            grant: self.grant,
            quarantine: &self.quarantine,
        };
        let (counters, registers) = (self.counters.clone(), bus.clone());
        let mut losses = Losses::after(&counters, LOST);
        let lost = move |tally: &mut Tally| losses.tell(&counters, &registers, tally);
        self.state.set(RxState::Live);
        let (queues, drops) = plan.start(config, lost)?;
        let drops = DropReader::start(&*self.device, drops)?;
        let housekeeper = match (&functions, &interrupts) {
            (Some(functions), Some(interrupts)) => Some(self.housekeeper(functions, interrupts)?),
            _ => None,
        };
        hardware.admit_functions();
        let running = Running {
            housekeeper,
            drops: Some(drops),
            functions,
            _interrupts: interrupts,
        };
        Ok((queues, running))
    }

    /// Switches vectors on: one for the mailboxes, and one for each receive queue (section 7.3).
    fn interrupts(&self, queues: u16) -> Result<Option<Arc<Interrupts>>, BusError> {
        let bus = &self.hardware.bus;
        let vectors = MAILBOX_VECTOR + 1 + queues;
        let interrupts = match self.device.interrupts(vectors) {
            Ok(interrupts) => interrupts,
            // Without interrupts no wait is possible; the queues can still be polled.
            Err(_) if self.options.vfs == 0 => return Ok(None),
            Err(error) => return Err(error),
        };
        // First, as other registers mean something else without it.
        let mode = GPIE_MSIX | GPIE_PENDING_BITS | GPIE_CLEAR_BY_READ;
        bus.write32(GPIE.at, mode);
        for (queue, vector) in (self.options.vfs..).zip(MAILBOX_VECTOR + 1..vectors) {
            bus.write32(IVAR.of(queue), VALID | u32::from(vector));
        }
        let others = VALID | u32::from(MAILBOX_VECTOR);
        bus.write32(IVAR_MISC.at, others << 8);
        bus.write32(EIAC.at, (1 << vectors) - 1);
        if self.options.vfs > 0 {
            bus.write32(EIMS.at, 1 << MAILBOX_VECTOR);
            bus.write32(IMS.at, IMS_MAILBOX | IMS_LINK);
        }
        Ok(Some(Arc::new(interrupts)))
    }

    fn housekeeper(
        &self,
        functions: &Arc<Mutex<Functions<D::Bus>>>,
        interrupts: &Arc<Interrupts>,
    ) -> Result<Housekeeper, BusError> {
        let (functions, hardware) = (functions.clone(), self.hardware.clone());
        let (link, mut was_up) = (self.link.clone(), false);
        let work = move || {
            // Before the mailboxes are read: a later event interrupts again.
            let mut has_changed = link.ask(|| hardware.has_link_changed());
            // Another may have seen the cause, which is cleared as it is read.
            let is_up = speed(hardware.status()).is_some();
            has_changed |= std::mem::replace(&mut was_up, is_up) != is_up;
            let mut functions = functions.lock().unwrap_or_else(PoisonError::into_inner);
            if has_changed {
                functions.notify_all();
            }
            functions.serve();
            hardware.bus.write32(EIMS.at, 1 << MAILBOX_VECTOR);
        };
        Housekeeper::start(interrupts.clone(), MAILBOX_VECTOR, work).map_err(|error| {
            BusError::System {
                device: self.device.name().into(),
                what: "cannot start the thread that answers virtual functions".into(),
                hint: String::new(),
                error,
            }
        })
    }
}

impl<D: Device> Driver for Igb<D> {
    fn capabilities(&self) -> Capabilities {
        // With pools the device does not share out by hash as well.
        let queues = if self.options.vfs > 0 { 1 } else { QUEUES };
        Capabilities {
            max_rx_queues: queues,
            max_tx_queues: queues,
            mac: Some(self.mac),
            max_frame: self.options.mtu as usize + HEADER,
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
        queues::validate(&self.port, config)?;
        match self
            .options
            .rss
            .refusal(config.rx_queues, self.rss_support())
        {
            Some((asked, offered)) => Err(PortError::Unsupported {
                port: self.port.clone(),
                asked,
                offered,
            }),
            None => Ok(()),
        }
    }

    /// With pools the device does not share out by hash as well.
    fn rss_support(&self) -> Option<RssSupport> {
        (self.options.vfs == 0).then_some(RSS)
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        self.make_functions().map_err(bus_error(&self.port))?;
        self.rest()?;
        self.quarantine = Quarantine::new(self.port.clone());
        let started = self.run(config).map_err(bus_error(&self.port));
        match started {
            Ok((queues, running)) => {
                self.running = Some(running);
                Ok(queues)
            }
            Err(error) => {
                // That it could not be started is what there is to tell.
                let _ = self.rest();
                Err(error)
            }
        }
    }

    fn stop(&mut self) -> Result<(), PortError> {
        if let Some(running) = &mut self.running {
            running.housekeeper = None;
            running.drops = None;
            if let Some(functions) = &running.functions {
                let mut functions = functions.lock().unwrap_or_else(PoisonError::into_inner);
                functions.leave();
            }
        }
        // A reset clears them.
        self.counters.statistics(&self.hardware.bus);
        let result = self.rest();
        self.running = None;
        result
    }

    fn link(&self) -> Link {
        let gone = self.device.is_gone();
        let hardware = &self.hardware;
        self.state.set(rx_state(hardware.status(), gone));
        if let Some(drops) = self.running.as_ref().and_then(|run| run.drops.as_ref()) {
            drops.read();
        }
        let (status, told) = (|| hardware.status(), || hardware.has_link_changed());
        self.link.look(status, told, gone, gone)
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.counters.statistics(&self.hardware.bus);
        let functions = self.running.as_ref().and_then(|run| run.functions.as_ref());
        if let Some(functions) = functions {
            let functions = functions.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(functions.statistics());
        }
        all.push(quarantined(&self.quarantine));
        all
    }

    fn registers(&self) -> String {
        let (bus, table) = (&self.hardware.bus, REGISTERS);
        Dump {
            bus,
            base: 0,
            table,
        }
        .to_string()
    }
}

impl<D: Device> Drop for Igb<D> {
    /// Stops a port that is dropped while it runs, and removes its virtual functions: without the
    /// physical function their frames are not switched.
    fn drop(&mut self) {
        if self.running.is_some() || !self.quarantine.is_empty() {
            let _ = self.stop();
        }
        if self.has_functions
            && let Err(error) = self.device.set_virtual_functions(0)
        {
            tracing::warn!("{}: virtual functions stay behind: {error}", self.port);
        }
    }
}
