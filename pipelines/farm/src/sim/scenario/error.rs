//! Why there is no simulation.

use thiserror::Error;

use crate::sim::level1::FarmError;
use crate::sim::policy::PolicyName;
use crate::sim::settings::SettingsError;

/// Why a simulation has no result.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SimError {
    /// A wrong setting.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The scenario has no such policy.
    #[error("--policy {given}: scenario {scenario} has {allowed}")]
    Policy {
        /// The policy.
        given: PolicyName,
        /// The scenario.
        scenario: &'static str,
        /// What it has.
        allowed: String,
    },
    /// Numbers that no farm has.
    #[error(transparent)]
    Farm(#[from] FarmError),
    /// The simulated time overflows.
    #[error(
        "the simulation takes more than the 213 days that 64 bits of picoseconds hold: give fewer \
         events, or a higher rate or load"
    )]
    OverTime,
}
