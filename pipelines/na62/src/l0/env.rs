//! `L0Env`: what the stages of the trigger share, besides the general stage environment.

use std::sync::Arc;

use pollux_mempool::{Mempool, PoolCache, PoolError};
use pollux_pipelines::StageEnv;
use pollux_pipelines::stage::BATCH;

use super::event::draft::event_pool;
use super::fragments::fragment_pool;
use super::stats::L0Stats;

/// Default number of free buffers in the cache of the stage that builds events, and in the cache
/// into which a program frees them.
pub const EVENT_CACHE: usize = 256;

/// Number of fragment buffers: two full batches between stages, and those being filled and emptied.
const FRAGMENTS: usize = 2 * BATCH + 4;

/// Number of batches between the stages of a pipeline that may be full of events at the same time.
const BATCHES: usize = 16;

/// The trigger's extension of a [`StageEnv`].
pub struct L0Env {
    /// Counters of the stages, with the number of sources.
    pub stats: Arc<L0Stats>,
    /// The pool of all events, once the stage that builds them exists.
    pub events: Option<Mempool>,
}

impl L0Env {
    /// An extension for so many sources.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        Self {
            stats: L0Stats::new(sources),
            events: None,
        }
    }
}

/// The environment of a trigger pipeline for so many sources, whose sink frees the events into one
/// cache.
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
/// The environment lacks the trigger's extension.
pub(crate) fn stats(env: &StageEnv) -> Result<Arc<L0Stats>, String> {
    Ok(Arc::clone(&env.get::<L0Env>()?.stats))
}

/// Creates the event pool, for the stage that builds events and holds up to this number of them.
///
/// # Errors
/// Memory that is not available, or an environment without the trigger's extension.
pub(crate) fn make_events(env: &mut StageEnv, held: usize) -> Result<PoolCache, String> {
    let events = held
        .saturating_add(env.under_way)
        .saturating_add(env.fan_out.items())
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

/// Creates a pool of fragment buffers, for the stage that unpacks frames.
///
/// # Errors
/// Memory that is not available.
pub(crate) fn make_fragments(env: &StageEnv) -> Result<PoolCache, PoolError> {
    fragment_pool(FRAGMENTS, env.memory)?.cache(2)
}
