//! Overruns of a run, as events for the manager: found in the counters, some times a second.

use pollux_images::control::{Event, OverrunWatch};
use pollux_images::transfer::TransferView;

use super::counters::Counters;

/// Most events of a round. A client that is 64 events behind is disconnected, and 64 receivers can be
/// overrun at once.
const MOST: usize = 16;

/// Watches of the receivers of regions, and of all outputs together.
pub struct Overruns {
    outputs: OverrunWatch,
    receivers: Vec<(OverrunWatch, TransferView)>,
    /// The receiver that is polled first.
    next: usize,
    /// Images that may be on their way without an overrun.
    room: u64,
}

impl Overruns {
    /// There is room again when the stages have fewer than `queue` images, and the outputs half of that.
    pub fn new(counters: &Counters, queue: u64) -> Self {
        let watch = |view: &TransferView| {
            let watch = OverrunWatch::new(Some(view.name().to_owned()));
            (watch, view.clone())
        };
        Self {
            outputs: OverrunWatch::new(None),
            receivers: counters.receivers.iter().map(watch).collect(),
            next: 0,
            room: queue,
        }
    }

    /// Publishes what happened since the last call, as far as clients can take it.
    pub fn poll(&mut self, counters: &Counters, mut publish: impl FnMut(Event)) {
        if let Some(event) = self
            .outputs
            .poll(counters.lost_by_all(), self.has_room(counters))
        {
            publish(event);
        }
        let (count, mut published) = (self.receivers.len(), 0);
        for _ in 0..count {
            let (watch, view) = &mut self.receivers[self.next];
            self.next = (self.next + 1) % count;
            if let Some(event) = watch.poll_transfer(view) {
                publish(event);
                published += 1;
                if published == MOST {
                    return;
                }
            }
        }
    }

    fn has_room(&self, counters: &Counters) -> bool {
        let images = &counters.images;
        let waiting = images
            .built
            .get()
            .saturating_sub(images.ended() + counters.lost());
        let handed = images.kept.get().saturating_sub(images.overrun.get());
        let written = counters.outputs.done().unwrap_or(handed);
        waiting < self.room.max(2) && 2 * handed.saturating_sub(written) <= self.room
    }
}
