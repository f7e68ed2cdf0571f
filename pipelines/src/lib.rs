//! Processing stages and the runtime that chains them, for any detector.
//!
//! | module | what |
//! | --- | --- |
//! | [`stage`] | the [`Stage`] trait and batches; chains that are compiled as one |
//! | [`sink`], [`chain`] | sinks, and back-pressure of a full sink |
//! | [`pipeline`], [`registry`] | chains chosen at run time, by name, from a TOML file |
//! | [`env`](mod@env) | environment in which stages are constructed, with typed extensions |
//! | [`metrics`] | named metrics of stages |
//! | [`assemble`] | packets of large frames, placed by number |
//! | [`build`](mod@build) | fragments of up to 1024 sources into events, by key |
//! | [`fan_out`] | a stage on a pool of workers, with the results in order |
//! | [`in_flight`] | asynchronous stages: jobs of workers and GPUs, submitted and polled |
//! | [`clocks`] | time by majority vote of sources that may disagree |
//! | [`sources`] | sets of up to 1024 sources |
//! | [`simd`] | vectors of sixteen numbers, with run-time dispatch |
//!
//! A detector's formats and stages are a crate of their own above this one, which knows none of
//! them. A stage takes batches of one type and puts items of another into a sink:
//!
//! ```
//! use pollux_pipelines::{Batch, DynStage, Pipeline, Output, Stage, StageExt};
//!
//! /// Adds up two numbers at a time.
//! #[derive(Default)]
//! struct Pairs(Option<u32>);
//!
//! impl Stage for Pairs {
//!     type In = u32;
//!     type Out = u32;
//!
//!     fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Output<u32>) {
//!         for n in batch.drain() {
//!             match self.0.take() {
//!                 Some(first) => out.push(first + n),
//!                 None => self.0 = Some(n),
//!             }
//!         }
//!     }
//!
//!     fn finish(&mut self, out: &mut impl Output<u32>) {
//!         self.0.take().into_iter().for_each(|n| out.push(n));
//!     }
//! }
//!
//! // Compiled as one piece,
//! let mut compiled = Pairs::default().then(Pairs::default());
//! // or chosen at run time, where each stage is timed.
//! let stages = vec![
//!     DynStage::new("pairs", Pairs::default()),
//!     DynStage::new("fours", Pairs::default()),
//! ];
//! let mut chosen = Pipeline::<u32, u32>::new(stages)?;
//!
//! let mut batch = Batch::with_capacity(5);
//! let (mut first, mut second) = (Vec::new(), Vec::new());
//! (1..=5).for_each(|n| assert!(batch.push(n).is_ok()));
//! compiled.process(&mut batch, &mut first);
//! compiled.finish(&mut first);
//! (1..=5).for_each(|n| assert!(batch.push(n).is_ok()));
//! chosen.process(&mut batch, &mut second);
//! chosen.finish(&mut second);
//! assert_eq!((&first[..], &second[..]), (&[10, 5][..], &[10, 5][..]));
//! # Ok::<(), pollux_pipelines::PipelineError>(())
//! ```

pub mod assemble;
pub mod build;
pub mod chain;
pub mod clocks;
pub mod env;
pub mod fan_out;
pub mod in_flight;
pub mod metrics;
mod moment;
pub mod pipeline;
pub mod registry;
pub mod simd;
pub mod sink;
pub mod sources;
pub mod stage;
mod wanted;

pub use chain::Chain;
pub use env::{MissingExtension, StageEnv};
pub use in_flight::{AsyncStage, Busy, InFlight, InFlightCounts, InFlightOptions, Ticket};
pub use metrics::{Metric, MetricError, MetricKind, Metrics};
pub use pipeline::{DynStage, Kinds, Pipeline, PipelineError};
pub use registry::{StageError, StageRegistry};
pub use sink::{BackPressure, Discard, Each, Output, Sink};
pub use stage::{Batch, Moment, Stage, StageExt};

/// The example of the page that the package shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The programs of the page for those who write a stage. Packages come without it.
#[cfg(doctest)]
#[doc = include_str!("../../docs/stages.md")]
struct Stages;
