//! Synchronization messages: what the control plane learns of a source, ten times a second.

use std::time::{Duration, Instant, SystemTime};

use zerocopy::IntoBytes as _;

use super::headers::Sync;

/// Interval of the messages.
const EVERY: Duration = Duration::from_millis(100);

/// When to send, and what.
pub(super) struct Synchronizer {
    source: u32,
    /// Number of the last event; none before the first.
    event: Option<u64>,
    /// Events since the last message.
    events: u64,
    last: Instant,
}

impl Synchronizer {
    pub(super) fn new(source: u32) -> Self {
        Self {
            source,
            event: None,
            events: 0,
            last: Instant::now(),
        }
    }

    /// An event was sent.
    pub(super) fn sent(&mut self, event: u64) {
        self.event = Some(event);
        self.events += 1;
    }

    /// The message that is due, if one is: none before the first event.
    pub(super) fn due(&mut self, now: Instant) -> Option<[u8; size_of::<Sync>()]> {
        let event = self.event?;
        let since = now.saturating_duration_since(self.last);
        if since < EVERY {
            return None;
        }
        let rate = (self.events as f64 / since.as_secs_f64()).round();
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let unix_ns = unix.map_or(0, |unix| unix.as_nanos() as u64);
        // In step, unless a message was left out.
        let next = self.last + EVERY;
        self.last = if since < 2 * EVERY { next } else { now };
        self.events = 0;
        // Saturates.
        let message = Sync::new(self.source, event, rate as u32, unix_ns);
        message.as_bytes().try_into().ok()
    }
}
