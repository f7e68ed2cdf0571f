//! Events of a queue pair, from the loop to the program.

use std::sync::Arc;

use pollux_pmd::event::EventProducer;

use super::wake::Wake;
use crate::event::Event;

/// The loop's end of the event queue.
pub(super) struct Events {
    records: EventProducer,
    wake: Arc<Wake>,
    /// Records so far, by kind.
    sequences: [u32; 3],
    has_news: bool,
}

impl Events {
    pub(super) fn new(records: EventProducer, wake: Arc<Wake>) -> Self {
        Self {
            records,
            wake,
            sequences: [0; 3],
            has_news: false,
        }
    }

    /// Whether there is room for an event: what needs one waits until then.
    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        self.records.has_room()
    }

    /// Writes an event; false if there is no room.
    #[inline]
    pub(super) fn push(&mut self, event: Event) -> bool {
        let sequence = match event {
            Event::Done(_) => &mut self.sequences[0],
            Event::Received(_) => &mut self.sequences[1],
            Event::Failed(_) => &mut self.sequences[2],
        };
        let is_pushed = self.records.push(&event.to_record(*sequence)).is_ok();
        if is_pushed {
            *sequence = sequence.wrapping_add(1);
            self.has_news = true;
        }
        is_pushed
    }

    /// Wakes the program if it sleeps and there are new events: once a poll.
    #[inline]
    pub(super) fn announce(&mut self) {
        if self.has_news {
            self.has_news = false;
            self.wake.wake();
        }
    }
}
