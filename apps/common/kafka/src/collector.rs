//! Collects events for a message.

use pollux_output::OutputEvent;

use crate::epochs::Epochs;
use crate::ev44::Ev44;

/// Length of a message, at most: several are in a batch, and a broker that answers late holds up less.
const LENGTH: usize = 256 << 10;

/// What a batch of one message adds to it (Kafka protocol, "Record Batch" and "Record"), with a
/// margin.
const BATCH: usize = 256;

/// Length of a record.
const RECORD: usize = 64;

/// Events of one message, and the length that it may have.
pub(crate) struct Collector {
    events: Collected,
    limit: usize,
}

enum Collected {
    Ev44 {
        messages: Box<Ev44>,
        epochs: Epochs,
    },
    Records {
        /// Whether they have the numbers of their bursts.
        bursts: bool,
        bytes: Vec<u8>,
        /// The bytes were taken.
        taken: bool,
    },
}

impl Collector {
    /// Messages of schema ev44 for a broker that takes `limit` bytes.
    pub(crate) fn ev44(source: &str, epochs: Epochs, limit: usize) -> Self {
        let messages = Box::new(Ev44::new(source));
        Self::new(Collected::Ev44 { messages, epochs }, limit)
    }

    /// Messages of records.
    pub(crate) fn records(bursts: bool, limit: usize) -> Self {
        let records = Collected::Records {
            bursts,
            bytes: Vec::new(),
            taken: false,
        };
        Self::new(records, limit)
    }

    fn new(events: Collected, limit: usize) -> Self {
        Self {
            events,
            limit: limit.saturating_sub(BATCH).min(LENGTH),
        }
    }

    /// Number of events in the message so far.
    pub(crate) fn len(&self) -> usize {
        match &self.events {
            Collected::Ev44 { messages, .. } => messages.events(),
            Collected::Records { taken: true, .. } => 0,
            Collected::Records { bytes, .. } => bytes.len() / RECORD,
        }
    }

    /// Whether the message remains within its limit with one more event.
    pub(crate) fn fits(&self, event: OutputEvent<'_>) -> bool {
        let len = match &self.events {
            Collected::Ev44 { messages, .. } => messages.len_with(event.view.hits().len()),
            Collected::Records { .. } => (self.len() + 1) * RECORD,
        };
        len <= self.limit
    }

    pub(crate) fn push(&mut self, event: OutputEvent<'_>) {
        match &mut self.events {
            Collected::Ev44 { messages, epochs } => {
                let time = epochs.time(&event.view.head());
                messages.push(time, event.view.hits());
            }
            Collected::Records {
                bursts,
                bytes,
                taken,
            } => {
                if std::mem::take(taken) {
                    bytes.clear();
                }
                bytes.extend(event.record(*bursts));
            }
        }
    }

    /// The message of the collected events; the next one begins empty.
    pub(crate) fn message(&mut self) -> &[u8] {
        match &mut self.events {
            Collected::Ev44 { messages, .. } => messages.message(),
            Collected::Records { bytes, taken, .. } => {
                *taken = true;
                bytes
            }
        }
    }
}
