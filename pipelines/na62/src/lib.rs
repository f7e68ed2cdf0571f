//! The RICH detector of NA62 and its L0 trigger: data formats, ring finding, and the stages from
//! frames to decisions.
//!
//! | module | what |
//! | --- | --- |
//! | [`formats`] | detector payloads, byte by byte |
//! | [`rich`] | RICH geometry, ring fits and ring finding |
//! | `physics` | study of ring finding: events with a known truth (feature `physics`) |
//! | [`merge`] | single hits of all sources, merged into windows of time |
//! | [`l0`] | what flows through the L0 trigger, its counters and pools |
//! | [`stages`] | readers, decompress, build, merge, rings, decide, answer |
//!
//! The stages are chained with [`pollux_pipelines`], compiled as one or by name:
//!
//! ```
//! use pollux_na62::l0::{Decision, Frame};
//! use pollux_na62::{L0Env, stage_env, stage_registry};
//! use pollux_pipelines::{Moment, Pipeline};
//!
//! let config: toml::Table = r#"
//!     stage = [
//!         { name = "decompress" },
//!         { name = "build", deadline_us = 300, max_open = 64 },
//!         { name = "rings" },
//!         { name = "decide", rule = [{ name = "one-ring", max_rings = 1 }] },
//!     ]"#
//! .parse()?;
//! let stages: Vec<toml::Table> = config["stage"].clone().try_into()?;
//!
//! // Four boards send frames.
//! let mut env = stage_env(4);
//! let mut pipeline: Pipeline<Frame, Decision> = stage_registry().pipeline(&stages, &mut env)?;
//! let mut decisions = Vec::new();
//! pipeline.tick(Moment(0), &mut decisions);
//! pipeline.finish(&mut decisions);
//! assert_eq!(env.get::<L0Env>()?.stats.events.built.get(), 0);
//! assert!(decisions.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod formats;
pub mod l0;
pub mod merge;
#[cfg(feature = "physics")]
pub mod physics;
pub mod rich;
pub mod stages;

pub use l0::{EVENT_CACHE, L0Env, stage_env};
pub use stages::stage_registry;

/// The example of the package's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
