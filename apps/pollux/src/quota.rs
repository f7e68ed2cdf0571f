//! A number of frames that several loops are to move together, and not one more.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is left of it. The orders are relaxed: nothing but the numbers themselves is shared.
pub(crate) struct Quota {
    /// Frames that no loop has asked for yet.
    unclaimed: AtomicU64,
    /// Frames that have not been moved yet.
    left: AtomicU64,
}

impl Quota {
    pub(crate) fn new(frames: u64) -> Self {
        Self {
            unclaimed: frames.into(),
            left: frames.into(),
        }
    }

    /// Takes the right to move up to `n` frames; how many those are.
    pub(crate) fn claim(&self, n: usize) -> usize {
        let claimed =
            self.unclaimed
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |unclaimed| {
                    Some(unclaimed - unclaimed.min(n as u64))
                });
        // The closure always gives a value, so both are the number before.
        let (Ok(before) | Err(before)) = claimed;
        before.min(n as u64) as usize
    }

    /// Of the frames claimed, `moved` were moved; others may move the rest.
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
        let quota = Quota::new(100_000);
        let moved: u64 = std::thread::scope(|scope| {
            let work = |unlucky: usize| {
                let quota = &quota;
                scope.spawn(move || {
                    let (mut moved, mut round) = (0, 0);
                    while !quota.is_used_up() {
                        let claimed = quota.claim(32);
                        round += 1;
                        let part = if round % unlucky == 0 { 0 } else { claimed };
                        quota.settle(claimed, part);
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
