//! Overruns as events: found in counters, outside of the loop that counts.

use super::protocol::Event;
use crate::transfer::TransferView;

/// Watches the overruns of a receiver. A supervisor polls it some times a second: the loop that counts
/// sends no messages.
#[derive(Clone, Debug)]
pub struct OverrunWatch {
    receiver: Option<String>,
    seen: u64,
    is_over: bool,
}

impl OverrunWatch {
    /// Of a receiver, or of a whole node without its name.
    #[must_use]
    pub fn new(receiver: Option<String>) -> Self {
        Self {
            receiver,
            seen: 0,
            is_over: false,
        }
    }

    /// The event to publish, given how many images were lost until now, and whether there are buffers
    /// again: an overrun if the number has grown, else room for more, once after an overrun.
    pub fn poll(&mut self, overrun: u64, has_room: bool) -> Option<Event> {
        let images = overrun.saturating_sub(self.seen);
        if images > 0 {
            (self.seen, self.is_over) = (overrun, true);
            let receiver = self.receiver.clone();
            return Some(Event::Overrun { receiver, images });
        }
        let room = self.is_over && has_room;
        self.is_over &= !has_room;
        room.then(|| Event::Room {
            receiver: self.receiver.clone(),
        })
    }

    /// The same for a transfer: there is room when half of its buffers are free.
    pub fn poll_transfer(&mut self, view: &TransferView) -> Option<Event> {
        self.poll(view.overrun(), 2 * view.free() >= view.buffers())
    }
}
