//! The metrics of a run: its ledgers, and how far it has come.

use std::fmt;
use std::sync::Arc;

use crate::images::source::Control;
use pollux_app::metrics::{self, Ledgers, Page};

/// What the page is made from.
pub(super) struct Source {
    pub(super) ledgers: Ledgers,
    pub(super) control: Arc<Control>,
}

impl metrics::Source for Source {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.ledgers.measure(page)?;
        let counters = [
            ("emulator_images", "Frames made", &self.control.frames),
            (
                "emulator_image_packets",
                "Packets sent",
                &self.control.packets,
            ),
        ];
        for (name, help, count) in counters {
            page.counter(name, help, [([], count.get())])?;
        }
        Ok(())
    }
}
