//! Decompress: hit containers into fragments.

use std::sync::Arc;

use pollux_mempool::PoolCache;
use pollux_pipelines::StageEnv;
use pollux_pipelines::simd::Simd;
use pollux_pipelines::stage::{Batch, Sink, Stage};
use pollux_pmd::stream::{SpillTracker, Verdict};
use pollux_pmd::{Cause, Tally};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::formats::hits::{HitsFrame, HitsHeader, MAX_HITS};
use crate::formats::{FormatError, mtp::SOURCE_RICH};
use crate::l0::{Fragment, Fragments, Frame, L0Stats, make_fragments, stats};
use crate::rich::Hit;

/// No source has this index.
const NONE: u8 = u8::MAX;

/// Options of `decompress`: hit containers into fragments of events.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecompressOptions {
    /// Detector whose containers are taken.
    pub source_id: u8,
    /// Boards of that detector, in the order of the sources; one for each. Left out: 0, 1, 2, ...
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

/// Bytes of fragments that are handed on without waiting for more: so few that they are still in
/// the first cache when events are built of them.
const ENOUGH: usize = 12 << 10;

/// Checks each frame's container as a whole, follows the sequence numbers of its source, and makes
/// a fragment of each event in it. Source s has stream s: a frame of a board on the port of another
/// is dropped.
///
/// A frame that is refused here is dropped with its cause. One that passes is counted by the stage
/// that takes the last of its fragments, so stages in between must hand on every fragment, emptied
/// if need be; a container without events is delivered here.
pub struct Decompress {
    boards: Boards,
    tally: Tally,
    scratch: Box<[u8]>,
}

/// What is known of the boards, and what they have said.
struct Boards {
    detector: u8,
    /// Source by board number.
    sources: [u8; 256],
    spills: SpillTracker,
    stats: Arc<L0Stats>,
    simd: Simd,
    /// Buffers for fragments.
    buffers: PoolCache,
    /// The one that is being filled.
    filling: Option<Fragments>,
}

impl Decompress {
    /// Makes the stage.
    ///
    /// # Errors
    /// A list of boards that is not as long as the list of sources, or names one twice; memory that
    /// cannot be had.
    pub fn new(options: &DecompressOptions, env: &mut StageEnv) -> Result<Self, String> {
        let stats = stats(env)?;
        let count = stats.sources.len();
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
            boards: Boards {
                detector: options.source_id,
                sources,
                spills: SpillTracker::new(count),
                stats,
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
    /// The payload of a frame; its fragments go to `out`, sooner or later. Whether there are any,
    /// or the cause for which it is dropped.
    #[inline]
    fn expand(
        &mut self,
        payload: &[u8],
        frame: &Frame,
        out: &mut impl Sink<Fragments>,
    ) -> Result<bool, Cause> {
        let header = HitsHeader::parse(payload).map_err(cause)?;
        let source = self.sources[usize::from(header.sub_id())];
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

    /// The same for a frame whose fragments may need several buffers, of which `filling` is the
    /// first.
    #[cold]
    fn expand_long(
        &mut self,
        header: HitsHeader,
        frame: &Frame,
        like: Fragment,
        mut filling: Fragments,
        out: &mut impl Sink<Fragments>,
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
                self.stats.events.no_buffer.add(lost);
                break;
            };
            // It fits: the buffer is empty.
            let _ = next.push(&fragment);
            out.push(std::mem::replace(&mut filling, next));
        }
        out.push(filling);
        Ok(true)
    }

    /// Takes a sound container, if it is of a board of ours, on the port of that board, and not there
    /// twice.
    #[inline]
    fn admit(&mut self, container: &HitsFrame, frame: &Frame) -> Result<Order, Cause> {
        let source = self.sources[usize::from(container.sub_id())];
        if container.source_id() != self.detector || source == NONE {
            return Err(Cause::Unsupported);
        }
        if u16::from(source) != frame.stream.0 {
            self.misroute(source.into(), frame.stream.0.into());
            return Err(Cause::Misrouted);
        }
        let index = usize::from(source);
        // Without events there is no time stamp.
        let stamp = match container.event_count() {
            0 => 0,
            _ => container.first_timestamp(),
        };
        let seen = self.spills.observe(index, container.sequence(), stamp);
        let counts = &self.stats.sources[index];
        counts.frames.add(1);
        counts.events.add(container.event_count().into());
        let mut order = Order::default();
        if seen.verdict != Verdict::InOrder {
            self.tell(index, seen.verdict);
            match seen.verdict {
                _ if seen.is_copy => return Err(Cause::Duplicate),
                Verdict::Gap(lost) => order.lost = u16::try_from(lost).unwrap_or(u16::MAX),
                Verdict::Reordered => order.reordered = true,
                _ => {}
            }
        }
        Ok(order)
    }

    /// Brings what a source's sequence numbers say to its counters; of all when they begin a spill.
    fn tell(&self, source: usize, verdict: Verdict) {
        let told = self.stats.sources[source].spills.get();
        if verdict == Verdict::Resync && self.spills.spills(source) > told {
            self.tell_all();
        } else {
            self.tell_one(source);
        }
    }

    fn tell_all(&self) {
        (0..self.stats.sources.len()).for_each(|source| self.tell_one(source));
    }

    fn tell_one(&self, source: usize) {
        let (counts, now) = (&self.stats.sources[source], self.spills.counts(source));
        counts.missing.set(now.missing);
        counts.gaps.set(now.gaps);
        counts.duplicates.set(now.duplicates);
        counts.reordered.set(now.reordered);
        counts.resyncs.set(now.resyncs);
        counts.spills.set(self.spills.spills(source));
    }

    /// Counts a frame that claims to be of a source, on the port of another one.
    #[cold]
    fn misroute(&self, claimed: usize, port: usize) {
        let sources = &self.stats.sources;
        if let Some(counts) = sources.get(port) {
            counts.misrouted.add(1);
        }
        if let Some(counts) = sources.get(claimed) {
            counts.elsewhere.add(1);
        }
    }
}

/// What the sequence number of a frame says of those before it, as in [`Fragment`].
#[derive(Clone, Copy, Default)]
struct Order {
    lost: u16,
    reordered: bool,
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

    /// What is gathered in one buffer need not be gathered once more.
    const GATHERED: usize = 1;

    /// Leaves the frames in the batch: their buffers go back to the loop's cache.
    fn process(&mut self, batch: &mut Batch<Frame>, out: &mut impl Sink<Fragments>) {
        for frame in batch.as_slice() {
            let payload = frame.payload(&mut self.scratch);
            match self.boards.expand(payload, frame, out) {
                Ok(true) => {}
                Ok(false) => self.tally.count_delivered(1),
                Err(cause) => self.tally.count_dropped(cause, 1),
            }
        }
        // Nothing waits for the next batch. What is empty has held frames that were refused.
        if let Some(filled) = self.boards.filling.take_if(|filling| !filling.is_empty()) {
            out.push(filled);
        }
    }

    fn finish(&mut self, _out: &mut impl Sink<Fragments>) {
        self.boards.tell_all();
    }
}
