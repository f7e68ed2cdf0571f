//! What becomes of frames whose fragments are taken one by one.

use std::sync::Arc;

use pollux_pipelines::StageEnv;
use pollux_pmd::{Cause, Tally};

use crate::l0::{Fragment, L0Stats, MAX_SOURCES, stats};

/// What became of a fragment: it is in an event, or of no use for a cause.
pub(super) type Fate = Result<(), Cause>;

/// Counts fragments, and each frame with the last of its own: it was delivered if one of them was
/// of use, else it is lost for the cause of the first.
pub(super) struct Fates {
    /// What will be counted for the present frame, and whether more of its fragments are to come.
    frame: Fate,
    in_frame: bool,
    /// Frames whose fragments are in a timeline on trial, by their sources.
    on_trial: [u64; MAX_SOURCES],
    stats: Arc<L0Stats>,
    tally: Tally,
}

impl Fates {
    /// For the stage of this name.
    ///
    /// # Errors
    /// The environment is not one of the trigger's.
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

    /// Counts a fragment; `on_trial` says that what became of it is not known yet.
    #[inline]
    pub(super) fn count(&mut self, fragment: &Fragment, fate: Fate, on_trial: bool) {
        let frame = if self.in_frame && fate.is_err() {
            self.frame
        } else {
            fate
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
        if let Err(cause) = fate {
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

    /// What becomes of the frames on trial; how many there were of each source.
    pub(super) fn settle(&mut self, fate: Fate) -> [u64; MAX_SOURCES] {
        let on_trial = std::mem::take(&mut self.on_trial);
        for (source, frames) in on_trial.into_iter().enumerate() {
            match fate {
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
