//! The stages of the L0 trigger.

pub mod answer;
pub mod build;
pub mod decide;
pub mod decompress;
mod fate;
mod limits;
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

use std::sync::Arc;

use crate::pipeline::DynStage;
use crate::registry::StageRegistry;
use crate::rich::find::FinderConfig;
use crate::spread::{Spread, Spreading};

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
        env.finder = Some(options);
        let stats = Arc::clone(&env.stats);
        let make = || {
            let stage = FindRings::with_stats(options, Arc::clone(&stats));
            stage.map_err(|error| error.to_string())
        };
        let Spreading { workers, .. } = env.spread;
        if workers == 0 {
            return Ok(DynStage::new("rings", make()?));
        }
        let others = (0..workers).map(|_| make()).collect::<Result<_, _>>()?;
        let spread = Spread::new(make()?, others, &env.spread);
        let (stage, crew) = spread.map_err(|error| error.to_string())?;
        env.crew.extend(crew);
        Ok(DynStage::new("rings", stage))
    });
    registry.register("decide", |options: DecideOptions, env| {
        Ok(DynStage::new("decide", Decide::new(&options, env)?))
    });
    registry.describe::<DecompressOptions>("decompress");
    registry.describe::<BuildOptions>("build");
    registry.describe::<MergeHitsOptions>("merge");
    registry.describe::<FinderConfig>("rings");
    registry.describe::<DecideOptions>("decide");
}
