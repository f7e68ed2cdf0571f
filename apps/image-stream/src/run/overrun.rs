//! Overruns of a run, as events for the manager: found in the counters, some times a second.

use pollux_images::control::{Event, OverrunWatch};
use pollux_images::formats::Layout;
use pollux_images::transfer::TransferView;
use pollux_pmd::{Balance, Cause};

use super::counters::Counters;

/// Most events of a round. A client that is 64 events behind is disconnected, and 64 receivers can be
/// overrun at once.
const MOST: usize = 16;

/// Packets that were lost since loops did not take them in time.
#[derive(Clone, Copy, Debug)]
pub struct Overload {
    causes: [Cause; 4],
    /// Packets of an image.
    packets: u64,
}

impl Overload {
    /// `no_buffer` is the cause of packets without an image buffer.
    pub fn new(no_buffer: Cause, layout: &Layout) -> Self {
        Self {
            causes: [Cause::NoMbuf, Cause::RingFull, Cause::KernelDrop, no_buffer],
            packets: (layout.senders() * layout.packets()).max(1) as u64,
        }
    }

    /// Images that the lost packets make up, at least.
    fn images(&self, balance: &Balance) -> u64 {
        let lost = self.causes.iter().map(|&cause| balance.dropped_for(cause));
        lost.sum::<u64>().div_ceil(self.packets)
    }
}

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
        if let Some(event) = self.outputs.poll(lost(counters), self.has_room(counters)) {
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

/// Images that all receivers lost: no output, image buffer or packet buffer was free in time.
fn lost(counters: &Counters) -> u64 {
    let packets = counters.books.ledger.balance();
    let images = counters.images.overrun.get() + counters.outputs.behind();
    images + counters.overload.images(&packets)
}
