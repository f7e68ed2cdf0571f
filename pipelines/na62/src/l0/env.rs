//! What the stages of the trigger share beside what all stages do.

use std::sync::Arc;

use pollux_mempool::{Mempool, PoolCache, PoolError};
use pollux_pipelines::StageEnv;
use pollux_pipelines::stage::BATCH;

use super::event::draft::event_pool;
use super::fragments::fragment_pool;
use super::stats::L0Stats;

/// Free buffers that the stage which builds events keeps for itself, and that a program may keep in
/// the cache into which it frees them, unless it says otherwise.
pub const EVENT_CACHE: usize = 256;

/// Buffers of fragments: those that fill two batches between stages which gather them, and those
/// that are being filled and emptied.
const FRAGMENTS: usize = 2 * BATCH + 4;

/// Batches between the stages of a pipeline that may be full of events at once.
const BATCHES: usize = 16;

/// The trigger's extension of a [`StageEnv`].
pub struct L0Env {
    /// Counters of the stages; their length is the number of sources.
    pub stats: Arc<L0Stats>,
    /// The pool of all events, once the stage is made that builds them.
    pub events: Option<Mempool>,
}

impl L0Env {
    /// For so many sources.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        Self {
            stats: L0Stats::new(sources),
            events: None,
        }
    }
}

/// The environment of a pipeline of the trigger for so many sources, whose events are freed as they
/// come out, into one cache.
#[must_use]
pub fn stage_env(sources: usize) -> StageEnv {
    let mut env = StageEnv::new();
    env.under_way = EVENT_CACHE;
    env.insert(L0Env::new(sources));
    env
}

/// The counters of the trigger.
///
/// # Errors
/// The environment is not one of the trigger's.
pub(crate) fn stats(env: &StageEnv) -> Result<Arc<L0Stats>, String> {
    Ok(Arc::clone(&env.get::<L0Env>()?.stats))
}

/// Makes the pool of events; for the stage that builds them, and that may hold so many itself.
///
/// # Errors
/// Memory that cannot be had, or an environment that is not one of the trigger's.
pub(crate) fn make_events(env: &mut StageEnv, held: usize) -> Result<PoolCache, String> {
    let events = held
        .saturating_add(env.under_way)
        .saturating_add(env.spread.items())
        .saturating_add(BATCHES * BATCH);
    let memory = env.memory;
    let own = env.get_mut::<L0Env>()?;
    let made = event_pool(events, memory).and_then(|pool| {
        let cache = pool.cache(EVENT_CACHE.min(events))?;
        own.events = Some(pool);
        Ok(cache)
    });
    made.map_err(|error: PoolError| error.to_string())
}

/// Makes a pool for fragments of events; for the stage that takes frames apart.
///
/// # Errors
/// Memory that cannot be had.
pub(crate) fn make_fragments(env: &StageEnv) -> Result<PoolCache, PoolError> {
    fragment_pool(FRAGMENTS, env.memory)?.cache(2)
}
