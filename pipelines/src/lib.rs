//! Processing stages and the runtime that chains them, for any detector.
//!
//! | module | what |
//! | --- | --- |
//! | [`stage`] | the [`Stage`] trait, batches and sinks; chains that are compiled as one |
//! | [`pipeline`], [`registry`] | chains chosen at run time, by name, from a TOML file |
//! | [`env`](mod@env) | what stages are given when they are made, with typed extensions |
//! | [`spread`] | a stage over several loops, with the results in order |
//! | [`clocks`] | what time it is where sources of data disagree: what a majority says |
//! | [`simd`] | sixteen numbers at once, with what the CPU offers |
//!
//! A detector's formats and stages are a crate of their own above this one, which knows none of
//! them. A stage takes batches of one type and puts items of another into a sink:
//!
//! ```
//! use pollux_pipelines::{Batch, DynStage, Pipeline, Sink, Stage, StageExt};
//!
//! /// Adds up two numbers at a time.
//! #[derive(Default)]
//! struct Pairs(Option<u32>);
//!
//! impl Stage for Pairs {
//!     type In = u32;
//!     type Out = u32;
//!
//!     fn process(&mut self, batch: &mut Batch<u32>, out: &mut impl Sink<u32>) {
//!         for n in batch.drain() {
//!             match self.0.take() {
//!                 Some(first) => out.push(first + n),
//!                 None => self.0 = Some(n),
//!             }
//!         }
//!     }
//!
//!     fn finish(&mut self, out: &mut impl Sink<u32>) {
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

pub mod clocks;
pub mod env;
pub mod pipeline;
pub mod registry;
pub mod simd;
pub mod spread;
pub mod stage;

pub use env::{MissingExtension, StageEnv};
pub use pipeline::{DynStage, Kinds, Pipeline, PipelineError};
pub use registry::{StageError, StageRegistry};
pub use stage::{Batch, Discard, Each, Moment, Sink, Stage, StageExt};
