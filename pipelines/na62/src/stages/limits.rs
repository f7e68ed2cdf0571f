//! Checks of the options that all event builders share.

use pollux_mempool::time::Ns;
use pollux_pipelines::StageEnv;

use crate::l0::{MAX_SOURCES, stats};

/// Default of the maximum number of hits of one source in an event that rings explain: a quarter of
/// the photomultipliers of one of four boards. Four rings on such a board have some 60 hits.
pub(super) const HOT_HITS: u16 = 122;

/// Maximum deadline: a minute.
pub(super) const MAX_DEADLINE_US: u64 = 60_000_000;

/// Maximum window in slots of 25 ns: a hit's time within it fits 16 bits.
pub(super) const MAX_WINDOW: u16 = 128;

/// Checks the number of sources.
///
/// # Errors
/// Zero, or more than an event can have.
pub(super) fn check_sources(env: &StageEnv) -> Result<usize, String> {
    match stats(env)?.sources.len() {
        sources @ 1..=MAX_SOURCES => Ok(sources),
        sources => Err(format!(
            "{sources} sources: there must be 1 to {MAX_SOURCES}"
        )),
    }
}

/// Checks the deadline: how long an event waits for its sources.
///
/// # Errors
/// It is zero or above a minute, or the horizon is not above it.
pub(super) fn check_times(deadline_us: u64, horizon_us: u64) -> Result<Ns, String> {
    if !(1..=MAX_DEADLINE_US).contains(&deadline_us) {
        return Err(format!(
            "deadline_us = {deadline_us}: it must be 1 to 60000000 (a minute)"
        ));
    }
    if horizon_us <= deadline_us {
        return Err(format!(
            "horizon_us = {horizon_us}: it must be above deadline_us = {deadline_us}, or sources \
             that are apart by less than a deadline would be told to differ"
        ));
    }
    Ok(Ns(deadline_us * 1000))
}

/// Checks the maximum number of hits of one source in an event that are not masked.
///
/// # Errors
/// It is zero, so that every hit would be masked.
pub(super) fn check_hot(hot_hits: u16) -> Result<u16, String> {
    if hot_hits == 0 {
        return Err("hot_hits = 0: it must be 1 or more, or all hits would be masked".into());
    }
    Ok(hot_hits)
}
