//! Detector formats, processing stages and the runtime that chains them.
//!
//! | module | what |
//! | --- | --- |
//! | [`stage`] | the [`Stage`] trait, batches and sinks; chains that are compiled as one |
//! | [`pipeline`], [`registry`] | chains chosen at run time, by name, from a TOML file |
//! | [`spread`] | a stage over several loops, with the results in order |
//! | [`formats`] | detector payloads, byte by byte |
//! | [`rich`] | RICH geometry, ring fits and ring finding |
//! | [`merge`] | single hits of all sources, merged into windows of time |
//! | [`l0`] | what flows through the L0 trigger, and its counters |
//! | [`stages`] | decompress, build, rings, decide, answer |
//! | [`simd`] | sixteen numbers at once, with what the CPU offers |

mod clocks;
pub mod formats;
pub mod l0;
pub mod merge;
pub mod pipeline;
pub mod registry;
pub mod rich;
pub mod simd;
pub mod spread;
pub mod stage;
pub mod stages;

pub use pipeline::{DynStage, Pipeline, PipelineError};
pub use registry::{EVENT_CACHE, StageEnv, StageError, StageRegistry};
pub use stage::{Batch, Discard, Each, Moment, Sink, Stage, StageExt};
