//! Accounting of frames whose fragments are processed one by one.

use pollux_pmd::{Cause, Tally, TallyView};

use super::gather::BuilderStats;

/// Outcome of a fragment: it is part of an event, or dropped for a cause.
pub type Outcome = Result<(), Cause>;

/// Counts fragments, and each frame at its last fragment. A frame is delivered if one of its
/// fragments is part of an event, and otherwise dropped for the cause of its first fragment.
pub struct Outcomes {
    /// Outcome of the present frame so far, and whether more of its fragments follow.
    frame: Outcome,
    in_frame: bool,
    /// Frames whose fragments are in a timeline on trial, by their sources.
    on_trial: Box<[u64]>,
    tally: Tally,
}

impl Outcomes {
    /// Outcomes of the frames of so many sources.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        Self {
            frame: Ok(()),
            in_frame: false,
            on_trial: vec![0; sources].into(),
            tally: Tally::new(),
        }
    }

    /// Its place in the ledger.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Counts a fragment. With `on_trial`, [`settle`](Self::settle) decides its outcome later.
    #[inline]
    pub fn count(
        &mut self,
        stats: &impl BuilderStats,
        source: usize,
        ends_frame: bool,
        outcome: Outcome,
        on_trial: bool,
    ) {
        let frame = if self.in_frame && outcome.is_err() {
            self.frame
        } else {
            outcome
        };
        (self.frame, self.in_frame) = (frame, !ends_frame);
        if ends_frame {
            self.count_frame(stats, source, frame, on_trial);
        }
        if let Err(cause) = outcome {
            stats.count_refused(source, cause);
        }
    }

    /// Counts a frame whose outcome the caller has made of its fragments, of which none is passed to
    /// [`count`](Self::count).
    #[inline]
    pub fn count_frame(
        &mut self,
        stats: &impl BuilderStats,
        source: usize,
        outcome: Outcome,
        on_trial: bool,
    ) {
        match outcome {
            Ok(()) if on_trial => {
                if let Some(frames) = self.on_trial.get_mut(source) {
                    *frames += 1;
                }
            }
            Ok(()) => self.tally.count_delivered(1),
            Err(cause) => self.lose(stats, source, cause, 1),
        }
    }

    /// More fragments of the present frame are to come.
    #[must_use]
    #[inline]
    pub fn is_in_frame(&self) -> bool {
        self.in_frame
    }

    /// Number of frames on trial, for each source.
    #[must_use]
    pub fn on_trial(&self) -> &[u64] {
        &self.on_trial
    }

    /// Counts the frames on trial with their outcome.
    pub fn settle(&mut self, stats: &impl BuilderStats, outcome: Outcome) {
        for source in 0..self.on_trial.len() {
            let frames = std::mem::take(&mut self.on_trial[source]);
            match outcome {
                Ok(()) => self.tally.count_delivered(frames),
                Err(cause) => self.lose(stats, source, cause, frames),
            }
        }
    }

    fn lose(&mut self, stats: &impl BuilderStats, source: usize, cause: Cause, frames: u64) {
        self.tally.count_dropped(cause, frames);
        stats.count_lost(source, cause, frames);
    }
}
