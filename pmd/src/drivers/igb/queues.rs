//! The queues of the 82576. Those of a virtual function have the same registers as the physical
//! one's, in a block elsewhere, and all use advanced descriptors with one buffer each (datasheet
//! sections 7.1.5 and 7.2.2).

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use pollux_mempool::time::Ns;

use super::drops::Drops;
use super::registers::{EIMC, EIMS};
use crate::bus::exclusive::Exclusive;
use crate::bus::{Bus, BusError, Device, Interrupts};
use crate::clock::Clock;
use crate::driver::{Queues, RxDriver, TxDriver};
use crate::drivers::intel::descriptors::{AdvancedOffloadTx, AdvancedTx, Extended, MAX_RING, Ring};
use crate::drivers::intel::memory::Memory;
use crate::drivers::intel::rx::{Rx, RxControl, RxParts};
use crate::drivers::intel::tx::{Tx, TxControl, TxParts};
use crate::grant::MemoryGrant;
use crate::ledger::{Cause, Tally};
use crate::port::{PortConfig, PortError, RxState, SharedRxState};
use crate::quarantine::Quarantine;

/// Registers of a queue, from the first of its block. Only a receive queue has the one of the split
/// (SRRCTL).
const BASE_LOW: usize = 0x00;
const BASE_HIGH: usize = 0x04;
const LEN: usize = 0x08;
const SPLIT: usize = 0x0c;
const HEAD: usize = 0x10;
const TAIL: usize = 0x18;
const CONTROL: usize = 0x28;

/// Of the control registers (RXDCTL, TXDCTL): the queue is on; write back each descriptor at once,
/// and fetch when eight are left and some are there.
const ENABLED: u32 = 1 << 25;
const THRESHOLDS: u32 = 1 << 16 | 1 << 8 | 8;

/// Of the split register: advanced descriptors with one buffer; drop frames that find no
/// descriptor, so that a queue that is not polled does not delay the others.
const ONE_BUFFER: u32 = 1 << 25;
const DROP: u32 = 1 << 31;

/// Longest wait for a queue to be switched on or off.
const PATIENCE: Ns = Ns(10_000_000);

/// Smallest buffer, and what the sizes of buffers are multiples of.
const KIB: usize = 1024;

/// Started queues, and the counters of their dropped frames.
pub(crate) type Started<B> = (Queues, Arc<Drops<B>>);

/// What starting the queues takes, beside the port's configuration.
pub(crate) struct Plan<'a, D: Device> {
    pub(crate) device: &'a Exclusive<D>,
    pub(crate) bus: &'a D::Bus,
    /// Bytes of the longest frame, a tag included.
    pub(crate) longest: usize,
    /// The first registers of receive and transmit queues, and bytes from one queue's to the next.
    pub(crate) blocks: (usize, usize, usize),
    /// Vectors, and the number of the first receive queue's.
    pub(crate) interrupts: Option<(Arc<Interrupts>, u16)>,
    /// State of the queues at the last [`Driver::link`](crate::driver::Driver::link).
    pub(crate) state: &'a SharedRxState,
    pub(crate) grant: MemoryGrant,
    /// What the device is lent, and where buffers go that queues have posted at their end.
    pub(crate) quarantine: &'a Quarantine,
}

/// Refuses rings and buffers that the device cannot have.
///
/// # Errors
/// What it can have.
pub(crate) fn validate(port: &str, config: &PortConfig) -> Result<(), PortError> {
    let room = (0..config.rx_queues).map(|queue| config.rx_pool(queue).data_room());
    let room = room.min().unwrap_or(config.pool.data_room());
    let (asked, offered) = if let Some(ring) = config.rings().find(|&ring| ring > MAX_RING) {
        let offered = format!("rings of at most {MAX_RING}");
        (format!("a ring of {ring}"), offered)
    } else if room < KIB {
        let offered = format!("buffers of {KIB} bytes and more");
        (format!("a pool with buffers of {room} bytes"), offered)
    } else {
        return Ok(());
    };
    let port = port.into();
    Err(PortError::Unsupported {
        port,
        asked,
        offered,
    })
}

impl<D: Device> Plan<'_, D> {
    /// Sets queues up and switches them on. `lost` counts the frames that were lost in front of all
    /// queues since it was called last.
    ///
    /// # Errors
    /// Memory that cannot be had, or a queue that does not start.
    pub(crate) fn start(
        &self,
        config: &PortConfig,
        lost: impl FnMut(&mut Tally) + Send + 'static,
    ) -> Result<Started<D::Bus>, BusError> {
        let (rx_queues, tx_queues) = (config.rx_queues.into(), usize::from(config.tx_queues));
        let lent = (self.grant, self.quarantine);
        let memory = Memory::new(&**self.device, config, lent)?;
        self.device.set_bus_master(true)?;
        let mut lost: Option<Lost> = Some(Box::new(lost));
        let (first, _, step) = self.blocks;
        let bases = (0..rx_queues).map(|index| first + index * step);
        let drops = Arc::new(Drops::new(self.bus.clone(), bases));
        let mut rx: Vec<Box<dyn RxDriver>> = Vec::new();
        for index in 0..rx_queues {
            let queue = self.rx_queue(index, lost.take(), &drops);
            let pool = config.rx_pool(index as u16);
            let parts = RxParts {
                ring: memory.ring(&**self.device, index)?,
                clock: self.device.clock(),
                addresses: memory.addresses(),
                pool: pool.clone(),
                room: room(pool.data_room()),
                longest: self.longest,
                quarantine: self.quarantine.clone(),
                control: queue,
            };
            let split = ONE_BUFFER | DROP | (parts.room / KIB) as u32;
            self.bus.write32(parts.control.block.at(SPLIT), split);
            parts.control.block.start(&parts.ring)?;
            let mut queue = Rx::<_, _, Extended>::new(parts);
            queue.fill();
            rx.push(Box::new(queue));
        }
        let mut tx: Vec<Box<dyn TxDriver>> = Vec::new();
        for index in 0..tx_queues {
            let (_, first, step) = self.blocks;
            let parts = TxParts {
                ring: memory.ring(&**self.device, rx_queues + index)?,
                clock: self.device.clock(),
                addresses: memory.addresses(),
                pool: config.tx_pool(index as u16).clone(),
                longest: self.longest,
                quarantine: self.quarantine.clone(),
                control: TxQueue(self.block(first + index * step)),
            };
            parts.control.0.start(&parts.ring)?;
            tx.push(if config.checksum_offload {
                Box::new(Tx::<_, _, AdvancedOffloadTx>::new(parts))
            } else {
                Box::new(Tx::<_, _, AdvancedTx>::new(parts))
            });
        }
        Ok((Queues { rx, tx }, drops))
    }

    fn block(&self, base: usize) -> Block<D> {
        Block {
            device: self.device.clone(),
            bus: self.bus.clone(),
            base,
        }
    }

    fn rx_queue(
        &self,
        index: usize,
        lost_before: Option<Lost>,
        drops: &Arc<Drops<D::Bus>>,
    ) -> RxQueue<D> {
        let (first, _, step) = self.blocks;
        let interrupts = self.interrupts.as_ref();
        RxQueue {
            block: self.block(first + index * step),
            lost_before,
            interrupts: interrupts.map(|(all, first)| (all.clone(), first + index as u16)),
            state: self.state.clone(),
            drops: drops.clone(),
            index,
        }
    }
}

/// Bytes of a buffer that the device fills.
fn room(data_room: usize) -> usize {
    // The register has seven bits; a longer frame takes several buffers.
    (data_room / KIB).min(127) * KIB
}

/// The registers of one queue.
struct Block<D: Device> {
    device: Exclusive<D>,
    bus: D::Bus,
    base: usize,
}

impl<D: Device> Block<D> {
    fn at(&self, register: usize) -> usize {
        self.base + register
    }

    /// Tells the device of an empty ring, and switches the queue on.
    fn start(&self, ring: &Ring) -> Result<(), BusError> {
        let Self { bus, .. } = self;
        bus.write32(self.at(BASE_LOW), ring.address() as u32);
        bus.write32(self.at(BASE_HIGH), (ring.address() >> 32) as u32);
        bus.write32(self.at(LEN), ring.len());
        bus.write32(self.at(HEAD), 0);
        bus.write32(self.at(TAIL), 0);
        bus.write32(self.at(CONTROL), ENABLED | THRESHOLDS);
        if self.wait_for(ENABLED) {
            return Ok(());
        }
        let what = "a queue does not start; start the port again, or reset it by its slot";
        let (device, what) = (self.device.name().into(), what.into());
        Err(BusError::Device { device, what })
    }

    /// Switches the queue off, and waits as long as is reasonable for what is under way to come to
    /// its end (section 4.5). The other queues go on.
    fn stop(&self) {
        self.bus.write32(self.at(CONTROL), 0);
        self.wait_for(0);
    }

    fn wait_for(&self, enabled: u32) -> bool {
        let is_so = || self.bus.read32(self.at(CONTROL)) & ENABLED == enabled;
        self.device.clock().wait(PATIENCE, is_so)
    }
}

/// Counts frames that were lost in front of all queues.
type Lost = Box<dyn FnMut(&mut Tally) + Send>;

struct RxQueue<D: Device> {
    block: Block<D>,
    /// The first queue does it for all.
    lost_before: Option<Lost>,
    interrupts: Option<(Arc<Interrupts>, u16)>,
    state: SharedRxState,
    drops: Arc<Drops<D::Bus>>,
    /// Number of the queue.
    index: usize,
}

impl<D: Device> RxControl for RxQueue<D> {
    const HAS_PROTOCOLS: bool = true;

    #[inline]
    fn set_tail(&self, slot: u32) {
        self.block.bus.write32(self.block.at(TAIL), slot);
    }

    fn state(&self) -> RxState {
        self.state.get()
    }

    fn disable(&self) {
        self.block.stop();
    }

    fn count_losses(&mut self, tally: &mut Tally) {
        self.drops.read();
        self.count_known_losses(tally);
        if let Some(count) = &mut self.lost_before {
            count(tally);
        }
    }

    #[inline]
    fn count_known_losses(&self, tally: &mut Tally) {
        let dropped = self.drops.take(self.index);
        if dropped > 0 {
            tally.count_from_wire(dropped, 0);
            tally.count_dropped(Cause::RingFull, dropped);
        }
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        let (interrupts, vector) = self.interrupts.as_ref()?;
        interrupts.event(*vector)
    }

    fn arm(&self) {
        // A cause that came while it was masked signals at once (section 7.3).
        if let Some((_, vector)) = self.interrupts {
            self.block.bus.write32(EIMS.at, 1 << vector);
        }
    }

    fn disarm(&self) {
        if let Some((_, vector)) = self.interrupts {
            self.block.bus.write32(EIMC.at, 1 << vector);
        }
    }
}

struct TxQueue<D: Device>(Block<D>);

impl<D: Device> TxControl for TxQueue<D> {
    #[inline]
    fn set_tail(&self, slot: u32) {
        self.0.bus.write32(self.0.at(TAIL), slot);
    }

    fn disable(&self) {
        self.0.stop();
    }
}
