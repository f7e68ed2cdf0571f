//! What the control thread tells of the port.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::count::Count;
use crate::driver::{Link, Statistics};

/// Written by the control thread alone.
#[derive(Default)]
pub(super) struct State {
    up: AtomicBool,
    changes: Count,
    sessions: Count,
    violations: Count,
}

impl State {
    /// The peer has come, or has gone.
    pub(super) fn set_up(&self, up: bool) {
        if self.up.swap(up, Ordering::Relaxed) != up {
            self.changes.add(1);
            self.sessions.add(u64::from(up));
        }
    }

    /// The peer did something that the protocol forbids.
    pub(super) fn count_violation(&self) {
        self.violations.add(1);
    }

    pub(super) fn link(&self) -> Link {
        Link {
            up: self.up.load(Ordering::Relaxed),
            changes: self.changes.get(),
            ..Link::DOWN
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        vec![
            ("sessions".into(), self.sessions.get()),
            ("protocol-violations".into(), self.violations.get()),
        ]
    }
}
