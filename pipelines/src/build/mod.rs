//! Event builder: fragments of up to 1024 sources into events, by key.
//!
//! A builder is generic over its fragments, what they are gathered in, and what leaves
//! ([`Gather`]), and over the set of sources ([`SourceSet`](crate::sources::SourceSet)): an integer
//! for few, [`Sources1024`](crate::sources::Sources1024) for a farm.
//!
//! An event is closed when all sources have contributed or when its deadline comes, whichever is
//! first, and events leave in the order of their keys: a complete event waits for the older ones. An
//! event that is opened behind a younger one shares that one's deadline, so that no event waits
//! longer than its own. A fragment of a closed event is late. The number of open events is bounded;
//! when one more is needed, the oldest is closed.
//!
//! Keys are not trusted: a key is valid where a majority of the sources says so
//! ([`clocks`](crate::clocks), whose time is the key).
//!
//! - An event that most sources have not reached stays open at its deadline, and those behind it
//!   keep their own. So a source that is ahead closes nothing of the others, and is put off.
//! - A source that jumps opens a second timeline. Its events are closed when a majority has
//!   followed, and forgotten when none does.
//! - Without a majority events of both timelines are closed, and marked as disputed.
//!
//! A frame has one fragment or many ([`Address::ends_frame`]). The ledger counts frames: the first
//! fragment is admitted or refused for all of them ([`Outcomes`]).
//!
//! The work for a fragment does not depend on the number of sources, apart from the width of the
//! set. Votes take a step for each source: one vote a source and deadline, and one for each event
//! that waits for its deadline. With 64 sources that is little; with 1024 it is some 14 ms a
//! deadline, which therefore should be 100 ms or more.
//!
//! ```
//! use pollux_mempool::time::Ns;
//! use pollux_pipelines::build::{Address, Builder, BuilderOptions, Closing, Contribution, Gather};
//! use pollux_pipelines::{Batch, Moment, Stage};
//! use pollux_pmd::Cause;
//!
//! struct Texts;
//!
//! impl Gather<u16> for Texts {
//!     type Input = (u64, usize, &'static str);
//!     type Fragment<'a> = Self::Input;
//!     type Event = String;
//!     type Built = (u64, String, bool);
//!     type Stats = ();
//!
//!     fn each(batch: &mut Batch<Self::Input>, take: impl FnMut(Self::Input)) {
//!         batch.drain().for_each(take);
//!     }
//!
//!     fn address(&self, &(key, source, _): &Self::Input) -> Address {
//!         Address::of_frame(key, source, Moment(0))
//!     }
//!
//!     fn open(&mut self, _first: &Self::Input) -> Option<String> {
//!         Some(String::new())
//!     }
//!
//!     fn add(
//!         &mut self,
//!         event: &mut String,
//!         (.., text): Self::Input,
//!         _place: Contribution<u16>,
//!     ) -> Result<(), Cause> {
//!         event.push_str(text);
//!         Ok(())
//!     }
//!
//!     fn close(&mut self, event: &mut String, closing: &Closing<u16>) -> Option<Self::Built> {
//!         Some((closing.key, std::mem::take(event), closing.complete))
//!     }
//!
//!     fn stats(&self) -> &() {
//!         &()
//!     }
//! }
//!
//! let mut builder = Builder::new(Texts, BuilderOptions {
//!     sources: 2,
//!     deadline: Ns(1000),
//!     horizon: 100,
//!     keys_per_ns: 0.001,
//!     max_open: 16,
//!     last_burst: 1000,
//! })?;
//! let (mut batch, mut events) = (Batch::default(), Vec::new());
//! for fragment in [(1, 0, "ab"), (2, 0, "ef"), (1, 1, "cd")] {
//!     assert!(batch.push(fragment).is_ok());
//! }
//! builder.process(&mut batch, &mut events);
//! assert_eq!(events, [(1, "abcd".to_owned(), true)]);
//! # Ok::<(), pollux_pipelines::build::BuilderError>(())
//! ```

mod builder;
mod close;
mod gather;
mod options;
mod outcomes;
mod timeline;

pub use builder::Builder;
pub use gather::{Address, BuilderStats, Closing, Contribution, Gather};
pub use options::{BuilderError, BuilderOptions};
pub use outcomes::{Outcome, Outcomes};
