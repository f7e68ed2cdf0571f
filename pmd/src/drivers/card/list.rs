//! Buffer lists that the card fills.

use super::nic::{LISTS, Nic};
use super::registers::{card, clop};
use super::tlb::Tlb;
use crate::bus::{Bus, BusError, Device};
use crate::drivers::dma::DmaBuffer;
use crate::event::{BadEvent, ClopBuffer, ClopConfig, DeviceClop, EventRecord, Framing};
use crate::quarantine::Quarantine;

/// The smallest page of the card's TLB.
const PAGE: usize = 4 << 10;

/// Longest list: the distance of two in the card's virtual addresses has space for more.
const MOST: usize = 1 << 38;

/// The longest wait of a payload that `LIST_TIMEOUT` takes, in cycles of 6.4 ns.
const LONGEST_WAIT: u32 = (1 << 31) - 1;

/// A list, as its reader has it.
pub(super) struct List<D: Device> {
    nic: Nic<D>,
    number: usize,
    clop: DeviceClop,
    /// Number of returned buffers last written to the card.
    released: u32,
    /// The list's virtual address.
    address: u64,
    tlb: Tlb<D>,
    _memory: DmaBuffer,
}

/// The card's number of the list of a port's stream.
pub(super) fn number<D: Device>(nic: &Nic<D>, port: usize, stream: usize) -> usize {
    nic.ring(port) * LISTS + stream
}

impl<D: Device> List<D> {
    /// Sets up a list that announces its buffers to an event queue. The stream of `config` is the
    /// number of the list.
    ///
    /// # Errors
    /// An invalid configuration, memory that is not available, or that the card cannot access.
    pub(super) fn new(
        nic: &Nic<D>,
        tlb: &Tlb<D>,
        queue: usize,
        config: &ClopConfig,
        quarantine: &Quarantine,
    ) -> Result<Self, BusError> {
        let refused = |error: &dyn ToString| nic.error(error.to_string());
        config.check().map_err(|error| refused(&error))?;
        let len = config.bytes().next_multiple_of(PAGE);
        if len > MOST {
            return Err(nic.error(format!(
                "a list of {} bytes; lists have at most 256 GiB",
                config.bytes()
            )));
        }
        let mode = match config.framing {
            Framing::Records => 0,
            Framing::Bare { stride } if stride % 16 == 0 && stride < 1 << 20 => {
                clop::LIST_MODE_BARE | (stride as u32 / 16) << 16
            }
            Framing::Bare { stride } => {
                return Err(nic.error(format!(
                    "a stride of {stride} bytes; it must be a multiple of 16 below 1 MiB"
                )));
            }
        };
        // Its pages need not follow each other, and nothing else is in them.
        let lent = (nic.grant, quarantine);
        let memory = DmaBuffer::alloc(&*nic.device, &config.memory, len, lent)?;
        let list = DeviceClop::new(config, memory.region().clone(), 0);
        let list = list.map_err(|error| refused(&error))?;
        let address = tlb.add(memory.addresses(), len)?;
        let (at, number) = (nic.at.clop, usize::from(config.stream));
        let stamps = nic.cycles(card::NET_KHZ, config.timeout);
        let stamps = stamps.min(LONGEST_WAIT);
        nic.bus.write32(at + clop::LIST_CTRL.of(number), 0);
        nic.write64(at + clop::LIST_BASE.of(number), address);
        let settings = [
            (clop::LIST_SIZE, config.size as u32),
            (clop::LIST_COUNT, config.buffers as u32),
            (clop::LIST_MODE, mode | (nic.queue(queue) as u32) << 8),
            (clop::LIST_TIMEOUT, stamps),
            (clop::LIST_RELEASED, 0),
            (clop::LIST_CTRL, clop::LIST_CTRL_ENABLE),
        ];
        for (register, value) in settings {
            nic.bus.write32(at + register.of(number), value);
        }
        Ok(Self {
            nic: nic.clone(),
            number,
            clop: list,
            released: 0,
            address,
            tlb: tlb.clone(),
            _memory: memory,
        })
    }

    /// Accepts the buffer that an event announces.
    ///
    /// # Errors
    /// The announcement is impossible.
    #[inline]
    pub(super) fn accept(&mut self, event: &EventRecord) -> Result<ClopBuffer, BadEvent> {
        self.clop.accept(event)
    }

    /// Reports returned buffers to the card.
    #[inline]
    pub(super) fn release(&mut self) {
        let returned = self.clop.returned();
        if returned != self.released {
            self.released = returned;
            let at = self.nic.at.clop + clop::LIST_RELEASED.of(self.number);
            self.nic.bus.write32(at, returned);
        }
    }

    fn control(&self) -> usize {
        self.nic.at.clop + clop::LIST_CTRL.of(self.number)
    }

    /// Makes the card announce its current buffer.
    pub(super) fn flush(&self) {
        let both = clop::LIST_CTRL_ENABLE | clop::LIST_CTRL_FLUSH;
        self.nic.bus.write32(self.control(), both);
    }

    /// Whether a flush is in progress.
    pub(super) fn is_flushing(&self) -> bool {
        self.nic.bus.read32(self.control()) & clop::LIST_CTRL_FLUSH != 0
    }

    /// Disables the list, and takes its memory away from the card; the other lists continue.
    pub(super) fn disable(&self) {
        self.nic.bus.write32(self.control(), 0);
        // Without an answer the card keeps the memory until it is at rest, as the quarantine says.
        let _ = self.tlb.remove(self.address);
    }
}
