//! How long an end waits for the other one: for as long as there is progress.

use anyhow::{Result, bail};
use pollux_pmd::mempool::time::Ns;

/// Time without progress after which a measurement has failed, at least; twice as long at most.
const MOST: u64 = 10_000_000_000;

/// The progress that was seen last.
pub(super) struct Patience {
    at: Ns,
    progress: u64,
}

impl Patience {
    pub(super) fn new(now: Ns) -> Self {
        Self {
            at: now,
            progress: 0,
        }
    }

    /// Compares the progress with the last, if that was long ago; it is counted only then.
    ///
    /// # Errors
    /// There has been none.
    #[inline]
    pub(super) fn look(&mut self, now: Ns, progress: impl FnOnce() -> u64) -> Result<()> {
        if now.0 - self.at.0 <= MOST {
            return Ok(());
        }
        let progress = progress();
        if progress == self.progress {
            bail!(
                "nothing came from the other end for {} s: check the link, and that both loops have a CPU \
                 (--cores)",
                MOST / 1_000_000_000
            );
        }
        (self.at, self.progress) = (now, progress);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn progress_may_take_any_time() {
        let mut patience = Patience::new(Ns(5));
        for second in 1..1000 {
            // Once in nine seconds.
            let progress = 1 + second / 9;
            patience.look(Ns(second * SECOND), || progress).unwrap();
        }
    }

    #[test]
    fn without_progress_it_ends() {
        let mut patience = Patience::new(Ns(0));
        let mut looks = (0..).map(|second| patience.look(Ns(second * SECOND), || 7));
        let end = looks.position(|look| look.is_err());
        // The first look that counts finds the progress of the time before.
        assert_eq!(end, Some(22));
    }
}
