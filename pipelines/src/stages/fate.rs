//! What becomes of frames whose fragments are taken one by one.

use std::sync::Arc;

use pollux_pmd::{Cause, Tally};

use crate::l0::{Fragment, L0Stats};
use crate::registry::StageEnv;

/// What became of a fragment: it is in an event, or of no use for a cause.
pub(super) type Fate = Result<(), Cause>;

/// Counts fragments, and each frame with the last of its own: it was delivered if one of them was
/// of use, else it is lost for the cause of the first.
pub(super) struct Fates {
    /// What will be counted for the present frame.
    frame: Option<Fate>,
    stats: Arc<L0Stats>,
    tally: Tally,
}

impl Fates {
    /// For the stage of this name.
    pub(super) fn new(stage: &str, env: &mut StageEnv) -> Self {
        let tally = Tally::new();
        env.ledger.add(stage, tally.view());
        Self {
            frame: None,
            stats: Arc::clone(&env.stats),
            tally,
        }
    }

    #[inline]
    pub(super) fn count(&mut self, fragment: &Fragment, fate: Fate) {
        let frame = match self.frame {
            Some(first) if fate.is_err() => first,
            _ => fate,
        };
        self.frame = (!fragment.ends_frame).then_some(frame);
        let ended = fragment.ends_frame.then_some(frame);
        match ended {
            Some(Ok(())) => self.tally.count_delivered(1),
            Some(Err(cause)) => self.tally.count_dropped(cause, 1),
            None => {}
        }
        if let Some(counts) = self.stats.sources.get(usize::from(fragment.source)) {
            match fate {
                Err(Cause::Late) => counts.late_fragments.add(1),
                Err(Cause::Duplicate) => counts.duplicate_fragments.add(1),
                Err(Cause::NoMbuf) => self.stats.events.no_buffer.add(1),
                _ => {}
            }
            counts.late.add(u64::from(ended == Some(Err(Cause::Late))));
        }
    }
}
