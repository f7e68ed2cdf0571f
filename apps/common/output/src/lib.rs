//! Outputs of events: destinations on the network that a trigger passes its events to.
//!
//! | item | what |
//! | --- | --- |
//! | [`OutputSpec`] | the text that names an output: `kind:target,key=value` |
//! | [`OutputKind`], [`OutputPlan`] | a kind of output, and one output as its spec describes it |
//! | [`EventOutput`] | an open output, which a thread of its own drives |
//! | [`ejfat`] | the kind `ejfat` |
//! | [`OutputEvent`] | an event with its number |
//! | [`event_queue`], [`EventQueues`], [`QueuedEvents`] | from the loop to the threads: shared buffers, no copy |
//! | [`RunningOutput`] | the thread of an output, from its start to its report |
//! | [`OutputCounts`], [`OutputReport`] | outcomes of all events |
//! | [`Task`], [`TaskThread`] | a thread beside the loops that works until it is to finish |
//!
//! ```text
//!   loop --> EventQueue (8192 events) --> thread: EventOutput::push, work --> network
//!        --> EventQueue               --> thread: ...
//! ```
//!
//! The loop never waits for an output of a live run: an event that the queue of one output has no
//! space for is lost to that output alone, and counted. A recording can wait, so it loses nothing.

mod counts;
pub mod ejfat;
mod error;
mod event;
mod kind;
mod output;
mod queue;
mod running;
mod spec;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing;
mod thread;

pub use self::counts::{LostReport, OutputCounts, OutputReport, QueueCounts};
pub use self::error::OutputError;
pub use self::event::OutputEvent;
pub use self::kind::{OutputKind, OutputPlan, PlannedOutput, RunContext, RunMonitor};
pub use self::output::EventOutput;
pub use self::queue::{
    CAPACITY, EventQueue, EventQueues, QueuedEvent, QueuedEvents, Selection, event_queue,
};
pub use self::running::RunningOutput;
pub use self::spec::OutputSpec;
pub use self::thread::{Task, TaskThread};
