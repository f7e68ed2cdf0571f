//! Virtio network devices on the PCI bus: virtio 1.2 sections 4.1 and 5.1, by the modern interface
//! alone. QEMU's `virtio-net-pci`, clouds, and SmartNICs and vDPA devices that speak it.
//!
//! The device has vendor capabilities that say where its registers are (`capability.rs`): common
//! ones, by which it is reset, agrees on features and is told of queues (`common.rs`), its own
//! configuration (`config.rs`), and one for each queue that is written when there is something in it
//! (`notify.rs`). Frames pass through the rings of [`super`], set up in `start.rs`; what is to be
//! received is said through the control queue (`control.rs`).
//!
//! # Trust
//!
//! The device is believed nothing: where its registers are, how many queues of which size it has,
//! and all that it writes into rings is checked. That it is at rest is proven before a buffer that it
//! could still write to is given back (`running.rs`): where it does not confirm that, it is kept off
//! the bus, or its memory is unmapped behind the IOMMU, or the buffer is not given back. A queue
//! that is dropped leaves its buffers in the port's quarantine, and the others go on; what the
//! device receives for it is lost. A device that does not go by the IOMMU
//! (`VIRTIO_F_ACCESS_PLATFORM`) is refused where there is one: it would take our addresses for
//! physical ones.

mod capability;
mod common;
mod config;
mod control;
mod error;
#[cfg(any(test, fuzzing))]
pub mod hostile;
#[cfg(any(test, fuzzing))]
mod model;
mod notify;
mod queue;
mod registers;
mod running;
mod start;
#[cfg(test)]
mod tests;
mod wait;
mod window;

use std::cell::Cell;
use std::sync::Arc;

use self::registers::Registers;
use self::running::Running;
use self::start::{Start, holds};
use crate::bus::Device;
use crate::driver::filter::{Filter, MULTICAST, Multicast, PROMISC};
use crate::driver::{Capabilities, Driver, Link, Queues, Statistics};
use crate::drivers::virtio::Features;
use crate::grant::MemoryGrant;
use crate::port::bus_error;
use crate::port::{PortConfig, PortError};
use crate::quarantine::Quarantine;
use crate::quarantine::quarantined;
use crate::spec::PortSpec;

/// Ethernet: addresses and type, and a VLAN tag more.
const HEADER: usize = 14;
const TAG: usize = 4;

/// Pairs of queues that are offered, however many a device has: each takes memory.
const MOST_PAIRS: u16 = 256;

/// What holds where nobody says otherwise.
const MTU: usize = 1500;

/// The link as it was seen last.
#[derive(Clone, Copy, Default)]
struct Seen {
    up: bool,
    generation: u8,
    changes: u64,
}

struct VirtioPci<D: Device> {
    spec: String,
    device: Arc<D>,
    registers: Arc<Registers<D::Bus>>,
    filter: Filter,
    mtu: usize,
    running: Option<Arc<Running<D>>>,
    grant: MemoryGrant,
    /// What it was lent, and what it may still write: of the run that began last.
    quarantine: Quarantine,
    seen: Cell<Seen>,
}

/// Those of the options of `pci` that the driver has.
pub(crate) const OPTIONS: &[&str] = &["mtu", PROMISC.key, MULTICAST.key];

/// Takes a device over, and leaves it at rest.
///
/// # Errors
/// A device that is none of the standard's, or does not offer what the spec asks for.
pub(crate) fn open<D: Device>(
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let port = spec.to_string();
    let unsupported = |asked: String, offered: String| {
        let port = spec.to_string();
        Err(PortError::Unsupported {
            port,
            asked,
            offered,
        })
    };
    let registers = Registers::find(&*device).map_err(bus_error(&port))?;
    let Registers { offered, facts, .. } = registers;
    if !offered.contains(Features::ACCESS_PLATFORM) && !spec.switch("noiommu", false)? {
        return Err(PortError::Device {
            port,
            what: "it would take the IOMMU's addresses for physical ones, as it does not offer \
                   VIRTIO_F_ACCESS_PLATFORM: give it iommu_platform=on (QEMU)"
                .into(),
        });
    }
    // Section 5.1.4.1; with the most there would be no number for the control queue.
    if !(1..0x8000).contains(&facts.max_pairs) {
        let what = format!(
            "it says that it has {} pairs of queues, which none can have: update the machine's \
             monitor, or give it one pair (QEMU: mq=off)",
            facts.max_pairs
        );
        return Err(PortError::Device { port, what });
    }
    let filter = Filter::from_spec(spec)?;
    let by_control = Features::CONTROL | Features::CONTROL_RX;
    if filter != Filter::default() && !offered.contains(by_control) {
        let asked = "a choice of what is received".into();
        return unsupported(asked, "none (no VIRTIO_NET_F_CTRL_RX)".into());
    }
    if let Multicast::Listed(listed) = &filter.multicast
        && listed.len() > control::MOST_ADDRESSES
    {
        let most = control::MOST_ADDRESSES;
        let asked = format!("{} multicast addresses", listed.len());
        return unsupported(asked, format!("{most}, or multicast=all"));
    }
    let most = facts.mtu.map(usize::from);
    let mtu = spec.number("mtu", 68..=65535)?;
    if let (Some(asked), Some(most)) = (mtu, most)
        && asked > most
    {
        return unsupported(format!("an MTU of {asked}"), format!("at most {most}"));
    }
    Ok(Box::new(VirtioPci {
        grant,
        quarantine: Quarantine::new(port.clone()),
        spec: port,
        device,
        registers: Arc::new(registers),
        filter,
        mtu: mtu.or(most).unwrap_or(MTU),
        running: None,
        seen: Cell::default(),
    }))
}

impl<D: Device> VirtioPci<D> {
    /// Bytes of the longest frame, a tag included.
    fn longest(&self) -> usize {
        self.mtu + HEADER + TAG
    }

    fn refuse(&self, asked: String, offered: String) -> PortError {
        PortError::Unsupported {
            port: self.spec.clone(),
            asked,
            offered,
        }
    }
}

impl<D: Device> Driver for VirtioPci<D> {
    fn capabilities(&self) -> Capabilities {
        let Registers { offered, facts, .. } = *self.registers;
        // More than one pair takes a command.
        let several = Features::SEVERAL_QUEUES | Features::CONTROL;
        let pairs = if offered.contains(several) {
            facts.max_pairs.min(MOST_PAIRS)
        } else {
            1
        };
        Capabilities {
            max_rx_queues: pairs,
            max_tx_queues: pairs,
            mac: facts.mac,
            max_frame: self.mtu + HEADER,
            checksum_offload: offered.contains(Features::CHECKSUM),
            wire_time: false,
            recorded: false,
            kernel_backed: false,
        }
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        let (rx, tx) = (config.rx_queues, config.tx_queues);
        // The device spreads what it receives over all pairs in use.
        if (1..tx).contains(&rx) {
            return Err(self.refuse(
                format!("{rx} receive queues and {tx} transmit queues"),
                "as many receive queues as transmit queues, or more, or none".into(),
            ));
        }
        let room = config.pool.data_room();
        if rx == 0 || self.longest() <= room {
            return Ok(());
        }
        // Without merged buffers a longer frame is lost in the device (section 5.1.6.3.1).
        let asked = format!("frames of {} bytes into buffers of {room}", self.longest());
        let Registers { offered, .. } = *self.registers;
        if !offered.contains(Features::MERGEABLE) {
            let offered = "one buffer for a frame (no VIRTIO_NET_F_MRG_RXBUF): longer buffers, or a \
                           smaller mtu=";
            return Err(self.refuse(asked, offered.into()));
        }
        // With them the device waits for as many as it needs.
        let size = match config.ring.checked_ilog2() {
            Some(log) if !offered.contains(Features::PACKED) => 1 << log,
            _ => config.ring,
        };
        if !holds(size, room, self.longest()) {
            return Err(self.refuse(
                asked,
                format!("no room for one in a ring of {size}: a longer ring, or longer buffers"),
            ));
        }
        Ok(())
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        let quarantine = Quarantine::new(self.spec.clone());
        let start = Start {
            device: &self.device,
            registers: &self.registers,
            config,
            filter: &self.filter,
            longest: self.longest(),
            grant: self.grant,
            quarantine: &quarantine,
        };
        let (running, queues) = start.run().map_err(bus_error(&self.spec))?;
        // It began with a reset, which proves of an earlier run what that could not.
        self.quarantine.settle(true);
        self.quarantine = quarantine;
        let Registers { common, config, .. } = &*self.registers;
        if let Some((up, generation)) = config.link(common) {
            let changes = self.seen.get().changes;
            self.seen.set(Seen {
                up,
                generation,
                changes,
            });
        }
        self.running = Some(running);
        Ok(queues)
    }

    fn end_receiving(&mut self) {
        if let Some(running) = &self.running {
            running.quiesce();
        }
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.end_receiving();
        self.running = None;
        Ok(())
    }

    fn link(&self) -> Link {
        let Registers { common, config, .. } = &*self.registers;
        let Seen {
            up,
            generation,
            changes,
        } = self.seen.get();
        let works = self.running.as_ref().is_some_and(|running| running.look());
        let now = if works {
            config.link(common).unwrap_or((up, generation))
        } else {
            (false, generation)
        };
        // The same again, but of another generation: it has gone, and come back, meanwhile.
        let more = match now.0 == up {
            true if now.1 == generation => 0,
            true => 2,
            false => 1,
        };
        let (up, generation) = now;
        let changes = changes + more;
        self.seen.set(Seen {
            up,
            generation,
            changes,
        });
        let gone = self
            .running
            .as_ref()
            .is_some_and(|running| running.is_gone());
        Link {
            up,
            gone,
            changes,
            ..Link::DOWN
        }
    }

    fn statistics(&self) -> Statistics {
        let broken = self.running.as_ref().map(|running| running.broken_queues());
        vec![
            ("broken-queues".into(), broken.unwrap_or(0)),
            quarantined(&self.quarantine),
        ]
    }
}

impl<D: Device> Drop for VirtioPci<D> {
    /// A port that is dropped while it runs has not been stopped.
    fn drop(&mut self) {
        self.end_receiving();
    }
}
