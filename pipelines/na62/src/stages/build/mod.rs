//! Build: fragments of all sources into events, by time stamp.
//!
//! A use of the [event builder](pollux_pipelines::build) whose keys are time stamps in windows:
//! when an event closes, and which time stamps are valid, is described there. The hits of an event
//! are gathered in its buffer, in the order of the sources.

mod gather;
mod options;

use pollux_pipelines::StageEnv;
use pollux_pipelines::build::{Builder, BuilderOptions};
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Moment, Stage};

use self::gather::Drafts;
pub use self::options::BuildOptions;
use self::options::MAX_OPEN;
use super::limits::{MAX_WINDOW, check_hot, check_sources, check_times};
use crate::l0::{Event, Fragments, L0Record};

/// Nanoseconds of a slot.
const SLOT_NS: u64 = 25;

/// The event builder.
pub struct Build(Builder<Drafts, u16>);

impl Build {
    /// Makes the stage.
    ///
    /// # Errors
    /// A width, deadline or number that is zero or too large.
    pub fn new(options: &BuildOptions, env: &mut StageEnv) -> Result<Self, String> {
        let &BuildOptions {
            window_slots,
            deadline_us,
            horizon_us,
            max_open,
            hot_hits,
        } = options;
        let sources = check_sources(env)?;
        if !(1..=u64::from(MAX_WINDOW)).contains(&window_slots) {
            return Err(format!(
                "window_slots = {window_slots}: it must be 1 to {MAX_WINDOW}"
            ));
        }
        let deadline = check_times(deadline_us, horizon_us)?;
        if !(2..=MAX_OPEN).contains(&max_open) {
            return Err(format!("max_open = {max_open}: it must be 2 to {MAX_OPEN}"));
        }
        let horizon = horizon_us.saturating_mul(1000 / SLOT_NS) / window_slots;
        if horizon == 0 {
            return Err(format!(
                "horizon_us = {horizon_us}: it must be at least one window"
            ));
        }
        let drafts = Drafts::new(window_slots, check_hot(hot_hits)?, max_open, env)?;
        let options = BuilderOptions {
            sources,
            deadline,
            horizon,
            keys_per_ns: 1.0 / (SLOT_NS * window_slots) as f64,
            max_open,
            last_burst: L0Record::LAST_BURST,
        };
        let builder = Builder::new(drafts, options).map_err(|error| error.to_string())?;
        env.ledger.add("build", builder.tally());
        Ok(Self(builder))
    }
}

impl Stage for Build {
    type In = Fragments;
    type Out = Event;

    fn process(&mut self, batch: &mut Batch<Fragments>, out: &mut impl Output<Event>) {
        self.0.process(batch, out);
    }

    fn tick(&mut self, now: Moment, out: &mut impl Output<Event>) {
        self.0.tick(now, out);
    }

    fn finish(&mut self, out: &mut impl Output<Event>) {
        self.0.finish(out);
    }
}
