//! A list of buffers that the card fills.

use super::memory::{Page, Tlb, page};
use super::nic::{LISTS, Nic};
use super::registers::{card, clop};
use crate::bus::{Bus, BusError, Device, DmaMapping};
use crate::event::{BadEvent, ClopBuffer, ClopConfig, DeviceClop, EventRecord, Framing};

/// Smallest page of the card's TLB, and its largest.
const LEAST: usize = 4 << 10;
const MOST: usize = 1 << 30;

/// A list, as the loop that reads it has it.
pub(super) struct List<D: Device> {
    nic: Nic<D>,
    number: usize,
    clop: DeviceClop,
    /// Buffers returned, as the card was told last.
    told: u32,
}

/// Number of the list of a port's stream.
pub(super) fn number(port: usize, stream: usize) -> usize {
    port * LISTS + stream
}

impl<D: Device> List<D> {
    /// Sets a list up, which announces to an event queue. The stream of `config` is the number of
    /// the list. The mapping is to be kept as long as the card runs.
    ///
    /// # Errors
    /// What the list cannot be, memory that cannot be had, or that the card cannot be given.
    pub(super) fn new(
        nic: &Nic<D>,
        tlb: &mut Tlb<D>,
        queue: usize,
        config: &ClopConfig,
    ) -> Result<(Self, DmaMapping), BusError> {
        let refused = |error: &dyn ToString| nic.error(error.to_string());
        config.check().map_err(|error| refused(&error))?;
        let len = config.bytes().max(LEAST).next_power_of_two();
        if len > MOST {
            return Err(nic.error(format!(
                "a list of {} bytes; it must fit a page of 1 GiB",
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
        let Page {
            region,
            mapping,
            offset,
            bus,
        } = page(nic, len, &config.memory)?;
        let list = DeviceClop::new(config, region, offset).map_err(|error| refused(&error))?;
        let address = tlb.add(len, bus);
        let (at, number) = (nic.at.clop, usize::from(config.stream));
        let stamps = nic.cycles(card::NET_KHZ, config.timeout);
        let stamps = stamps.min(clop::LIST_TIMEOUT_VALUE);
        nic.bus.write32(at + clop::LIST_CTRL.of(number), 0);
        nic.write64(at + clop::LIST_BASE.of(number), address);
        let settings = [
            (clop::LIST_SIZE, config.size as u32),
            (clop::LIST_COUNT, config.buffers as u32),
            (clop::LIST_MODE, mode | (queue as u32) << 4),
            (clop::LIST_TIMEOUT, stamps),
            (clop::LIST_RELEASED, 0),
            (clop::LIST_CTRL, clop::LIST_CTRL_ENABLE),
        ];
        for (register, value) in settings {
            nic.bus.write32(at + register.of(number), value);
        }
        let list = Self {
            nic: nic.clone(),
            number,
            clop: list,
            told: 0,
        };
        Ok((list, mapping))
    }

    /// Takes the buffer that an event announces.
    ///
    /// # Errors
    /// It announces none that can be.
    #[inline]
    pub(super) fn accept(&mut self, event: &EventRecord) -> Result<ClopBuffer, BadEvent> {
        self.clop.accept(event)
    }

    /// Tells the card which buffers have come back.
    #[inline]
    pub(super) fn release(&mut self) {
        let returned = self.clop.returned();
        if returned != self.told {
            self.told = returned;
            let at = self.nic.at.clop + clop::LIST_RELEASED.of(self.number);
            self.nic.bus.write32(at, returned);
        }
    }

    fn control(&self) -> usize {
        self.nic.at.clop + clop::LIST_CTRL.of(self.number)
    }

    /// Has the card announce what is there.
    pub(super) fn flush(&self) {
        let both = clop::LIST_CTRL_ENABLE | clop::LIST_CTRL_FLUSH;
        self.nic.bus.write32(self.control(), both);
    }

    /// Whether a flush is still going on.
    pub(super) fn is_flushing(&self) -> bool {
        self.nic.bus.read32(self.control()) & clop::LIST_CTRL_FLUSH != 0
    }

    /// Has the card put nothing into it any more.
    pub(super) fn disable(&self) {
        self.nic.bus.write32(self.control(), 0);
    }
}
