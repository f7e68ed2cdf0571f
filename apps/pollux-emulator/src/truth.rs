//! The truth about every event, made again from seed and number wherever it is needed: it is
//! neither stored nor sent.

use pollux_mempool::time::Ns;

use crate::config::{ConfigError, EmulatorConfig, SLOT_NS};
use crate::physics::{EventModel, TruthEvent};

/// When each event of a run happens: at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    first: u64,
    spacing: u64,
    events: u64,
}

impl Timeline {
    /// The time line of a configuration.
    #[must_use]
    pub fn of(config: &EmulatorConfig) -> Self {
        Self {
            first: config.first_timestamp,
            spacing: config.spacing(),
            events: config.event_limit(),
        }
    }

    /// Events in a full run.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Time of event `n` in slots of 25 ns.
    #[must_use]
    pub fn timestamp(&self, n: u64) -> u64 {
        self.first + n * self.spacing
    }

    /// When event `n` happens, counted from event 0.
    #[must_use]
    pub fn time_of(&self, n: u64) -> Ns {
        Ns(n * self.spacing * SLOT_NS)
    }

    /// The event that happens in a slot of 25 ns; `None` for a slot without one.
    #[must_use]
    pub fn event_number(&self, timestamp: u64) -> Option<u64> {
        let slots = timestamp.checked_sub(self.first)?;
        let n = slots / self.spacing;
        (slots % self.spacing == 0 && n < self.events).then_some(n)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_number_are_inverse() {
        let config = EmulatorConfig {
            events: 10,
            first_timestamp: 7,
            ..EmulatorConfig::default()
        };
        let line = Timeline::of(&config);
        for n in 0..10 {
            assert_eq!(line.event_number(line.timestamp(n)), Some(n));
            assert_eq!(line.event_number(line.timestamp(n) + 1), None);
        }
        assert_eq!(line.event_number(6), None);
        assert_eq!(line.event_number(line.timestamp(10)), None);
        assert_eq!(line.time_of(9), Ns(90_000));
        let endless = Timeline::of(&EmulatorConfig {
            events: 0,
            ..config
        });
        assert_eq!(
            endless.event_number(endless.timestamp(1 << 35)),
            Some(1 << 35)
        );
    }
}
