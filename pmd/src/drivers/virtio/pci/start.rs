//! Device start: queue set-up by virtio 1.2 sections 3.1.1, 4.1.5.1 and 5.1.5.

use std::sync::Arc;

use super::common::status;
use super::control::{self, Control};
use super::error::wrong;
use super::notify::NotifyRegister;
use super::queue::{Rx, Tx};
use super::registers::{NO_REST, Registers};
use super::running::Running;
use crate::bus::exclusive::Exclusive;
use crate::bus::{BusError, Device};
use crate::driver::Queues;
use crate::driver::filter::Filter;
use crate::drivers::dma::DeviceAddresses;
use crate::drivers::virtio::areas::{Areas, MAX_SIZE};
use crate::drivers::virtio::{
    Doorbell, DriverRx, DriverTx, Features, QueueMemory, RingFeatures, always_posted, header,
};
use crate::grant::MemoryGrant;
use crate::port::PortConfig;
use crate::quarantine::Quarantine;

/// Maximum number of descriptors of a control queue: it has one command at a time.
const CONTROL_SIZE: usize = 64;

/// A queue that is enabled in the device.
struct EnabledQueue<D: Device> {
    /// Its doorbell register.
    register: NotifyRegister<D::Bus>,
    /// Its interrupt vector, if it has one.
    vector: Option<u16>,
}

/// A device that is about to be started.
pub(super) struct Start<'a, D: Device> {
    pub(super) device: &'a Exclusive<D>,
    pub(super) registers: &'a Arc<Registers<D::Bus>>,
    pub(super) config: &'a PortConfig,
    pub(super) filter: &'a Filter,
    /// Bytes of the longest received frame.
    pub(super) longest: usize,
    pub(super) grant: MemoryGrant,
    pub(super) quarantine: &'a Quarantine,
}

impl<D: Device> Start<'_, D> {
    /// Starts the device.
    ///
    /// # Errors
    /// The refusal of the device, or of the system. The device is at rest then.
    pub(super) fn run(&self) -> Result<(Arc<Running<D>>, Queues), BusError> {
        let (device, common) = (&**self.device, &self.registers.common);
        let clock = device.clock();
        if !common.reset(&clock) {
            return Err(wrong(device, NO_REST));
        }
        // From here on every return drops this, which brings the device to rest again.
        let (registers, quarantine) = (self.registers.clone(), self.quarantine.clone());
        let mut running = Running::new(self.device.clone(), registers, self.grant, quarantine);
        common.add_status(status::ACKNOWLEDGE);
        common.add_status(status::DRIVER);
        let features = self.negotiate()?;
        let rings = RingFeatures::of(features).ok_or_else(|| {
            wrong(
                device,
                "it no longer offers VIRTIO_F_VERSION_1; open it again",
            )
        })?;
        let numbers = self.queue_numbers(features);
        let sizes: Vec<_> = numbers
            .iter()
            .map(|&number| self.size(number, rings.packed))
            .collect::<Result<_, _>>()?;
        // A device may have fewer descriptors than requested.
        for queue in 0..self.config.rx_queues {
            let room = self.config.rx_pool(queue).data_room();
            let Some(&size) = sizes.get(2 * usize::from(queue)) else {
                break;
            };
            if holds(size.into(), room, self.longest) {
                continue;
            }
            let what = format!(
                "its receive queues have no more than {size} descriptors, too few for frames of {} \
                 bytes in buffers of {room}: use longer buffers",
                self.longest
            );
            return Err(wrong(device, what));
        }
        let no_memory = |error: String| wrong(device, format!("memory for its queues: {error}"));
        let memory = QueueMemory::of_sizes(&sizes, rings.packed, &device.memory())
            .map_err(|e| no_memory(e.to_string()))?;
        let mut addresses = DeviceAddresses::new();
        for pool in self.config.pools() {
            running.map(pool.region(), &mut addresses)?;
        }
        if let Some(first) = memory.first() {
            running.map(first.region(), &mut addresses)?;
        }
        if self.config.rx_queues > 0 {
            running.switch_interrupts_on(self.config.rx_queues);
        }
        device.set_bus_master(true)?;
        let enabled: Vec<_> = numbers
            .iter()
            .zip(&memory)
            .map(|(&number, memory)| self.set_up(number, memory, &addresses))
            .collect::<Result<_, _>>()?;
        common.add_status(status::DRIVER_OK);
        let mut queues: Vec<_> = memory.iter().zip(enabled).collect();
        // Before the first buffer is posted, so that no unwanted frame is received.
        if features.contains(Features::CONTROL)
            && let Some((memory, EnabledQueue { register, .. })) = queues.pop()
        {
            let room = running.alloc(control::ROOM)?;
            let (_, address) = room
                .piece(0, control::ROOM)
                .ok_or_else(|| no_memory("it is in pieces for the device".into()))?;
            let room = room.region().clone();
            let control = Control::new(common, memory.ring(), room, address, register);
            self.command(control, features)?;
        }
        if common.status() & status::NEEDS_RESET != 0 {
            return Err(wrong(
                device,
                "it says that it needs a reset as soon as it runs; start the port again, or the \
                 guest, and look into the log of the machine's monitor",
            ));
        }
        tracing::debug!(
            device = device.name(),
            features = format_args!("{:#x}", features.0),
            ?sizes,
            "started"
        );
        let running = Arc::new(running);
        let queues = self.queues(queues, rings, &addresses, &running);
        Ok((running, queues))
    }

    fn pairs(&self) -> u16 {
        self.config.rx_queues.max(self.config.tx_queues)
    }

    /// Negotiates features with the device.
    fn negotiate(&self) -> Result<Features, BusError> {
        let (device, common) = (&**self.device, &self.registers.common);
        let mut wanted = Features::VERSION_1
            | Features::ACCESS_PLATFORM
            | Features::ORDER_PLATFORM
            | Features::PACKED
            | Features::IN_ORDER
            | Features::MERGEABLE
            | Features::INDIRECT
            | Features::MAC
            | Features::MTU
            | Features::STATUS;
        if self.config.checksum_offload {
            wanted = wanted | Features::CHECKSUM | Features::GUEST_CHECKSUM;
        }
        // These require a control queue (section 5.1.3.1).
        if self.registers.offered.contains(Features::CONTROL) {
            wanted = wanted | Features::CONTROL | Features::CONTROL_RX;
            if self.pairs() > 1 {
                wanted = wanted | Features::SEVERAL_QUEUES;
            }
        }
        let features = self.registers.offered & wanted;
        common.accept(features);
        common.add_status(status::FEATURES_OK);
        if common.status() & status::FEATURES_OK == 0 {
            let what = format!(
                "it refuses the features {:#x}, all of which it offers; update the machine's \
                 monitor, or switch some of them off there (QEMU: packed=off, in_order=off, \
                 mrg_rxbuf=off of its NIC)",
                features.0
            );
            return Err(wrong(device, what));
        }
        Ok(features)
    }

    /// The queues in use: receive and transmit queues by turns, then the control queue, whose
    /// number follows all possible queues (section 5.1.2).
    fn queue_numbers(&self, features: Features) -> Vec<u16> {
        let pairs = if features.contains(Features::SEVERAL_QUEUES) {
            self.registers.facts.max_pairs
        } else {
            1
        };
        let control = features.contains(Features::CONTROL).then_some(2 * pairs);
        (0..2 * self.pairs()).chain(control).collect()
    }

    /// Number of descriptors of a queue: as requested, or the device's maximum; for a split ring a
    /// power of two (section 2.7).
    fn size(&self, number: u16, packed: bool) -> Result<u16, BusError> {
        let is_control = number >= 2 * self.pairs();
        let (asked, least) = if is_control {
            (CONTROL_SIZE, control::DESCRIPTORS)
        } else if number.is_multiple_of(2) {
            (self.config.rx_ring(number / 2), 1)
        } else {
            (self.config.tx_ring(number / 2), 1)
        };
        let most = self.registers.common.queue(number).max_size().min(MAX_SIZE);
        let size = usize::from(most).min(asked) as u16;
        let size = match size.checked_ilog2() {
            Some(log) if !packed => 1 << log,
            _ => size,
        };
        if size < least {
            let what = format!(
                "queue {number} cannot have more than {most} descriptors, and {least} are needed: \
                 give it longer queues (QEMU: rx_queue_size= and tx_queue_size= of its NIC)"
            );
            return Err(wrong(&**self.device, what));
        }
        Ok(size)
    }

    /// Configures and enables a queue in the device.
    fn set_up(
        &self,
        number: u16,
        memory: &QueueMemory,
        addresses: &DeviceAddresses,
    ) -> Result<EnabledQueue<D>, BusError> {
        let device = &**self.device;
        let ring = memory.ring();
        let unreachable = || {
            let what = "the memory of its queues is in pieces for it; use larger pages or an IOMMU";
            wrong(device, what)
        };
        let areas = Areas::of(ring.size(), ring.is_packed())
            .map_err(|error| wrong(device, error.to_string()))
            .and_then(|shapes| {
                ring.at().try_zip(shapes, |at, shape| {
                    addresses.of(at, shape.len).ok_or_else(unreachable)
                })
            })?;
        let queue = self.registers.common.queue(number);
        queue.set_size(ring.size());
        queue.set_areas(areas);
        let offset = queue.notify_offset();
        let register = self.registers.notify.register(number, offset);
        let register = register.ok_or_else(|| {
            let what = format!(
                "the notification register of queue {number} is outside its window, so that it \
                 cannot be had; start the port with fewer queues, or update the machine's monitor"
            );
            wrong(device, what)
        })?;
        // Receive queues have the even numbers, and the first vectors.
        let vector = number / 2;
        let has_one = number.is_multiple_of(2) && vector < self.config.rx_queues;
        let vector = (has_one && queue.set_vector(vector)).then_some(vector);
        queue.enable();
        Ok(EnabledQueue { register, vector })
    }

    /// Sets the receive filter, and the number of queues.
    fn command(
        &self,
        mut control: Control<'_, D::Bus>,
        features: Features,
    ) -> Result<(), BusError> {
        let device = &**self.device;
        let clock = device.clock();
        let refused =
            |what| move |refusal| wrong(device, format!("the command to set {what}: {refusal}"));
        if features.contains(Features::CONTROL_RX) {
            let result = control.set_filter(&clock, self.filter);
            result.map_err(refused("the receive filter"))?;
        }
        if features.contains(Features::SEVERAL_QUEUES) {
            let result = control.set_pairs(&clock, self.pairs());
            result.map_err(refused("the number of queues"))?;
        }
        Ok(())
    }

    /// The queues for the poll loops. One queue of a pair may be unused: it stays empty.
    fn queues(
        &self,
        queues: Vec<(&QueueMemory, EnabledQueue<D>)>,
        rings: RingFeatures,
        addresses: &DeviceAddresses,
        running: &Arc<Running<D>>,
    ) -> Queues {
        let (mut rx, mut tx) = (Vec::new(), Vec::new());
        for (index, (memory, queue)) in queues.into_iter().enumerate() {
            let EnabledQueue { register, vector } = queue;
            let doorbell = Doorbell::Register(register);
            let (addresses, running) = (addresses.clone(), running.clone());
            if index % 2 == 0 && rx.len() < usize::from(self.config.rx_queues) {
                let pool = self.config.rx_pool(rx.len() as u16);
                let ring = DriverRx::new(memory, rings, addresses, pool, doorbell);
                let queue = Rx {
                    ring,
                    vector,
                    running,
                };
                rx.push(Box::new(queue) as _);
            } else if index % 2 == 1 && tx.len() < usize::from(self.config.tx_queues) {
                let pool = self.config.tx_pool(tx.len() as u16);
                let ring = DriverTx::new(memory, rings, addresses, pool, doorbell);
                tx.push(Box::new(Tx { ring, running }) as _);
            }
        }
        Queues { rx, tx }
    }
}

/// Whether a receive ring of `size` buffers of `room` bytes always has room for the longest frame.
pub(super) fn holds(size: usize, room: usize, longest: usize) -> bool {
    longest <= room || longest + header::LEN <= always_posted(size, room)
}
