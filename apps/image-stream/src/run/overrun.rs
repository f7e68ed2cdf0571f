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
    pub fn new(receivers: &[TransferView], queue: u64) -> Self {
        let watch = |view: &TransferView| {
            let watch = OverrunWatch::new(Some(view.name().to_owned()));
            (watch, view.clone())
        };
        Self {
            outputs: OverrunWatch::new(None),
            receivers: receivers.iter().map(watch).collect(),
            next: 0,
            room: queue,
        }
    }

    /// Publishes what happened since the last call, as far as clients can take it.
    pub fn poll(&mut self, counters: &Counters, publish: impl FnMut(Event)) {
        let has_room = has_room(counters, self.room);
        self.tell(counters.lost_by_all(), has_room, publish);
    }

    /// `lost` images were lost by all receivers so far.
    fn tell(&mut self, lost: u64, has_room: bool, mut publish: impl FnMut(Event)) {
        if let Some(event) = self.outputs.poll(lost, has_room) {
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
}

/// Whether stages and outputs have caught up.
fn has_room(counters: &Counters, queue: u64) -> bool {
    let images = &counters.images;
    let done = images.ended() + counters.lost();
    let waiting = images.built.get().saturating_sub(done);
    let (handed, kept) = (images.handed.get(), images.handed_kept.get());
    waiting < queue.max(2) && 2 * counters.outputs.waiting(handed, kept) <= queue
}

#[cfg(test)]
mod tests {
    use pollux_images::Shape;
    use pollux_images::transfer::{Receivers, TransferConfig};
    use pollux_pipelines::Moment;

    use super::*;

    /// All receivers at once: each is told, a few at a time.
    #[test]
    fn many_overruns_are_told_one_after_the_other() {
        let configs: Vec<_> = (0..40)
            .map(|n| TransferConfig {
                buffers: 1,
                ..TransferConfig::new(n.to_string())
            })
            .collect();
        let shape = Shape {
            rows: 1,
            columns: 1,
        };
        let (mut receivers, mut ends) = Receivers::new(&configs, shape, 1 << 20).unwrap();
        let mut overruns = Overruns::new(&receivers.views(), 4);
        for number in 0..3 {
            receivers.push(number, Moment(0), &[1_u16]).unwrap();
        }
        let mut told = Vec::new();
        let counts = [0, 0, 7, 7].map(|lost| {
            let before = told.len();
            overruns.tell(lost, lost == 0, |event| told.push(event));
            told.len() - before
        });
        assert_eq!(counts, [16, 16, 9, 0]);
        let images = |event: &Event| match event {
            Event::Overrun { receiver, images } => (receiver.clone(), *images),
            other => panic!("{other:?}"),
        };
        let mut told: Vec<_> = told.iter().map(images).collect();
        told.sort();
        assert_eq!(told[0], (None, 7));
        assert!(told[1..].iter().all(|(_, images)| *images == 2));
        told.dedup_by(|a, b| a.0 == b.0);
        assert_eq!(told.len(), 41);
        // All have room again.
        for end in &mut ends {
            drop(end.try_next());
        }
        let mut rooms = 0;
        for _ in 0..3 {
            overruns.tell(7, true, |event| {
                rooms += usize::from(matches!(event, Event::Room { .. }));
            });
        }
        assert_eq!(rooms, 41);
    }
}
