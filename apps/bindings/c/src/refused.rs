//! Counts of calls and frames that were refused, by reason.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Why a call, or a frame of a call, was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A pointer is NULL, or a frame that no port has handed out.
    Null,
    /// A frame of another port.
    OtherPort,
    /// A frame that was freed or sent before.
    FreedTwice,
    /// A frame that is to be sent is too short or longer than its buffer.
    Length,
    /// Another thread than the owner, or two threads at once.
    OtherThread,
    /// A child process of the one that opened the port.
    Forked,
    /// The port is closed.
    Closed,
    /// A fault of the library, whose call had no effect beyond what was done.
    Internal,
}

impl Reason {
    const ALL: [(Self, &str); 8] = [
        (Self::Null, "null"),
        (Self::OtherPort, "other-port"),
        (Self::FreedTwice, "freed-twice"),
        (Self::Length, "length"),
        (Self::OtherThread, "other-thread"),
        (Self::Forked, "forked"),
        (Self::Closed, "closed"),
        (Self::Internal, "internal"),
    ];
}

/// The counts, for any thread.
#[derive(Debug, Default)]
pub(crate) struct Refused([AtomicU64; Reason::ALL.len()]);

/// Calls without a port.
pub(crate) static NOWHERE: Refused = Refused([const { AtomicU64::new(0) }; Reason::ALL.len()]);

impl Refused {
    #[cold]
    pub(crate) fn count(&self, reason: Reason) {
        // Relaxed: a count, which orders nothing.
        self.0[reason as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl Serialize for Refused {
    /// Reasons without a count are left out.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for ((_, name), count) in Reason::ALL.iter().zip(&self.0) {
            match count.load(Ordering::Relaxed) {
                0 => {}
                count => map.serialize_entry(name, &count)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_place() {
        let refused = Refused::default();
        for (place, (reason, _)) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place);
        }
        refused.count(Reason::Length);
        assert_eq!(serde_json::to_string(&refused).unwrap(), r#"{"length":1}"#);
    }
}
