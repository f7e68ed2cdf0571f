//! Event builder: fragments of up to 1024 sources into events, by key.
//!
//! A builder is generic over its fragments and what they are gathered in ([`Gather`]), and over the
//! set of sources ([`SourceSet`]): an integer for few, [`Sources1024`] for a farm. An event is
//! closed when all sources have contributed or when its deadline comes, whichever is first. Events
//! leave in the order of their keys: a complete event waits for the older ones. A fragment of a
//! closed event is late. The number of open events is bounded; when one more is needed, the oldest
//! is closed.
//!
//! Keys are not trusted: the *front* is the key that most sources have reached.
//!
//! - A key that is further ahead of the front than the horizon, or that far behind what was closed,
//!   is refused. If the last keys of most sources that are heard are refused so, and near each other,
//!   keys begin anew there (a new run).
//! - At its deadline, an event ahead of the front stays open while most sources that are heard are
//!   still behind it: a source that is ahead closes nothing of the others. Nor does it take more than
//!   half of the room for events that it is alone in.
//!
//! ```
//! use pollux_mempool::time::Ns;
//! use pollux_pipelines::build::{Address, Builder, BuilderOptions, Gather};
//! use pollux_pipelines::{Batch, Moment, Stage};
//! use pollux_pmd::Cause;
//!
//! struct Texts;
//!
//! impl Gather for Texts {
//!     type Fragment = (u64, usize, &'static str);
//!     type Event = String;
//!
//!     fn address(&self, &(key, source, _): &Self::Fragment) -> Address {
//!         Address { key, source, at: Moment(0) }
//!     }
//!
//!     fn open(&mut self, _key: u64) -> Option<String> {
//!         Some(String::new())
//!     }
//!
//!     fn add(&mut self, event: &mut String, _: usize, part: Self::Fragment) -> Result<(), Cause> {
//!         event.push_str(part.2);
//!         Ok(())
//!     }
//! }
//!
//! let options = BuilderOptions { sources: 2, deadline: Ns(1000), horizon: 100, max_open: 16 };
//! let mut builder = Builder::<Texts, u16>::new(Texts, options)?;
//! let (mut batch, mut events) = (Batch::default(), Vec::new());
//! for fragment in [(1, 0, "ab"), (2, 0, "ef"), (1, 1, "cd")] {
//!     assert!(batch.push(fragment).is_ok());
//! }
//! builder.process(&mut batch, &mut events);
//! assert_eq!((events.len(), events[0].complete, &events[0].event[..]), (1, true, "abcd"));
//! # Ok::<(), pollux_pipelines::build::BuilderError>(())
//! ```

mod builder;
mod options;
mod sources;

pub use builder::Builder;
pub use options::{Address, BuilderCounts, BuilderError, BuilderOptions, Built, Gather};
pub use sources::{SourceSet, Sources1024, Wide};
