#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::OutputEvent;
use crate::queue::{CAPACITY, EventQueues, Selection, event_queue};
use crate::testing::{ACCEPTED, CACHE, event, pool};

/// Behaviour of an output.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// It delivers each event at once.
    Delivers,
    /// It has no room, until the end.
    NoRoom,
    /// Nothing is acknowledged, and it gives up at the deadline.
    Silent,
    /// Its thread never returns from the third event.
    Hangs,
    /// Its thread panics at the third event.
    Panics,
}

struct Fake {
    way: Way,
    counts: Arc<OutputCounts>,
    taken: u64,
    /// Lets a hanging thread go.
    free: Arc<AtomicBool>,
}

impl EventOutput for Fake {
    fn has_room(&self) -> bool {
        self.way != Way::NoRoom
    }

    fn push(&mut self, _: OutputEvent<'_>) {
        self.taken += 1;
        match self.way {
            Way::Hangs if self.taken == 3 => {
                while !self.free.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Way::Panics if self.taken == 3 => panic!("as asked for"),
            Way::Silent => {}
            _ => self.counts.delivered.add(1),
        }
    }

    fn work(&mut self) -> bool {
        false
    }

    fn finish(self: Box<Self>, deadline: Instant) {
        if self.way == Way::Silent {
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
            self.counts.unsent.add(self.taken);
        }
    }
}

/// Passes events on to an output, and gives its report and how long its end took.
fn run(way: Way, events: u64) -> (OutputReport, Duration) {
    let pool = pool(2 * CAPACITY);
    let mut cache = pool.cache(CACHE).unwrap();
    let mut queues = EventQueues::default();
    let counts = Arc::<OutputCounts>::default();
    let (producer, queue) = event_queue(Selection::All, Arc::clone(&counts.queue)).unwrap();
    queues.add(producer);
    let free = Arc::<AtomicBool>::default();
    let output = Fake {
        way,
        counts: Arc::clone(&counts),
        taken: 0,
        free: Arc::clone(&free),
    };
    let mut running = RunningOutput::start("fake", Box::new(output), queue, counts, &[]).unwrap();
    running.times = Times {
        deadline: Duration::from_millis(300),
        grace: Duration::from_millis(300),
    };
    for n in 0..events {
        queues.push(0, event(n, 1, ACCEPTED, &mut cache), &mut cache, |_| ());
    }
    running.end();
    let begun = Instant::now();
    let report = running.finish();
    let took = begun.elapsed();
    free.store(true, Ordering::Relaxed);
    assert!(report.balanced, "{report:?}");
    assert_eq!(report.handed, events);
    let lost = report.lost;
    let lost = lost.queue_full + lost.refused + lost.unsent;
    assert_eq!(report.handed, report.delivered + lost);
    (report, took)
}

#[test]
fn every_event_is_delivered() {
    let (report, _) = run(Way::Delivers, 5000);
    assert_eq!(report.delivered, 5000);
}

#[test]
fn an_output_without_room_fills_its_queue() {
    let events = 2 * CAPACITY as u64;
    let (report, _) = run(Way::NoRoom, events);
    assert_eq!(report.delivered, 0);
    assert_eq!(report.lost.unsent, CAPACITY as u64 - 1);
    assert!(report.lost.queue_full > 0);
}

#[test]
fn what_is_not_acknowledged_by_the_deadline_is_unsent() {
    let (report, _) = run(Way::Silent, 100);
    assert_eq!((report.delivered, report.lost.unsent), (0, 100));
}

#[test]
fn an_output_that_hangs_is_abandoned() {
    let (report, took) = run(Way::Hangs, 100);
    assert_eq!((report.delivered, report.lost.unsent), (2, 98));
    assert!(took >= Duration::from_millis(500), "{took:?}");
}

#[test]
fn an_output_that_panics_loses_its_events() {
    let (report, _) = run(Way::Panics, 100);
    assert_eq!((report.delivered, report.lost.unsent), (2, 98));
}
