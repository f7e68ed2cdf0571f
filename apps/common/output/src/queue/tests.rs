#![allow(clippy::unwrap_used)]
use super::*;
use crate::testing::{ACCEPTED, CACHE, MONITORED, REJECTED, event, pool};

/// Numbers of the events in a queue.
fn numbers(queue: &mut QueuedEvents) -> Vec<u32> {
    let events = std::iter::from_fn(|| queue.pop());
    events.map(|event| event.event().unwrap().number).collect()
}

fn queue(selection: Selection, queues: &mut EventQueues) -> (QueuedEvents, Arc<QueueCounts>) {
    let counts = Arc::<QueueCounts>::default();
    let (producer, consumer) = event_queue(selection, Arc::clone(&counts)).unwrap();
    queues.add(producer);
    (consumer, counts)
}

#[test]
fn each_queue_has_the_events_of_its_selection() {
    let pool = pool(64);
    let mut cache = pool.cache(CACHE).unwrap();
    let mut queues = EventQueues::default();
    let selections = [Selection::Accepted, Selection::All, Selection::Kept];
    let mut consumers = selections.map(|selection| queue(selection, &mut queues).0);
    let verdicts = [ACCEPTED, REJECTED, MONITORED];
    for n in 0..30 {
        let event = event(n.into(), 20, verdicts[n as usize % 3], &mut cache);
        queues.push(n, event, &mut cache, |_| ());
    }
    let of = |kept: &dyn Fn(u32) -> bool| (0..30).filter(|&n| kept(n)).collect::<Vec<_>>();
    assert_eq!(numbers(&mut consumers[0]), of(&|n| n % 3 == 0));
    assert_eq!(numbers(&mut consumers[1]), of(&|_| true));
    assert_eq!(numbers(&mut consumers[2]), of(&|n| n % 3 != 1));
    drop((queues, consumers, cache));
    assert_eq!(pool.available(), pool.buffers());
}

/// Two queues share one buffer; an event that none takes costs none.
#[test]
fn an_event_is_never_copied() {
    let pool = pool(64);
    let mut cache = pool.cache(CACHE).unwrap();
    let mut queues = EventQueues::default();
    let (mut one, _) = queue(Selection::All, &mut queues);
    let (mut two, _) = queue(Selection::Accepted, &mut queues);
    let decision = event(7, 300, ACCEPTED, &mut cache);
    let bytes = decision.bytes().as_ptr();
    queues.push(0, decision, &mut cache, |_| ());
    let (first, second) = (one.pop().unwrap(), two.pop().unwrap());
    for shared in [&first, &second] {
        assert_eq!(shared.0.data().as_ptr(), bytes);
        assert_eq!(shared.event().unwrap().view.hits().len(), 300);
    }
}

/// What one queue has no room for is lost to it alone, and the loop is not held up.
#[test]
fn a_full_queue_takes_nothing_from_the_others() {
    let pool = pool(2 * CAPACITY);
    let mut cache = pool.cache(CACHE).unwrap();
    let mut queues = EventQueues::default();
    let (mut slow, slow_counts) = queue(Selection::Accepted, &mut queues);
    let (mut fast, fast_counts) = queue(Selection::Accepted, &mut queues);
    let events = QUEUE as u32 + 500;
    let mut taken = Vec::new();
    for n in 0..events {
        queues.push(
            n,
            event(n.into(), 1, ACCEPTED, &mut cache),
            &mut cache,
            |_| (),
        );
        taken.extend(numbers(&mut fast));
    }
    assert!(!queues.have_room());
    assert_eq!(taken, (0..events).collect::<Vec<_>>());
    assert_eq!(fast_counts.missed.get(), 0);
    let slow_numbers = numbers(&mut slow);
    assert_eq!(slow_counts.handed.get(), slow_numbers.len() as u64);
    assert_eq!(slow_counts.missed.get(), 500);
    assert_eq!(slow_numbers, (0..QUEUE as u32).collect::<Vec<_>>());
    assert!(queues.have_room());
    drop((queues, slow, fast, cache));
    assert_eq!(pool.available(), pool.buffers());
}
