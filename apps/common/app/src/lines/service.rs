//! What a line server serves: answers and events.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

/// Events that a client may be behind.
const BEHIND: usize = 64;

/// Interval at which a sender looks whether its events were taken.
const NAP: Duration = Duration::from_millis(1);

/// Answer to a line, or to one that is refused for this reason.
type Answer = dyn Fn(Result<&[u8], &str>) -> String + Send + Sync;

/// What a server serves.
pub struct Service {
    pub(super) answer: Box<Answer>,
    pub(super) longest_line: usize,
    events: Events,
}

impl Service {
    /// Answers to lines of at most `longest_line` bytes, with their ends. `answer` gets a line, or why one
    /// is refused, and returns a line. It is called on the server's thread, and returns at once.
    pub fn new(
        longest_line: usize,
        answer: impl Fn(Result<&[u8], &str>) -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            answer: Box::new(answer),
            longest_line,
            events: Events::default(),
        }
    }

    /// Events from now on, for a client.
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.events.0.subscribe()
    }

    /// With events, which all clients get.
    #[must_use]
    pub fn with_events(self, events: &Events) -> Self {
        Self {
            events: events.clone(),
            ..self
        }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("longest_line", &self.longest_line)
            .finish_non_exhaustive()
    }
}

/// Sends events to all clients of a server. Clones send to the same clients.
#[derive(Clone, Debug)]
pub struct Events(broadcast::Sender<Arc<str>>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(BEHIND))
    }
}

impl Events {
    /// Sends a line, with its end, to the clients that are there, and returns at once. A client that is
    /// too far behind is disconnected.
    pub fn send(&self, line: String) {
        // Without clients it is for none.
        let _ = self.0.send(line.into());
    }

    /// Waits until all events are on their way to the clients, and no longer than `patience`. Before the end
    /// of a server: it leaves behind what it has not sent.
    pub fn flush(&self, patience: Duration) {
        let begun = Instant::now();
        while !self.0.is_empty() && begun.elapsed() < patience {
            std::thread::sleep(NAP);
        }
    }
}
