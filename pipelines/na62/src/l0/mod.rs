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
mod record;
mod stats;

pub use env::{EVENT_CACHE, L0Env, stage_env};
pub(crate) use env::{make_events, make_fragments, stats};
pub use event::{
    Decision, Draft, Event, EventHead, EventTime, EventView, MAX_EVENT_HITS, Reconstructed,
    event_pool,
};
pub use fragments::{Fragment, Fragments, fragment_pool};
pub use record::{L0_EVENT, L0Record, PrimitiveId};
pub(crate) use stats::{Apart, Closed};
pub use stats::{EventCounts, L0Stats, SourceCounts};

use pollux_mempool::region::PageSize;
use pollux_mempool::{Mbuf, Mempool, PoolConfig, PoolError};
use pollux_pipelines::stage::Moment;
use pollux_pmd::stream::StreamId;

/// Most sources of one event.
pub const MAX_SOURCES: usize = 16;

/// A pool of the trigger's own, for what no port sees: no headroom, and no page of 1 GiB for it.
fn own_pool(buffers: usize, data_room: usize, memory: PoolConfig) -> Result<Mempool, PoolError> {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        headroom: 0,
        pages: match memory.pages {
            PageSize::Gib1 => PageSize::Mib2,
            pages => pages,
        },
        ..memory
    })
}

/// A received datagram of a known stream.
#[derive(Debug)]
pub struct Frame {
    /// The whole frame.
    pub mbuf: Mbuf,
    /// Stream that it belongs to.
    pub stream: StreamId,
    /// Bytes from the start of the frame to the UDP payload.
    pub offset: u16,
    /// Bytes of UDP payload.
    pub len: u16,
    /// When it came, on the time line of the deadlines.
    pub at: Moment,
}

impl Frame {
    /// The payload; copied into `scratch` first if it spans segments.
    #[must_use]
    #[inline]
    pub fn payload<'a>(&'a self, scratch: &'a mut [u8]) -> &'a [u8] {
        let (start, len) = (usize::from(self.offset), usize::from(self.len));
        if let Some(payload) = self.mbuf.data().get(start..start + len) {
            return payload;
        }
        let len = len.min(scratch.len());
        let copied = self.mbuf.copy_to(start, &mut scratch[..len]);
        &scratch[..copied]
    }
}

/// What the rules say about an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Bit r: rule r of the set accepted it.
    pub rules: u8,
    /// Which set of rules decided: the first of a run is 0.
    pub rule_set: u16,
    /// It was rejected, and is kept for monitoring.
    pub monitored: bool,
}

impl Verdict {
    /// Whether the event is accepted: by any rule.
    #[must_use]
    #[inline]
    pub fn accepted(self) -> bool {
        self.rules != 0
    }
}
