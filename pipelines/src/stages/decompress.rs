//! Decompress: hit containers into fragments.

use std::sync::Arc;

use pollux_pmd::stream::{SequenceTracker, Verdict};
use pollux_pmd::{Cause, Tally};
use serde::Deserialize;

use crate::formats::hits::{Decoded, HitsFrame};
use crate::formats::{FormatError, mtp::SOURCE_RICH};
use crate::l0::{Fragment, Frame, L0Stats, List};
use crate::registry::StageEnv;
use crate::simd::Simd;
use crate::stage::{Batch, Sink, Stage};

/// No source has this index.
const NONE: u8 = u8::MAX;

/// Options of the stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DecompressOptions {
    /// Detector whose containers are taken.
    pub source_id: u8,
    /// Boards of that detector, in the order of the sources; by default 0, 1, 2, ...
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
/// a fragment of each event in it.
///
/// A frame that is refused here is dropped with its cause. One that passes is counted by the stage
/// that takes the last of its fragments, so stages in between must hand on every fragment, emptied
/// if need be; a container without events is delivered here.
pub struct Decompress {
    detector: u8,
    /// Source by board number.
    sources: [u8; 256],
    trackers: Vec<SequenceTracker>,
    stats: Arc<L0Stats>,
    tally: Tally,
    decoded: Decoded,
    scratch: Box<[u8]>,
}

impl Decompress {
    /// Makes the stage.
    ///
    /// # Errors
    /// A list of boards that is not as long as the list of sources, or names one twice.
    pub fn new(options: &DecompressOptions, env: &mut StageEnv) -> Result<Self, String> {
        let count = env.stats.sources.len();
        let boards = options
            .boards
            .clone()
            .unwrap_or_else(|| (0..count).map(|b| b as u8).collect());
        if boards.len() != count {
            return Err(format!(
                "{} boards for {count} sources: one each",
                boards.len()
            ));
        }
        let mut sources = [NONE; 256];
        for (source, &board) in (0..).zip(&boards) {
            if sources[usize::from(board)] != NONE {
                return Err(format!("board {board} is listed twice"));
            }
            sources[usize::from(board)] = source;
        }
        let tally = Tally::new();
        env.ledger.add("decompress", tally.view());
        Ok(Self {
            detector: options.source_id,
            sources,
            trackers: vec![SequenceTracker::new(); count],
            stats: Arc::clone(&env.stats),
            tally,
            decoded: Decoded::new(Simd::best()),
            scratch: vec![0; usize::from(u16::MAX)].into_boxed_slice(),
        })
    }

    /// One frame; its fragments go to `out`, or the cause for which it is dropped comes back.
    #[inline]
    fn expand(&mut self, frame: &Frame, out: &mut impl Sink<Fragment>) -> Result<(), Cause> {
        let payload = frame.payload(&mut self.scratch);
        let decoded = HitsFrame::decode(payload, &mut self.decoded);
        let container = decoded.map_err(|error| match error {
            FormatError::BadVersion { .. } => Cause::BadVersion,
            _ => Cause::Malformed,
        })?;
        let source = self.sources[usize::from(container.sub_id())];
        if container.source_id() != self.detector || source == NONE {
            return Err(Cause::Unsupported);
        }
        let index = usize::from(source);
        let tracker = &mut self.trackers[index];
        let verdict = tracker.observe(container.sequence());
        let counts = &self.stats.sources[index];
        counts.frames.add(1);
        if verdict != Verdict::InOrder {
            let now = tracker.counts();
            counts.missing.set(now.missing);
            counts.gaps.set(now.gaps);
            counts.duplicates.set(now.duplicates);
            counts.reordered.set(now.reordered);
            counts.resyncs.set(now.resyncs);
            if verdict == Verdict::Duplicate {
                return Err(Cause::Duplicate);
            }
        }
        let mut events = self.decoded.events();
        if events.len() == 0 {
            self.tally.count_delivered(1);
        }
        while let Some((timestamp, hits)) = events.next() {
            let mut fragment = Fragment {
                timestamp,
                source: u16::from(source),
                ends_frame: events.len() == 0,
                at: frame.at,
                arrival: frame.mbuf.arrival(),
                hits: List::default(),
            };
            // It fits: both hold MAX_HITS.
            let _ = fragment.hits.extend(hits);
            out.push(fragment);
        }
        Ok(())
    }
}

impl Stage for Decompress {
    type In = Frame;
    type Out = Fragment;

    /// Leaves the frames in the batch: their buffers go back to the loop's cache.
    fn process(&mut self, batch: &mut Batch<Frame>, out: &mut impl Sink<Fragment>) {
        for frame in batch.as_slice() {
            if let Err(cause) = self.expand(frame, out) {
                self.tally.count_dropped(cause, 1);
            }
        }
    }
}
