//! virtio-net PCI driver: virtio 1.2 sections 4.1 and 5.1, the modern interface only. For QEMU's
//! `virtio-net-pci`, clouds, and SmartNICs and vDPA devices with this interface.
//!
//! Vendor capabilities of the device locate its registers (`capability.rs`): common ones, for
//! reset, feature negotiation and queue set-up (`common.rs`), its own configuration (`config.rs`),
//! and a doorbell for each queue (`notify.rs`). Frames pass through the rings of [`super`], set up
//! in `start.rs`; the control queue sets the receive filter (`control.rs`).
//!
//! # Trust
//!
//! The device is not trusted: the locations of its registers, the number and sizes of its queues,
//! and all that it writes into rings are checked. Buffers that it could still write are released
//! only after a proof that it is at rest (`running.rs`): if it does not confirm that, bus mastering
//! is disabled, or its memory is unmapped behind the IOMMU, or the buffers are not released. A
//! queue that is dropped leaves its buffers in the port's quarantine, and the others continue;
//! frames that the device receives for it are lost. A device that bypasses the IOMMU (no
//! `VIRTIO_F_ACCESS_PLATFORM`) is refused where there is one: it would use addresses of this
//! process as physical ones.

mod capability;
mod common;
mod config;
mod control;
mod error;
mod notify;
mod queue;
mod registers;
mod running;
mod start;
mod wait;
mod window;

use std::cell::Cell;
use std::sync::Arc;

use self::registers::Registers;
use self::running::Running;
use self::start::{Start, holds};
use crate::bus::Device;
use crate::bus::exclusive::Exclusive;
use crate::driver::filter::{Filter, MULTICAST, Multicast, PROMISC};
use crate::driver::{Capabilities, Driver, Link, Queues, Statistics};
use crate::drivers::virtio::Features;
use crate::grant::MemoryGrant;
use crate::port::bus_error;
use crate::port::{PortConfig, PortError, QueueSupport};
use crate::quarantine::Quarantine;
use crate::quarantine::quarantined;
use crate::spec::PortSpec;

/// Ethernet: addresses and type, and one VLAN tag.
const HEADER: usize = 14;
const TAG: usize = 4;

/// Maximum number of queue pairs, however many a device has: each takes memory.
const MOST_PAIRS: u16 = 256;

/// Default MTU.
const MTU: usize = 1500;

/// Last observed link state.
#[derive(Clone, Copy, Default)]
struct Seen {
    up: bool,
    generation: u8,
    changes: u64,
}

struct VirtioPci<D: Device> {
    spec: String,
    device: Exclusive<D>,
    registers: Arc<Registers<D::Bus>>,
    filter: Filter,
    mtu: usize,
    running: Option<Arc<Running<D>>>,
    grant: MemoryGrant,
    /// Memory lent to the device, and buffers that it may still write, of the last run.
    quarantine: Quarantine,
    seen: Cell<Seen>,
}

/// The options of `pci` that the driver supports.
pub(crate) const OPTIONS: &[&str] = &["mtu", PROMISC.key, MULTICAST.key];

/// Takes a device over, and leaves it at rest.
///
/// # Errors
/// A device that does not conform to the standard, or does not offer what the spec requests.
pub fn open<D: Device>(
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
    let device = Exclusive::new(device).map_err(bus_error(&port))?;
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
    // Section 5.1.4.1; with the maximum there would be no number for the control queue.
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
    /// Bytes of the longest frame, including a tag.
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

    /// Refuses a receive queue that does not always have room for the longest frame.
    fn validate_rx(&self, ring: usize, room: usize) -> Result<(), PortError> {
        if self.longest() <= room {
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
        // With merged buffers the device waits for as many as it needs.
        let size = match ring.checked_ilog2() {
            Some(log) if !offered.contains(Features::PACKED) => 1 << log,
            _ => ring,
        };
        if !holds(size, room, self.longest()) {
            return Err(self.refuse(
                asked,
                format!("no room for one in a ring of {size}: a longer ring, or longer buffers"),
            ));
        }
        Ok(())
    }
}

impl<D: Device> Driver for VirtioPci<D> {
    fn capabilities(&self) -> Capabilities {
        let Registers { offered, facts, .. } = *self.registers;
        // More than one pair requires a command.
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
        // The device distributes received frames over all pairs in use.
        if (1..tx).contains(&rx) {
            return Err(self.refuse(
                format!("{rx} receive queues and {tx} transmit queues"),
                "as many receive queues as transmit queues, or more, or none".into(),
            ));
        }
        (0..rx).try_for_each(|queue| {
            self.validate_rx(config.rx_ring(queue), config.rx_pool(queue).data_room())
        })
    }

    fn queue_support(&self) -> QueueSupport {
        QueueSupport {
            numa_node: false,
            ..QueueSupport::ALL
        }
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
        // It began with a reset, which proves the end of an earlier run without a proof.
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
        // The same state with another generation: the link has changed and changed back.
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
