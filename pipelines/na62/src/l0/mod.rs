//! Data types of the L0 trigger's pipeline: frames, fragments, events, decisions.
//!
//! ```text
//!  Frame --decompress--> Fragments --build--> Event --rings--> Reconstructed --decide--> Decision
//! ```
//!
//! Fragments go to the builder in packet buffers of a separate pool, those of several frames in one
//! buffer ([`Fragments`] documents the layout). Their hits are copied once, into their events.
//!
//! From the builder on, an event is one packet buffer of the trigger's event pool: head, rings and
//! hits ([`Event`] documents the layout). Batches, and rings to other loops, carry an owned handle
//! of 8 bytes, so nothing of an event is copied up to the sink of the pipeline. There
//!
//! - it can be dropped, which is correct but slow; a loop frees it into its own cache of the same
//!   pool ([`L0Env::events`]): `cache.free(decision.into())`;
//! - to pass it on, it is converted to an `Mbuf`, which goes through an
//!   [`mbuf_ring`](pollux_mempool::mbuf_ring) and becomes an [`Event`] or a [`Decision`] again by
//!   `try_from`;
//! - for several owners it is frozen: `Mbuf::from(decision).freeze()` can be cloned, and
//!   [`EventView::of`] reads its bytes.
//!
//! The pool has a buffer for each event in flight, so it is never empty unless the consumer exceeds
//! the in-flight limit [`StageEnv::under_way`](pollux_pipelines::StageEnv::under_way).

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
