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
    /// That of the message before, and the rate in it.
    before: Option<u64>,
    rate_hz: u32,
    last: Instant,
}

impl Synchronizer {
    pub(super) fn new(source: u32) -> Self {
        Self {
            source,
            event: None,
            before: None,
            rate_hz: 0,
            last: Instant::now(),
        }
    }

    /// An event was sent.
    pub(super) fn sent(&mut self, event: u64) {
        self.event = Some(event);
    }

    /// The message that is due, if one is: none before the first event.
    pub(super) fn due(&mut self, now: Instant) -> Option<[u8; size_of::<Sync>()]> {
        let event = self.event?;
        let since = now.saturating_duration_since(self.last);
        if since < EVERY {
            return None;
        }
        // How fast the numbers grow. They begin anew with a burst: then the rate is the one before.
        if let Some(grown) = self.before.and_then(|before| event.checked_sub(before)) {
            // Saturates.
            self.rate_hz = (grown as f64 / since.as_secs_f64()).round() as u32;
        }
        self.before = Some(event);
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let unix_ns = unix.map_or(0, |unix| unix.as_nanos() as u64);
        // In step, unless a message was left out.
        let next = self.last + EVERY;
        self.last = if since < 2 * EVERY { next } else { now };
        let message = Sync::new(self.source, event, self.rate_hz, unix_ns);
        message.as_bytes().try_into().ok()
    }
}
