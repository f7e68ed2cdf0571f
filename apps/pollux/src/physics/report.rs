//! JSON report of the study.

use pollux_na62::physics::model::ModelConfig;
use pollux_na62::rich::find::FinderConfig;
use serde::Serialize;

use pollux_na62::physics::study::Row;
use pollux_na62::physics::study::momentum::{MomentumRow, SeparationRow};

/// Content of the JSON report.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) schema: u32,
    pub(super) inputs: Inputs,
    pub(super) rows: &'a [Row],
    /// Rows of events in which both disks share some rings.
    pub(super) shared: &'a [Row],
    pub(super) momentum: &'a [MomentumRow],
    pub(super) separation: &'a [SeparationRow],
}

/// Parameters of the study.
#[derive(Serialize)]
pub(super) struct Inputs {
    pub(super) seed: u64,
    pub(super) events: u64,
    /// The detector model, except for the parameters that the rows give.
    pub(super) model: ModelConfig,
    pub(super) finder: FinderConfig,
}
