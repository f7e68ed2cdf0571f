//! The stages of the L0 trigger.

pub mod answer;
pub mod build;
pub mod decide;
pub mod decompress;
mod fate;
pub mod merge;
pub mod rings;

pub use answer::{Answer, AnswerCounts};
pub use build::{Build, BuildOptions};
pub use decide::{
    Decide, DecideOptions, MAX_RULES, RuleBook, RuleCounts, RuleError, RuleExchange, RuleOptions,
    RuleSetCounts,
};
pub use decompress::{Decompress, DecompressOptions};
pub use merge::{MergeHits, MergeHitsOptions};
pub use rings::FindRings;

use crate::pipeline::DynStage;
use crate::registry::StageRegistry;
use crate::rich::find::FinderConfig;

/// Adds the stages of this crate.
pub(crate) fn register(registry: &mut StageRegistry) {
    registry.register("decompress", |options: DecompressOptions, env| {
        Ok(DynStage::new("decompress", Decompress::new(&options, env)?))
    });
    registry.register("build", |options: BuildOptions, env| {
        Ok(DynStage::new("build", Build::new(&options, env)?))
    });
    registry.register("merge", |options: MergeHitsOptions, env| {
        Ok(DynStage::new("merge", MergeHits::new(&options, env)?))
    });
    registry.register("rings", |options: FinderConfig, env| {
        let stage = FindRings::new(options, &env.stats).map_err(|error| error.to_string())?;
        env.finder = Some(options);
        Ok(DynStage::new("rings", stage))
    });
    registry.register("decide", |options: DecideOptions, env| {
        Ok(DynStage::new("decide", Decide::new(&options, env)?))
    });
}
