//! The metrics of a run: its ledgers, and how far it has come.

use std::fmt;
use std::sync::Arc;

use crate::run::Progress;
use pollux_app::metrics::{self, Ledgers, Page};

/// What the page is made from.
pub(crate) struct Source {
    pub(crate) ledgers: Ledgers,
    pub(crate) progress: Arc<Progress>,
}

impl metrics::Source for Source {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.ledgers.measure(page)?;
        let counters = [
            ("emulator_events", "Events sent", &self.progress.events),
            (
                "emulator_frames",
                "Frames of the boards that were sent",
                &self.progress.frames,
            ),
            (
                "emulator_decided",
                "Events whose decision came back",
                &self.progress.decided,
            ),
        ];
        for (name, help, count) in counters {
            page.counter(name, help, [([], count.get())])?;
        }
        Ok(())
    }
}
