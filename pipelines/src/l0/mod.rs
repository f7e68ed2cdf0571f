//! What flows through the L0 trigger.
//!
//! ```text
//!  Frame --decompress--> Fragment --build--> Event --rings--> Reconstructed --decide--> Decision
//! ```

mod list;
mod record;
mod stats;

pub use list::List;
pub use record::{L0_EVENT, L0Record, primitive_id};
pub use stats::{EventCounts, L0Stats, SourceCounts};

use pollux_mempool::Mbuf;
use pollux_mempool::time::Tsc;
use pollux_pmd::stream::StreamId;

use crate::formats::hits;
use crate::rich::Hit;
use crate::rich::find::{MAX_RINGS, Ring};
use crate::stage::Moment;

/// Most hits of one event, over all sources.
pub const MAX_EVENT_HITS: usize = 512;

/// Most sources of one event.
pub const MAX_SOURCES: usize = 16;

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

/// What one source has to say about one event.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// Time of the event, in slots of 25 ns since the start of the burst.
    pub timestamp: u64,
    /// Index of the source in the configured list.
    pub source: u16,
    /// The last fragment of its frame: with it, the frame is delivered or lost as a whole.
    pub ends_frame: bool,
    /// When its frame came, on the time line of the deadlines.
    pub at: Moment,
    /// When its frame came, on the clock.
    pub arrival: Tsc,
    /// Its hits, sorted by photomultiplier.
    pub hits: List<Hit, { hits::MAX_HITS }>,
}

/// All fragments of one event that came in time.
#[derive(Clone, Debug)]
pub struct Event {
    /// What is known of the event.
    pub head: EventHead,
    /// Hits of all sources: in the order of the sources, each sorted by photomultiplier.
    pub hits: List<Hit, MAX_EVENT_HITS>,
}

/// What is known of an event besides its hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventHead {
    /// Time of the event, in slots of 25 ns.
    pub timestamp: u64,
    /// Bit s: source s contributed.
    pub sources: u16,
    /// All sources contributed.
    pub complete: bool,
    /// Number of hits.
    pub hits: u16,
    /// When its first fragment came, on the clock.
    pub arrival: Tsc,
}

/// An event with its rings.
#[derive(Clone, Debug)]
pub struct Reconstructed {
    /// What is known of the event.
    pub head: EventHead,
    /// Its rings.
    pub rings: List<Ring, MAX_RINGS>,
}

/// An event, its rings, and what was decided about it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What is known of the event.
    pub head: EventHead,
    /// Its rings.
    pub rings: List<Ring, MAX_RINGS>,
    /// The trigger's word.
    pub accepted: bool,
}
