//! Errors of the simulator.

use std::path::PathBuf;

/// Errors of the simulation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimulatorError {
    /// No waveform can be written.
    #[error(
        "no waveform can be written to {0:?}: is the crate built with its feature `trace`, and the folder there?"
    )]
    NoTrace(PathBuf),
    /// No coverage is counted.
    #[error("what was covered is not counted: build the crate with its feature `coverage`")]
    NoCoverage,
}
