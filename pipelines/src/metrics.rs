//! Metrics of stages.
//!
//! A stage registers its metrics in [`StageEnv::metrics`](crate::StageEnv::metrics) when it is
//! constructed, and writes the returned counters. The program reads them: an exporter shows each on
//! its Prometheus page as `pollux_stage_NAME_UNIT`, with the stage as a label.
//!
//! ```
//! use pollux_pipelines::StageEnv;
//!
//! let mut env = StageEnv::new();
//! let pixels = env.metrics.counter("mask", "masked", "pixels", "Pixels that were masked")?;
//! pixels.add(3);
//! let metric = &env.metrics.all()[0];
//! assert_eq!((metric.stage(), metric.name(), metric.value()), ("mask", "masked", 3));
//! # Ok::<(), pollux_pipelines::MetricError>(())
//! ```

use std::sync::Arc;

use pollux_pmd::Count;

/// How the value of a metric changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// Never decreases.
    Counter,
    /// Current value of a quantity.
    Gauge,
}

/// A metric of one stage.
#[derive(Clone, Debug)]
pub struct Metric {
    stage: String,
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    kind: MetricKind,
    value: Arc<Count>,
}

impl Metric {
    /// The stage that it is of.
    #[must_use]
    pub fn stage(&self) -> &str {
        &self.stage
    }

    /// What is counted.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its unit, in the plural: `pixels`, `bytes`, `seconds`.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// What it says, as a sentence without a period.
    #[must_use]
    pub fn help(&self) -> &'static str {
        self.help
    }

    /// Whether it can fall.
    #[must_use]
    pub fn kind(&self) -> MetricKind {
        self.kind
    }

    /// Its value now.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.value.get()
    }
}

/// Why a metric is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// A name or unit that the format of Prometheus does not have.
    #[error("metric `{0}`: names and units have small letters, digits and underscores")]
    Name(String),
    /// There is one of that name that means something else.
    #[error("metric `{0}`: stage `{1}` has one of that name with another unit, kind or help")]
    Differs(&'static str, String),
}

/// For stages, which say what is wrong in words.
impl From<MetricError> for String {
    fn from(error: MetricError) -> Self {
        error.to_string()
    }
}

/// The metrics of all stages of a pipeline.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Vec<Metric>);

impl Metrics {
    /// Registers a counter of a stage; the stage adds to what it is given. A stage that is in a
    /// pipeline twice has one counter for both.
    ///
    /// # Errors
    /// A name or unit that is not one, or that means something else already.
    pub fn counter(
        &mut self,
        stage: &str,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
    ) -> Result<Arc<Count>, MetricError> {
        self.add(stage, name, unit, help, MetricKind::Counter)
    }

    /// Registers a value of a stage that rises and falls; the stage sets what it is given.
    ///
    /// # Errors
    /// As of [`counter`](Self::counter).
    pub fn gauge(
        &mut self,
        stage: &str,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
    ) -> Result<Arc<Count>, MetricError> {
        self.add(stage, name, unit, help, MetricKind::Gauge)
    }

    /// The metrics, in the order in which they were registered.
    #[must_use]
    pub fn all(&self) -> &[Metric] {
        &self.0
    }

    fn add(
        &mut self,
        stage: &str,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        kind: MetricKind,
    ) -> Result<Arc<Count>, MetricError> {
        for word in [name, unit] {
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let begins = word.starts_with(|c: char| c.is_ascii_lowercase());
            if !begins || !word.chars().all(is_word) {
                return Err(MetricError::Name(word.into()));
            }
        }
        let same_name = || self.0.iter().filter(|other| other.name == name);
        for other in same_name() {
            if (other.unit, other.help, other.kind) != (unit, help, kind) {
                return Err(MetricError::Differs(name, other.stage.clone()));
            }
        }
        if let Some(own) = same_name().find(|other| other.stage == stage) {
            return Ok(Arc::clone(&own.value));
        }
        let value = Arc::<Count>::default();
        self.0.push(Metric {
            stage: stage.into(),
            name,
            unit,
            help,
            kind,
            value: Arc::clone(&value),
        });
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_metric_has_one_meaning() {
        let mut metrics = Metrics::default();
        let lost = metrics.counter("a", "lost", "pixels", "Pixels").unwrap();
        let other = metrics.counter("b", "lost", "pixels", "Pixels").unwrap();
        lost.add(2);
        other.add(5);
        let values = metrics.all().iter().map(|m| (m.stage(), m.value()));
        assert_eq!(values.collect::<Vec<_>>(), [("a", 2), ("b", 5)]);
        // A stage that is there twice counts in one.
        let again = metrics.counter("a", "lost", "pixels", "Pixels").unwrap();
        again.add(1);
        assert_eq!(metrics.all()[0].value(), 3);
        let differs = MetricError::Differs("lost", "a".into());
        for made in [
            metrics.gauge("c", "lost", "pixels", "Pixels"),
            metrics.counter("c", "lost", "bytes", "Pixels"),
            metrics.counter("c", "lost", "pixels", "Others"),
        ] {
            assert_eq!(made.err(), Some(differs.clone()));
        }
        for name in ["", "Lost", "lost-pixels", "2nd", "a b", "a\n"] {
            let made = metrics.counter("d", name.to_owned().leak(), "pixels", "");
            assert_eq!(made.err(), Some(MetricError::Name(name.into())));
        }
        assert_eq!(metrics.all().len(), 2);
    }
}
