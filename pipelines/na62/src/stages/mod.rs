//! The stages of the L0 trigger.

pub mod answer;
pub mod build;
pub mod decide;
pub mod decompress;
mod filling;
mod handed;
mod limits;
pub mod merge;
pub mod read_mep;
pub mod read_mtp;
pub mod read_tel62;
pub mod rings;
mod sources;

pub use answer::{Answer, AnswerCounts};
pub use build::{Build, BuildOptions};
pub use decide::{
    Decide, DecideOptions, MAX_RULES, RuleBook, RuleCounts, RuleError, RuleExchange, RuleOptions,
    RuleSetCounts,
};
pub use decompress::{Decompress, DecompressOptions};
pub use merge::{MergeHits, MergeHitsOptions};
pub use read_mep::{MepFrame, ReadMep, ReadMepOptions};
pub use read_mtp::{ReadMtp, ReadMtpOptions, Selection};
pub use read_tel62::{ReadTel62, ReadTel62Options};
pub use rings::FindRings;

use std::sync::Arc;

use pollux_pipelines::fan_out::FanOut;
use pollux_pipelines::pipeline::DynStage;
use pollux_pipelines::registry::StageRegistry;

use crate::l0::{Decision, Event, Fragments, Frame, Reconstructed, stats};
use crate::rich::find::FinderConfig;

/// Registers the stages of the trigger by name, and the names of the item types between them. A
/// program adds its own stages.
#[must_use]
pub fn stage_registry() -> StageRegistry {
    let mut registry = StageRegistry::new();
    registry.name_kind::<Frame>("frames");
    registry.name_kind::<MepFrame>("multi-event packets");
    registry.name_kind::<Fragments>("fragments");
    registry.name_kind::<Event>("events");
    registry.name_kind::<Reconstructed>("events with rings");
    registry.name_kind::<Decision>("decisions");
    registry.register("decompress", |options: DecompressOptions, env| {
        Ok(DynStage::new("decompress", Decompress::new(&options, env)?))
    });
    registry.register("read-mep", |options: ReadMepOptions, env| {
        Ok(DynStage::new("read-mep", ReadMep::new(&options, env)?))
    });
    registry.register("read-tel62", |options: ReadTel62Options, env| {
        Ok(DynStage::new("read-tel62", ReadTel62::new(&options, env)?))
    });
    registry.register("read-mtp", |options: ReadMtpOptions, env| {
        Ok(DynStage::new("read-mtp", ReadMtp::new(&options, env)?))
    });
    registry.register("build", |options: BuildOptions, env| {
        Ok(DynStage::new("build", Build::new(&options, env)?))
    });
    registry.register("merge", |options: MergeHitsOptions, env| {
        Ok(DynStage::new("merge", MergeHits::new(&options, env)?))
    });
    registry.register("rings", |options: FinderConfig, env| {
        env.insert(options);
        let stats = stats(env)?;
        let make = || {
            let stage = FindRings::with_stats(options, Arc::clone(&stats));
            stage.map_err(|error| error.to_string())
        };
        let workers = env.fan_out.workers;
        if workers == 0 {
            return Ok(DynStage::new("rings", make()?));
        }
        let others = (0..workers).map(|_| make()).collect::<Result<_, _>>()?;
        let fan_out = FanOut::new(make()?, others, &env.fan_out);
        let (stage, pool) = fan_out.map_err(|error| error.to_string())?;
        env.worker_pool.extend(pool);
        Ok(DynStage::new("rings", stage))
    });
    registry.register("decide", |options: DecideOptions, env| {
        Ok(DynStage::new("decide", Decide::new(&options, env)?))
    });
    registry.describe::<DecompressOptions>("decompress");
    registry.describe::<ReadMepOptions>("read-mep");
    registry.describe::<ReadTel62Options>("read-tel62");
    registry.describe::<ReadMtpOptions>("read-mtp");
    registry.describe::<BuildOptions>("build");
    registry.describe::<MergeHitsOptions>("merge");
    registry.describe::<FinderConfig>("rings");
    registry.describe::<DecideOptions>("decide");
    registry
}
