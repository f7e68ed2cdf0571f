//! Comparison of the data that arrived with those that were sent.

use anyhow::{Result, bail};

use super::loops::Outcome;
use super::plan::Plan;

/// Compares the memory of both ends; something has been transferred.
pub(super) fn compare(plan: Plan, outcome: &Outcome) -> Result<()> {
    let mut found = vec![0; plan.bytes as usize];
    for (end, name) in outcome.pair.0.iter().zip(["requester", "responder"]) {
        end.buffer.read(0, &mut found)?;
        if let Some(at) = found
            .iter()
            .zip(&end.data)
            .position(|(found, sent)| found != sent)
        {
            bail!("byte {at} in the memory of the {name} is not the one that was sent");
        }
    }
    Ok(())
}
