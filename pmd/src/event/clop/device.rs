//! CLOP that a device fills.

use std::sync::Arc;

use pollux_mempool::region::MemoryRegion;

use super::config::{ClopConfig, ClopError};
use super::reader::{BadEvent, ClopBuffer, ClopReader};
use super::shared::{Place, Shared};
use crate::event::record::EventRecord;

/// Receives the buffers that a device announces, and counts those that have been returned. It also
/// takes the writer's role: it gives a buffer to the reader after it has validated the device's
/// announcement.
pub(crate) struct DeviceClop {
    reader: ClopReader,
    /// The oldest buffer that has not been returned, or the next one to be announced.
    oldest: Place,
}

impl DeviceClop {
    /// A list whose buffers begin `offset` bytes into a region. The device implements the time-out.
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
    /// [`BadEvent`] unless it is the next announcement, of a buffer that the device held.
    #[inline]
    pub(crate) fn accept(&mut self, record: &EventRecord) -> Result<ClopBuffer, BadEvent> {
        let shared = &self.reader.shared;
        let is_devices = shared.is_writers(self.reader.place);
        let buffer = self.reader.take(record, is_devices)?;
        self.reader.shared.to_reader(buffer.place);
        Ok(buffer)
    }

    /// Number of buffers returned since the start, in the order of their announcement, wrapping;
    /// the value is reported to the device.
    #[inline]
    pub(crate) fn returned(&mut self) -> u32 {
        let shared = &self.reader.shared;
        while self.oldest != self.reader.place && shared.is_returned(self.oldest) {
            self.oldest = self.oldest.next(shared.turns.len());
        }
        self.oldest.serial
    }
}
