//! Accounting of frames whose fragments are processed one by one.

use std::sync::Arc;

use pollux_pipelines::StageEnv;
use pollux_pmd::{Cause, Tally};

use crate::l0::{Fragment, L0Stats, MAX_SOURCES, stats};

/// Outcome of a fragment: it is part of an event, or dropped for a cause.
pub(super) type Outcome = Result<(), Cause>;

/// Counts fragments, and each frame at its last fragment. A frame is delivered if one of its
/// fragments is part of an event, and otherwise dropped for the cause of its first fragment.
pub(super) struct Outcomes {
    /// Outcome of the present frame so far, and whether more of its fragments follow.
    frame: Outcome,
    in_frame: bool,
    /// Frames whose fragments are in a timeline on trial, by their sources.
    on_trial: [u64; MAX_SOURCES],
    stats: Arc<L0Stats>,
    tally: Tally,
}

impl Outcomes {
    /// Outcomes for the stage of this name.
    ///
    /// # Errors
    /// The environment does not have the extension of the L0 stages.
    pub(super) fn new(stage: &str, env: &mut StageEnv) -> Result<Self, String> {
        let stats = stats(env)?;
        let tally = Tally::new();
        env.ledger.add(stage, tally.view());
        Ok(Self {
            frame: Ok(()),
            in_frame: false,
            on_trial: [0; MAX_SOURCES],
            stats,
            tally,
        })
    }

    /// Counts a fragment. With `on_trial`, [`settle`](Self::settle) decides its outcome later.
    #[inline]
    pub(super) fn count(&mut self, fragment: &Fragment, outcome: Outcome, on_trial: bool) {
        let frame = if self.in_frame && outcome.is_err() {
            self.frame
        } else {
            outcome
        };
        (self.frame, self.in_frame) = (frame, !fragment.ends_frame);
        let ended = fragment.ends_frame.then_some(frame);
        let source = usize::from(fragment.source);
        match ended {
            Some(Ok(())) if on_trial => self.on_trial[source % MAX_SOURCES] += 1,
            Some(Ok(())) => self.tally.count_delivered(1),
            Some(Err(cause)) => self.lose(source, cause, 1),
            None => {}
        }
        if let Err(cause) = outcome {
            self.refuse(source, cause);
        }
    }

    /// Counts a fragment that was refused.
    #[cold]
    fn refuse(&self, source: usize, cause: Cause) {
        let Some(counts) = self.stats.sources.get(source) else {
            return;
        };
        match cause {
            Cause::Late => counts.late_fragments.add(1),
            Cause::Duplicate => counts.duplicate_fragments.add(1),
            Cause::NoMbuf => self.stats.events.no_buffer.add(1),
            _ => {}
        }
    }

    /// Counts the frames on trial with their outcome; returns their number for each source.
    pub(super) fn settle(&mut self, outcome: Outcome) -> [u64; MAX_SOURCES] {
        let on_trial = std::mem::take(&mut self.on_trial);
        for (source, frames) in on_trial.into_iter().enumerate() {
            match outcome {
                Ok(()) => self.tally.count_delivered(frames),
                Err(cause) => self.lose(source, cause, frames),
            }
        }
        on_trial
    }

    fn lose(&mut self, source: usize, cause: Cause, frames: u64) {
        self.tally.count_dropped(cause, frames);
        if let Some(counts) = self.stats.sources.get(source) {
            match cause {
                Cause::Late => counts.late.add(frames),
                Cause::ClockSkew => counts.skewed.add(frames),
                Cause::OutOfWindow => counts.out_of_window.add(frames),
                _ => {}
            }
        }
    }
}
