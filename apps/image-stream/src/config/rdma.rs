//! Stacks that sources write into memory.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Most stack buffers: ranges that an endpoint registers.
const MAX_STACKS: usize = 256;

/// Shortest time that images of several modules wait for the stacks of all: a source repeats an announcement that
/// was lost after 5 ms (`docs/formats/rdma-images.md`), so three repetitions come in time.
const MIN_STACK_TIMEOUT_US: u64 = 20_000;

/// Stack buffers, into which sources write (`--rdma`).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RdmaConfig {
    /// Stack buffers of each module, each for the images of a stack.
    pub stacks: usize,
}

impl Default for RdmaConfig {
    fn default() -> Self {
        Self { stacks: 8 }
    }
}

impl RdmaConfig {
    /// Checks the stack buffers for so many modules, whose stacks have so many images, and whose images wait so long,
    /// in so many image buffers.
    ///
    /// # Errors
    /// Too few, or more than an endpoint registers; or images of several modules that would not wait until the
    /// announcement of one of them, which was lost, is repeated.
    pub(super) fn check(
        &self,
        modules: usize,
        stack: usize,
        timeout_us: u64,
        images: usize,
    ) -> Result<()> {
        let stacks = self.stacks;
        ensure!(
            stacks >= 2 && stacks.saturating_mul(modules) <= MAX_STACKS,
            "[rdma] stacks = {stacks}: 2 or more, and {MAX_STACKS} at most for all {modules} modules together"
        );
        if modules == 1 {
            return Ok(());
        }
        ensure!(
            timeout_us >= MIN_STACK_TIMEOUT_US,
            "[detector] timeout_us = {timeout_us}: {MIN_STACK_TIMEOUT_US} or more with --rdma and several modules, \
             so that a source can repeat an announcement that was lost"
        );
        // Two stacks of a module may be taken before one of another: the one whose announcement was lost, and the
        // next, whose announcement is for both. Half of the images are for those that are not complete, and of
        // that half an eighth is for those that are closed (`AssembleConfig::margin`).
        let most = (images / 5).max(1);
        ensure!(
            stack <= most,
            "[detector] stack = {stack}: 1 to {most} with --rdma and several modules, a fifth of memory.images, \
             since the images of two stacks may wait for those of another module"
        );
        Ok(())
    }
}
