//! The scheduler: gives each event to a free receive buffer, and watches the farm (thesis, III.B
//! and III.F).
//!
//! The next receive buffer is chosen as soon as the one before is used, so that a trigger becomes
//! a message at once (thesis, figure III-9). A copy of each message is kept until it returns and
//! its events are decided; what does not come back in time is sent again, and what an excluded
//! node had is given to others.

mod again;
mod buffers;
mod columns;
mod config;
mod counters;
mod exclude;
mod flights;
mod gather;
mod peer;
mod receive;
mod registers;
mod release;
mod repeats;
mod ring;
mod rounds;
mod serve;
mod slots;
mod state;
mod timers;
mod triggers;
mod watch;

pub use config::{Config, ConfigError, Discipline, MAX_IN_FLIGHT, Mode, Policy, Timeouts};
pub use counters::{
    Counters, ExclusionCounts, FeedbackCounts, FlowCounts, MoreCounts, TriggerCounts,
};
pub use gather::Source;
pub use peer::Exclusion;
pub use registers::{Register, RegisterError};
pub use state::{Scheduler, Stall};
