//! CLOP: circular list of persistent receive buffers, after NaNet's CLOP.
//!
//! The payloads of one stream fill the buffers in turn. A buffer that is full, or whose oldest
//! payload has reached the time-out, is announced by an event. From then on it belongs to the
//! reader until it is dropped, in any order. If the next buffer in turn still belongs to the
//! reader, the stream refuses payloads until the buffer is returned. Nothing is allocated after the
//! start.

mod config;
mod device;
mod format;
mod reader;
mod shared;
mod writer;

use std::sync::Arc;

use crate::clock::Clock;
pub use config::{ClopConfig, ClopError};
pub(crate) use device::DeviceClop;
pub use format::{
    ClopEvent, ClopPayload, ClopReason, ClopRecord, Framing, MalformedRecord, Payloads,
};
pub use reader::{BadEvent, ClopBuffer, ClopReader};
use shared::Shared;
pub use writer::{ClopWriter, PayloadInfo, Refused};

/// A list of buffers, before it is split into writer and reader.
pub struct Clop {
    shared: Arc<Shared>,
    timeout: u64,
}

impl Clop {
    /// Allocates the buffers. The time-out is measured on `clock`.
    ///
    /// # Errors
    /// A size out of its limits, or memory that is not available; the message names the limit.
    pub fn new(config: &ClopConfig, clock: &impl Clock) -> Result<Self, ClopError> {
        config.check()?;
        let region = Arc::new(config.memory.build(config.bytes())?);
        Ok(Self {
            shared: Arc::new(Shared::new(config, region, 0)?),
            timeout: clock.to_cycles(config.timeout),
        })
    }

    /// Splits the list into the writer, which fills the buffers, and the reader, which receives
    /// them.
    #[must_use]
    pub fn split(self) -> (ClopWriter, ClopReader) {
        let reader = ClopReader::new(Arc::clone(&self.shared));
        (ClopWriter::new(self.shared, self.timeout), reader)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::config::{LINE, MAX_BUFFERS, MAX_SIZE};
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn sizes_out_of_their_limits_are_refused_by_name() {
        let refusal = |config: ClopConfig| {
            Clop::new(&config, &ManualClock::new())
                .err()
                .unwrap()
                .to_string()
        };
        let fine = ClopConfig {
            size: 128,
            ..ClopConfig::default()
        };
        for buffers in [0, MAX_BUFFERS + 1, usize::MAX] {
            assert!(
                refusal(ClopConfig {
                    buffers,
                    ..fine.clone()
                })
                .contains("1 to 65536")
            );
        }
        for size in [0, 63, 65, 100, MAX_SIZE + LINE, usize::MAX] {
            assert!(
                refusal(ClopConfig {
                    size,
                    ..fine.clone()
                })
                .contains("multiple of 64 B from 64")
            );
        }
        for stride in [0, 129] {
            let framing = Framing::Bare { stride };
            assert!(
                refusal(ClopConfig {
                    framing,
                    ..fine.clone()
                })
                .contains("1 B to the size")
            );
        }
        let huge = ClopConfig {
            buffers: MAX_BUFFERS,
            size: MAX_SIZE,
            ..fine
        };
        assert!(matches!(
            Clop::new(&huge, &ManualClock::new()),
            Err(ClopError::Region(_))
        ));
    }
}
