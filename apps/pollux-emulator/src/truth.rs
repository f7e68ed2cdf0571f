//! The truth about every event, made again from seed and number wherever it is needed: it is
//! neither stored nor sent.

use crate::config::{ConfigError, EmulatorConfig};
pub use crate::timeline::{Cursor, Moment, Timeline};
use pollux_na62::physics::model::{EventModel, TruthEvent};

/// What really happens in a run of a given configuration.
#[derive(Clone, Debug)]
pub struct Truth {
    model: EventModel,
    seed: u64,
    timeline: Timeline,
}

impl Truth {
    /// The truth of a configuration.
    ///
    /// # Errors
    /// A configuration that is not valid.
    pub fn of(config: &EmulatorConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            model: EventModel::new(config.physics)?,
            seed: config.seed,
            timeline: Timeline::of(config),
        })
    }

    /// When it happens.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        self.timeline
    }

    /// Makes event `n` in `out`.
    pub fn event(&self, n: u64, out: &mut TruthEvent) {
        self.model.event(self.seed, n, out);
    }
}
