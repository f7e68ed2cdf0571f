//! Frame budget that several loops share: together they move exactly this number of frames.

use std::sync::atomic::{AtomicU64, Ordering};

/// Remaining frames. The memory order is relaxed: only the numbers themselves are shared.
pub(crate) struct FrameBudget {
    /// Frames that no loop has claimed yet.
    unclaimed: AtomicU64,
    /// Frames that have not been moved yet.
    left: AtomicU64,
}

impl FrameBudget {
    pub(crate) fn new(frames: u64) -> Self {
        Self {
            unclaimed: frames.into(),
            left: frames.into(),
        }
    }

    /// Claims up to `n` frames; returns the number granted.
    pub(crate) fn claim(&self, n: usize) -> usize {
        let claimed =
            self.unclaimed
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |unclaimed| {
                    Some(unclaimed - unclaimed.min(n as u64))
                });
        // The closure always returns a value, so both variants hold the previous number.
        let (Ok(before) | Err(before)) = claimed;
        before.min(n as u64) as usize
    }

    /// Settles a claim: of `claimed` frames, `moved` were moved; the rest can be claimed again.
    pub(crate) fn settle(&self, claimed: usize, moved: usize) {
        self.unclaimed
            .fetch_add((claimed - moved) as u64, Ordering::Relaxed);
        self.left.fetch_sub(moved as u64, Ordering::Relaxed);
    }

    /// Whether all frames have been moved.
    pub(crate) fn is_used_up(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_move_together_what_was_asked_for() {
        let budget = FrameBudget::new(100_000);
        let moved: u64 = std::thread::scope(|scope| {
            let work = |unlucky: usize| {
                let budget = &budget;
                scope.spawn(move || {
                    let (mut moved, mut round) = (0, 0);
                    while !budget.is_used_up() {
                        let claimed = budget.claim(32);
                        round += 1;
                        let part = if round % unlucky == 0 { 0 } else { claimed };
                        budget.settle(claimed, part);
                        moved += part as u64;
                    }
                    moved
                })
            };
            let threads = [2, 3, 5].map(work);
            threads.into_iter().filter_map(|t| t.join().ok()).sum()
        });
        assert_eq!(moved, 100_000);
    }
}
