//! A list that a device fills.

use std::sync::Arc;

use pollux_mempool::region::MemoryRegion;

use super::config::{ClopConfig, ClopError};
use super::reader::{BadEvent, ClopBuffer, ClopReader};
use super::shared::{Place, Shared};
use crate::event::record::EventRecord;

/// Gets the buffers that a device announces, and knows how many of them have come back. It stands
/// in for the writer as well: a buffer is given to the reader when the device's word has been held
/// against what can be.
pub(crate) struct DeviceClop {
    reader: ClopReader,
    /// The oldest buffer that has not come back, or the next to be announced.
    oldest: Place,
}

impl DeviceClop {
    /// A list whose buffers begin `offset` bytes into a region. The device is told its timeout.
    ///
    /// # Errors
    /// A size out of its limits, or a region that is too small.
    pub(crate) fn new(
        config: &ClopConfig,
        region: Arc<MemoryRegion>,
        offset: usize,
    ) -> Result<Self, ClopError> {
        config.check()?;
        let shared = Shared::new(config, region, offset)?;
        Ok(Self {
            reader: ClopReader::new(Arc::new(shared)),
            oldest: Place::default(),
        })
    }

    /// Takes the buffer that a device announces.
    ///
    /// # Errors
    /// [`BadEvent`] unless it is the next announcement, of a buffer that the device had.
    #[inline]
    pub(crate) fn accept(&mut self, record: &EventRecord) -> Result<ClopBuffer, BadEvent> {
        let shared = &self.reader.shared;
        let is_devices = shared.is_writers(self.reader.place);
        let buffer = self.reader.take(record, is_devices)?;
        self.reader.shared.to_reader(buffer.place);
        Ok(buffer)
    }

    /// Buffers that have come back since the start, in the order of their announcement, wrapping:
    /// what the device is told.
    #[inline]
    pub(crate) fn returned(&mut self) -> u32 {
        let shared = &self.reader.shared;
        while self.oldest != self.reader.place && shared.is_returned(self.oldest) {
            self.oldest = self.oldest.next(shared.turns.len());
        }
        self.oldest.serial
    }
}
