//! Boards in this process, for a trigger that sleeps until they send.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pollux_emulator::config::EmulatorConfig;

use super::capture::{boards, send};
use super::{Folder, PATIENCE};

/// A wire from this process to a trigger, which wakes the trigger's loop.
pub(crate) struct Wire {
    trigger: PathBuf,
    boards: PathBuf,
}

impl Wire {
    pub(crate) fn new(folder: &Folder) -> Self {
        Self {
            trigger: folder.path("wire"),
            boards: folder.path("boards"),
        }
    }

    /// The trigger's port.
    pub(crate) fn port(&self) -> String {
        unix_port(&self.trigger, &self.boards)
    }

    /// Has boards send so many events to a trigger that has opened its port, or is about to.
    #[track_caller]
    pub(crate) fn send(&self, events: u64) {
        let began = Instant::now();
        while !self.trigger.exists() {
            assert!(began.elapsed() < PATIENCE, "the port is not opened");
            std::thread::sleep(Duration::from_millis(5));
        }
        let boards = EmulatorConfig {
            rate: 20_000,
            ..boards(events)
        };
        send(&boards, &unix_port(&self.boards, &self.trigger));
    }
}

fn unix_port(own: &Path, peer: &Path) -> String {
    format!("unix:{},peer={}", own.display(), peer.display())
}
