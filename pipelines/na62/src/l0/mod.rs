//! What flows through the L0 trigger.
//!
//! ```text
//!  Frame --decompress--> Fragments --build--> Event --rings--> Reconstructed --decide--> Decision
//! ```
//!
//! Fragments go to the builder in packet buffers of a pool of their own, those of several frames in
//! one ([`Fragments`] has the picture), and their hits are copied once, into their events.
//!
//! From the builder on an event is one packet buffer of the trigger's own pool of events: head,
//! rings and hits ([`Event`] has the picture). What goes through batches, and through rings to
//! other loops, is an owned handle of 8 bytes, and nothing of an event is copied up to the sink
//! behind the pipeline. There
//!
//! - dropping it is right, and slow; a loop frees it into a cache of its own of the same pool
//!   ([`L0Env::events`]): `cache.free(decision.into())`;
//! - to be handed on it becomes an `Mbuf`, which goes through an
//!   [`mbuf_ring`](pollux_mempool::mbuf_ring) and is an [`Event`] or a [`Decision`] again by
//!   `try_from`;
//! - for several owners it is frozen: `Mbuf::from(decision).freeze()` can be cloned, and
//!   [`EventView::of`] reads its bytes.
//!
//! The pool has a buffer for each event that can be under way, so it is never empty, unless
//! somebody holds more events than [`StageEnv::under_way`](pollux_pipelines::StageEnv::under_way) says.

mod env;
mod event;
mod faults;
mod fragments;
mod frame;
mod pool;
mod record;
mod span;
mod stats;
mod verdict;

pub use env::{EVENT_CACHE, L0Env, stage_env};
pub(crate) use env::{make_events, make_fragments, stats};
pub use event::draft::{Draft, event_pool};
pub use event::{Decision, Event, EventHead, EventTime, EventView, MAX_EVENT_HITS, Reconstructed};
pub use fragments::{Fragment, Fragments, fragment_pool};
pub use frame::Frame;
pub use record::{L0_EVENT, L0Record, PrimitiveId};
pub use span::Span;
pub(crate) use stats::{Apart, Closed};
pub use stats::{EventCounts, L0Stats, MAX_SOURCES, SourceCounts};
pub use verdict::Verdict;
