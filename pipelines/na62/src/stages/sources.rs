//! The sources of the trigger, by the identifiers in what their boards send.

use std::sync::Arc;

use pollux_pipelines::StageEnv;
use pollux_pmd::Cause;
use pollux_pmd::stream::{SpillTracker, StreamId, Verdict};

use crate::l0::{L0Stats, stats};

/// No source has this number.
const NONE: u8 = u8::MAX;

/// Which source a packet is of, and what its sequence numbers say. Source s has stream s: a packet
/// of a board on the port of another is refused.
pub(super) struct Sources {
    /// The detector of all sources; `None` if each is a detector of its own.
    detector: Option<u8>,
    /// Source by board number, or by detector.
    numbers: [u8; 256],
    spills: SpillTracker,
    stats: Arc<L0Stats>,
}

/// What the sequence number of a packet says of those before it, as in [`Fragment`](crate::l0::Fragment).
#[derive(Clone, Copy, Default)]
pub(super) struct Order {
    pub(super) lost: u16,
    pub(super) reordered: bool,
}

impl Sources {
    /// Boards of one detector, in the order of the sources; without a list 0, 1, 2, ...
    ///
    /// # Errors
    /// A list that is not as long as that of the sources, or names a board twice.
    pub(super) fn boards(
        detector: u8,
        boards: Option<&[u8]>,
        env: &StageEnv,
    ) -> Result<Self, String> {
        Self::new(Some(detector), "board", boards, env)
    }

    /// A detector for each source.
    ///
    /// # Errors
    /// A list that is not as long as that of the sources, or names a detector twice.
    pub(super) fn detectors(detectors: &[u8], env: &StageEnv) -> Result<Self, String> {
        Self::new(None, "detector", Some(detectors), env)
    }

    fn new(
        detector: Option<u8>,
        what: &str,
        listed: Option<&[u8]>,
        env: &StageEnv,
    ) -> Result<Self, String> {
        let stats = stats(env)?;
        let count = stats.sources.len();
        let ascending: Vec<u8> = (0..count).map(|board| board as u8).collect();
        let listed = listed.unwrap_or(&ascending);
        if listed.len() != count {
            let number = listed.len();
            return Err(format!("{number} {what}s for {count} sources: one each"));
        }
        let mut numbers = [NONE; 256];
        for (source, &id) in (0..).zip(listed) {
            if numbers[usize::from(id)] != NONE {
                return Err(format!("{what} {id} is listed twice"));
            }
            numbers[usize::from(id)] = source;
        }
        Ok(Self {
            detector,
            numbers,
            spills: SpillTracker::new(count),
            stats,
        })
    }

    /// The counters of the trigger.
    pub(super) fn stats(&self) -> &L0Stats {
        &self.stats
    }

    /// The number of sources.
    pub(super) fn len(&self) -> usize {
        self.stats.sources.len()
    }

    /// The source of a board, whatever its detector; [`NONE`] if there is none.
    #[inline]
    pub(super) fn of_board(&self, board: u8) -> u8 {
        self.numbers[usize::from(board)]
    }

    /// The source of a packet that came on a stream.
    ///
    /// # Errors
    /// The cause for which the packet is dropped.
    #[inline]
    pub(super) fn find(&self, detector: u8, board: u8, stream: StreamId) -> Result<usize, Cause> {
        let source = match self.detector {
            Some(expected) if detector != expected => NONE,
            Some(_) => self.of_board(board),
            None => self.numbers[usize::from(detector)],
        };
        if source == NONE {
            return Err(Cause::Unsupported);
        }
        if u16::from(source) != stream.0 {
            self.misroute(source.into(), stream.0.into());
            return Err(Cause::Misrouted);
        }
        Ok(source.into())
    }

    /// Counts a packet of a source.
    #[inline]
    pub(super) fn count_frame(&self, source: usize) {
        self.stats.sources[source].frames.add(1);
    }

    /// Counts the events of a packet that is no copy: copies would look like a board with too many
    /// events.
    #[inline]
    pub(super) fn count_events(&self, source: usize, events: u64) {
        self.stats.sources[source].events.add(events);
    }

    /// Follows the sequence of a source's packets.
    ///
    /// # Errors
    /// The packet came before.
    #[inline]
    pub(super) fn follow(
        &mut self,
        source: usize,
        sequence: u32,
        stamp: u64,
    ) -> Result<Order, Cause> {
        let seen = self.spills.observe(source, sequence, stamp);
        let mut order = Order::default();
        if seen.verdict != Verdict::InOrder {
            self.show(source, seen.verdict);
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
    fn show(&self, source: usize, verdict: Verdict) {
        let shown = self.stats.sources[source].spills.get();
        if verdict == Verdict::Resync && self.spills.spills(source) > shown {
            self.show_all();
        } else {
            self.show_one(source);
        }
    }

    /// Brings what the sequence numbers of all sources say to their counters.
    pub(super) fn show_all(&self) {
        (0..self.len()).for_each(|source| self.show_one(source));
    }

    fn show_one(&self, source: usize) {
        let (counts, now) = (&self.stats.sources[source], self.spills.counts(source));
        counts.missing.set(now.missing);
        counts.gaps.set(now.gaps);
        counts.duplicates.set(now.duplicates);
        counts.reordered.set(now.reordered);
        counts.resyncs.set(now.resyncs);
        counts.spills.set(self.spills.spills(source));
    }

    /// Counts a packet that claims to be of a source, on the port of another one.
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
