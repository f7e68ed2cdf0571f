//! The ring of the event builder beside the software roles, in random configurations.

use pollux_cosim::evb;
use serde_json::{Value, json};

/// Compares as many configurations, with as many events in all.
pub(crate) fn compare(configurations: u64, events: u64, seed: u64) -> anyhow::Result<Value> {
    let each = events.div_ceil(configurations.max(1));
    let found = evb::compare(configurations, each, seed)?;
    Ok(json!({
        "configurations": found.configurations,
        "events": found.events,
        "cycles": found.cycles,
        "mismatches": found.mismatches.len(),
        "first": found.mismatches.first(),
    }))
}
