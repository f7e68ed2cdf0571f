//! The interface of an open output.

use std::time::Instant;

use crate::event::OutputEvent;

/// An open output. One thread calls it, beside the loops; it may allocate and enter the kernel, and
/// it never waits for the network: not in [`push`](Self::push), not in [`work`](Self::work).
///
/// It counts the outcome of each event that was pushed in the [`OutputCounts`](crate::OutputCounts)
/// that it was opened with: `delivered`, `refused`, `unsent` or `repeated`, once; and `messages` and `bytes` of
/// what it has sent. A failure after the start is counted and logged once, and never ends the run.
pub trait EventOutput: Send {
    /// Whether it takes one more event now. While it does not, events stay in the queue; when that
    /// is full too, a live run counts them as lost (`queue-full`), and a recording waits.
    fn has_room(&self) -> bool;

    /// Takes an event over: encodes it, collects it for a message, or sends it. Called only while
    /// there is room.
    fn push(&mut self, event: OutputEvent<'_>);

    /// Makes progress: sends messages that are due, and takes acknowledgements. Returns whether there
    /// was anything to do; if not, and no event comes, the thread sleeps for a millisecond.
    fn work(&mut self) -> bool;

    /// Ends after the last event: sends what was collected, waits for acknowledgements, at most until
    /// `deadline`, and counts all events without one as `unsent`.
    fn finish(self: Box<Self>, deadline: Instant);
}
