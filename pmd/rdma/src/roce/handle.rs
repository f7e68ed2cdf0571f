//! A queue pair as the program has it.

use std::sync::Arc;
use std::time::Duration;

use pollux_pmd::event::{EventConsumer, EventRecord};

use super::mailbox::Mailbox;
use super::wake::Wake;
use crate::address::QpNumber;
use crate::event::Event;
use crate::queue_pair::QueuePairDriver;
use crate::work_queue::{Descriptor, Poster};

/// The program's side of a queue pair. Dropping it destroys the queue pair.
pub(super) struct RoceQueuePair {
    pub(super) requests: Poster,
    pub(super) receives: Poster<0>,
    pub(super) events: EventConsumer,
    /// An event that was found on the way to sleep.
    pub(super) next: Option<EventRecord>,
    pub(super) wake: Arc<Wake>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) number: QpNumber,
}

impl QueuePairDriver for RoceQueuePair {
    #[inline]
    fn post(&mut self, descriptor: Descriptor, data: &[u8]) -> bool {
        self.requests.post(descriptor, data)
    }

    #[inline]
    fn post_receive(&mut self, descriptor: Descriptor) -> bool {
        self.receives.post(descriptor, &[])
    }

    #[inline]
    fn doorbell(&mut self) {
        // Receives first: a request may be answered by a message.
        self.receives.ring();
        self.requests.ring();
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        loop {
            // A record that no queue pair writes is that of a broken device: passed over.
            let record = self.next.take().or_else(|| self.events.poll())?;
            if let Some(event) = Event::from_record(&record) {
                return Some(event);
            }
        }
    }

    fn sleep(&mut self, timeout: Option<Duration>) {
        let (next, events) = (&mut self.next, &mut self.events);
        self.wake.sleep(timeout, || {
            *next = next.or_else(|| events.poll());
            next.is_some()
        });
    }
}

impl Drop for RoceQueuePair {
    fn drop(&mut self) {
        self.mailbox.remove(self.number);
    }
}
