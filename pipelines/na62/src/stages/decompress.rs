//! Stage `decompress`: unpacks hit containers into fragments.

use pollux_mempool::PoolCache;
use pollux_pipelines::StageEnv;
use pollux_pipelines::simd::Simd;
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Stage};
use pollux_pmd::{Cause, Tally};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filling::ENOUGH;
use super::sources::{Order, Sources};
use crate::formats::hits::{HitsFrame, HitsHeader, MAX_HITS};
use crate::formats::{FormatError, mtp::SOURCE_RICH};
use crate::l0::{Fragment, Fragments, Frame, make_fragments};
use crate::rich::Hit;

/// Options of `decompress`: hit containers into fragments of events.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecompressOptions {
    /// Source ID of the detector whose containers are accepted.
    pub source_id: u8,
    /// Boards of that detector, in the order of the sources; one for each. Default: 0, 1, 2, ...
    pub boards: Option<Vec<u8>>,
}

impl Default for DecompressOptions {
    fn default() -> Self {
        Self {
            source_id: SOURCE_RICH,
            boards: None,
        }
    }
}

/// Checks each frame's container as a whole, follows the sequence numbers of its source, and makes
/// a fragment of each event in it. Source s has stream s: a frame of a board on the port of another
/// is dropped.
///
/// A frame that is refused here is dropped with its cause. Other frames are counted by the stage
/// that takes their last fragment, so stages in between must pass on every fragment, emptied if
/// need be. A container without events is counted as delivered here.
pub struct Decompress {
    boards: Boards,
    tally: Tally,
    scratch: Box<[u8]>,
}

/// Configuration and sequence state of the boards.
struct Boards {
    sources: Sources,
    simd: Simd,
    /// Buffers for fragments.
    buffers: PoolCache,
    /// The buffer that is being filled.
    filling: Option<Fragments>,
}

impl Decompress {
    /// Creates the stage.
    ///
    /// # Errors
    /// A list of boards with another length than the list of sources, or with duplicates; memory
    /// that is not available.
    pub fn new(options: &DecompressOptions, env: &mut StageEnv) -> Result<Self, String> {
        let sources = Sources::boards(options.source_id, options.boards.as_deref(), env)?;
        let tally = Tally::new();
        env.ledger.add("decompress", tally.view());
        Ok(Self {
            boards: Boards {
                sources,
                simd: Simd::best(),
                buffers: make_fragments(env).map_err(|e| e.to_string())?,
                filling: None,
            },
            tally,
            scratch: vec![0; usize::from(u16::MAX)].into_boxed_slice(),
        })
    }
}

impl Boards {
    /// Unpacks the payload of a frame; its fragments go to `out`, sooner or later. Returns whether
    /// there are any, or the cause for which the frame is dropped.
    #[inline]
    fn expand(
        &mut self,
        payload: &[u8],
        frame: &Frame,
        out: &mut impl Output<Fragments>,
    ) -> Result<bool, Cause> {
        let header = HitsHeader::parse(payload).map_err(cause)?;
        let source = self.sources.of_board(header.sub_id());
        let like = Fragment {
            timestamp: 0,
            source: source.into(),
            ends_frame: false,
            lost: 0,
            reordered: false,
            at: frame.at,
            arrival: frame.mbuf.arrival(),
            hits: &[],
        };
        let (events, hits) = header.bounds();
        let mut filling = match self.filling.take() {
            Some(filling) if filling.is_empty() || filling.has_room(events, hits) => filling,
            full => {
                if let Some(full) = full {
                    out.push(full);
                }
                Fragments::new(&mut self.buffers).ok_or(Cause::NoMbuf)?
            }
        };
        if !filling.has_room(events, hits) {
            return self.expand_long(header, frame, like, filling, out);
        }
        let before = filling.used();
        let container = header.decode(self.simd, &mut filling.filler(&like));
        let admitted = container
            .map_err(cause)
            .and_then(|it| self.admit(&it, frame));
        match admitted {
            Ok(order) => {
                filling.mark(before, order.lost, order.reordered);
                filling.end_frame(before);
            }
            Err(_) => filling.cut(before),
        }
        if filling.used() < ENOUGH {
            self.filling = Some(filling);
        } else {
            out.push(filling);
        }
        admitted.map(|_| events > 0)
    }

    /// As above, for a frame whose fragments may need several buffers, of which `filling` is the
    /// first.
    #[cold]
    fn expand_long(
        &mut self,
        header: HitsHeader,
        frame: &Frame,
        like: Fragment,
        mut filling: Fragments,
        out: &mut impl Output<Fragments>,
    ) -> Result<bool, Cause> {
        let container = header.check().map_err(cause)?;
        let mut order = self.admit(&container, frame)?;
        let mut hits = [Hit::default(); MAX_HITS];
        let mut events = container.events();
        while let Some((timestamp, hits)) = events.next_into(&mut hits) {
            let fragment = Fragment {
                timestamp,
                ends_frame: events.remaining() == 0,
                lost: std::mem::take(&mut order.lost),
                reordered: std::mem::take(&mut order.reordered),
                hits,
                ..like
            };
            if filling.push(&fragment) {
                continue;
            }
            let Some(mut next) = Fragments::new(&mut self.buffers) else {
                // The frame ends here.
                filling.end_frame(0);
                let lost = 1 + u64::from(events.remaining());
                let stats = self.sources.stats();
                stats.count_unbuffered(like.source.into(), lost);
                break;
            };
            // It fits: the buffer is empty.
            let _ = next.push(&fragment);
            out.push(std::mem::replace(&mut filling, next));
        }
        out.push(filling);
        Ok(true)
    }

    /// Unpacks a valid container if it is of a configured board, on the port of that board, and not
    /// a duplicate.
    #[inline]
    fn admit(&mut self, container: &HitsFrame, frame: &Frame) -> Result<Order, Cause> {
        let (detector, board) = (container.source_id(), container.sub_id());
        let source = self.sources.find(detector, board, frame.stream)?;
        // Without events there is no time stamp.
        let stamp = match container.event_count() {
            0 => 0,
            _ => container.first_timestamp(),
        };
        self.sources.count_frame(source);
        let order = self.sources.follow(source, container.sequence(), stamp)?;
        let events = container.event_count().into();
        self.sources.count_events(source, events);
        Ok(order)
    }
}

fn cause(error: FormatError) -> Cause {
    match error {
        FormatError::BadVersion { .. } => Cause::BadVersion,
        _ => Cause::Malformed,
    }
}

impl Stage for Decompress {
    type In = Frame;
    type Out = Fragments;

    /// Fragments in a single buffer need not be copied again.
    const GATHERED: usize = 1;

    /// Leaves the frames in the batch: their buffers go back to the loop's cache.
    fn process(&mut self, batch: &mut Batch<Frame>, out: &mut impl Output<Fragments>) {
        for frame in batch.as_slice() {
            let payload = frame.payload(&mut self.scratch);
            match self.boards.expand(payload, frame, out) {
                Ok(true) => {}
                Ok(false) => self.tally.count_delivered(1),
                Err(cause) => {
                    self.boards
                        .sources
                        .stats()
                        .count_unreadable(frame.stream.0, cause);
                    self.tally.count_dropped(cause, 1);
                }
            }
        }
        // Nothing waits for the next batch. An empty buffer had fragments of frames that were
        // refused.
        if let Some(filled) = self.boards.filling.take_if(|filling| !filling.is_empty()) {
            out.push(filled);
        }
    }

    fn finish(&mut self, _out: &mut impl Output<Fragments>) {
        self.boards.sources.show_all();
    }
}
