//! Rules: criteria for accepting an event, by its rings and hits.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::l0::{EventHead, MAX_EVENT_HITS, MAX_SOURCES, Reconstructed};
use crate::rich::find::{FinderConfig, MAX_RINGS, Ring};
use crate::rich::geometry::DISKS;

/// Maximum number of rules in a set: a decision has a bit for each.
pub const MAX_RULES: usize = 8;

/// Greater than any radius.
const ANY_RADIUS_MM: f32 = 1000.0;

/// Options of `decide`: which events are accepted (docs/operations.md, "Rules").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecideOptions {
    /// The rules: an event is accepted if at least one of them accepts it. Default: a single rule,
    /// `any-ring`, which accepts every event with a ring.
    #[serde(rename = "rule")]
    #[schemars(length(min = 1, max = MAX_RULES))]
    pub rules: Vec<RuleOptions>,
    /// One in so many rejected events is kept for monitoring, beginning with the first; 0: none.
    #[schemars(extend("x-unit" = "events"))]
    pub downscale: u32,
}

/// Without rules, every event with a ring is accepted.
impl Default for DecideOptions {
    fn default() -> Self {
        Self {
            rules: vec![RuleOptions {
                name: "any-ring".into(),
                ..RuleOptions::default()
            }],
            downscale: 0,
        }
    }
}

/// One rule. It holds for an event if all of its criteria hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name"]))]
pub struct RuleOptions {
    /// Name of the rule in reports.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Minimum number of matching rings.
    #[schemars(extend("x-unit" = "rings"))]
    pub min_rings: usize,
    /// Maximum number of matching rings.
    #[schemars(extend("x-unit" = "rings"))]
    pub max_rings: usize,
    /// Minimum and maximum radius of a matching ring, in mm.
    #[schemars(extend("x-unit" = "mm"))]
    pub radius_mm: [f32; 2],
    /// Maximum mean squared distance of its hits from a matching ring, in mm^2; `inf`: any.
    #[schemars(range(min = 0.0), extend("x-default" = "inf"), extend("x-unit" = "mm^2"))]
    pub max_chi2_mm2: f32,
    /// Minimum significance of a matching ring: minus the decimal logarithm of the number of rings
    /// that are expected by chance among the hits around it.
    #[schemars(range(min = 0.0, max = 25.5))]
    pub min_significance: f32,
    /// Disk of a matching ring: 0 or 1; without it, either.
    #[schemars(range(max = 1))]
    pub disk: Option<u16>,
    /// Minimum number of hits of the event.
    #[schemars(extend("x-unit" = "hits"))]
    pub min_hits: u16,
    /// Maximum number of hits of the event.
    #[schemars(extend("x-unit" = "hits"))]
    pub max_hits: u16,
    /// Fewest sources that contributed to the event.
    #[schemars(range(max = MAX_SOURCES), extend("x-unit" = "sources"))]
    pub min_sources: u16,
    /// Sources that contributed to the event, and maybe others: places among the `[[stream]]`
    /// tables, from 0.
    #[schemars(inner(range(max = 15)))]
    pub sources: Vec<u16>,
    /// One in so many events that the rule holds for is accepted, beginning with the first.
    #[schemars(range(min = 1), extend("x-unit" = "events"))]
    pub prescale: u32,
}

impl Default for RuleOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            min_rings: 1,
            max_rings: MAX_RINGS,
            radius_mm: [0.0, ANY_RADIUS_MM],
            max_chi2_mm2: f32::INFINITY,
            min_significance: 0.0,
            disk: None,
            min_hits: 0,
            max_hits: u16::MAX,
            min_sources: 0,
            sources: Vec::new(),
            prescale: 1,
        }
    }
}

/// The criteria of the rule as text; a criterion that excludes nothing is left out.
impl fmt::Display for RuleOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min_rings, self.max_rings) {
            (0, MAX_RINGS..) => f.write_str("rings: any number")?,
            (few, MAX_RINGS..) => write!(f, "rings: {few} or more")?,
            (few, many) if few == many => write!(f, "rings: {few}")?,
            (few, many) => write!(f, "rings: {few} to {many}")?,
        }
        let [low, high] = self.radius_mm;
        if low > 0.0 || high < ANY_RADIUS_MM {
            write!(f, ", radius {low} to {high} mm")?;
        }
        if self.max_chi2_mm2.is_finite() {
            write!(f, ", chi2 up to {} mm2", self.max_chi2_mm2)?;
        }
        if self.min_significance > 0.0 {
            write!(f, ", significance {} or more", self.min_significance)?;
        }
        if let Some(disk) = self.disk {
            write!(f, ", on disk {disk}")?;
        }
        match (self.min_hits, self.max_hits) {
            (0, u16::MAX) => {}
            (few, u16::MAX) => write!(f, ", hits: {few} or more")?,
            (few, many) => write!(f, ", hits: {few} to {many}")?,
        }
        if self.min_sources > 0 {
            write!(f, ", sources: {} or more", self.min_sources)?;
        }
        for source in &self.sources {
            write!(f, ", with source {source}")?;
        }
        match self.prescale {
            1 => Ok(()),
            n => write!(f, ", one in {n} of them"),
        }
    }
}

/// Why rules are refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// No rule, or more rules than bits.
    #[error("{0} rules: there must be 1 to {MAX_RULES}")]
    Number(usize),
    /// A rule without a name.
    #[error("[[stage.rule]] number {0} has no `name`")]
    NoName(usize),
    /// An invalid rule.
    #[error("rule `{rule}`: {what}")]
    Bound {
        /// Its name.
        rule: String,
        /// The fault.
        what: String,
    },
    /// The maximum number of other rule sets is already waiting for the stage.
    #[error("the previous rules are not active yet: try again")]
    Busy,
}

impl RuleOptions {
    /// Checks the criteria.
    fn check(&self) -> Result<(), String> {
        let &Self {
            min_rings,
            max_rings,
            radius_mm: [low, high],
            max_chi2_mm2: chi2,
            min_significance: significance,
            min_hits,
            max_hits,
            min_sources,
            prescale,
            ..
        } = self;
        if min_rings > max_rings {
            return Err(format!(
                "min_rings = {min_rings} is above max_rings = {max_rings}"
            ));
        }
        if !(0.0 <= low && low <= high && high.is_finite()) {
            return Err(format!(
                "radius_mm = [{low}, {high}]: smallest first, both in mm"
            ));
        }
        if chi2.is_nan() || chi2 < 0.0 {
            return Err(format!("max_chi2_mm2 = {chi2}: it must not be negative"));
        }
        if !(0.0..=25.5).contains(&significance) {
            return Err(format!(
                "min_significance = {significance}: it must be 0 to 25.5"
            ));
        }
        if let Some(disk) = self.disk.filter(|&disk| usize::from(disk) >= DISKS) {
            return Err(format!("disk = {disk}: it must be 0 or 1"));
        }
        if min_hits > max_hits {
            return Err(format!(
                "min_hits = {min_hits} is above max_hits = {max_hits}"
            ));
        }
        if usize::from(min_sources) > MAX_SOURCES {
            return Err(format!(
                "min_sources = {min_sources}: an event has {MAX_SOURCES} at most"
            ));
        }
        if let Some(source) = self
            .sources
            .iter()
            .find(|&&s| usize::from(s) >= MAX_SOURCES)
        {
            return Err(format!(
                "sources: {source}: sources are numbered from 0 to {}",
                MAX_SOURCES - 1
            ));
        }
        if prescale == 0 {
            return Err("prescale = 0: it must be at least 1, which accepts all".into());
        }
        Ok(())
    }

    fn counts(&self, ring: &Ring) -> bool {
        let [low, high] = self.radius_mm;
        (low..=high).contains(&ring.r)
            && ring.chi2 <= self.max_chi2_mm2
            && ring.significance() >= self.min_significance
            && self.disk.is_none_or(|disk| disk == u16::from(ring.disk))
    }

    /// Whether all criteria hold.
    #[inline]
    pub(super) fn holds(&self, event: &Reconstructed) -> bool {
        let counting = event
            .rings()
            .iter()
            .filter(|ring| self.counts(ring))
            .count();
        let EventHead { hits, sources, .. } = event.head();
        (self.min_rings..=self.max_rings).contains(&counting)
            && (self.min_hits..=self.max_hits).contains(&hits)
            && sources.count_ones() >= self.min_sources.into()
            && self.sources.iter().all(|source| sources >> source & 1 == 1)
    }

    /// Why the rule can never hold, or always holds, with the configured ring finder; `None` if
    /// neither.
    fn doubt(&self, finder: Option<&FinderConfig>) -> Option<String> {
        let [low, high] = self.radius_mm;
        let none_counts = finder
            .filter(|found| high < found.min_radius_mm || found.max_radius_mm < low)
            .map(|found| {
                let (from, to) = (found.min_radius_mm, found.max_radius_mm);
                format!("rings are looked for from {from} to {to} mm")
            });
        let needs = self.min_rings;
        if needs > 0 {
            if let Some(why) = none_counts {
                return Some(format!(
                    "can never accept: radius_mm = [{low}, {high}], and {why}"
                ));
            }
            if needs > MAX_RINGS {
                return Some(format!(
                    "can never accept: min_rings = {needs}, and an event has {MAX_RINGS} at most"
                ));
            }
            if let Some(fewest) = finder
                .map(|found| found.min_hits)
                .filter(|&n| n > self.max_hits)
            {
                return Some(format!(
                    "can never accept: max_hits = {}, and a ring has {fewest} at least",
                    self.max_hits
                ));
            }
        }
        if usize::from(self.min_hits) > MAX_EVENT_HITS {
            return Some(format!(
                "can never accept: min_hits = {}, and an event has {MAX_EVENT_HITS} at most",
                self.min_hits
            ));
        }
        let any_rings = needs == 0 && (self.max_rings >= MAX_RINGS || none_counts.is_some());
        let any_hits = self.min_hits == 0 && usize::from(self.max_hits) >= MAX_EVENT_HITS;
        // An event has one source at least.
        let any_sources = self.min_sources <= 1 && self.sources.is_empty();
        (any_rings && any_hits && any_sources && self.prescale == 1)
            .then(|| "accepts every event: none of its criteria excludes one".into())
    }
}

impl DecideOptions {
    /// Checks the rules.
    ///
    /// # Errors
    /// The first invalid rule, and its fault.
    pub fn check(&self) -> Result<(), RuleError> {
        let number = self.rules.len();
        if !(1..=MAX_RULES).contains(&number) {
            return Err(RuleError::Number(number));
        }
        for (place, rule) in self.rules.iter().enumerate() {
            if rule.name.is_empty() {
                return Err(RuleError::NoName(place + 1));
            }
            let twice = self.rules[..place]
                .iter()
                .any(|other| other.name == rule.name);
            let checked = if twice {
                Err("there are two of that name".into())
            } else {
                rule.check()
            };
            checked.map_err(|what| RuleError::Bound {
                rule: rule.name.clone(),
                what,
            })?;
        }
        Ok(())
    }

    /// Warnings about likely mistakes: rules that can never accept, or always accept, with the ring
    /// finder configured as `finder`.
    #[must_use]
    pub fn doubts(&self, finder: Option<&FinderConfig>) -> Vec<String> {
        let doubt = |rule: &RuleOptions| {
            let why = rule.doubt(finder)?;
            Some(format!("rule `{}` {why}", rule.name))
        };
        self.rules.iter().filter_map(doubt).collect()
    }

    /// Rules that can never accept an event without hits.
    pub(super) fn need_hits(&self) -> Vec<String> {
        let rules = self.rules.iter();
        let need = rules.filter(|rule| rule.min_rings > 0 || rule.min_hits > 0);
        need.map(|rule| {
            let name = &rule.name;
            format!("rule `{name}` can never accept: primitives have no hits, and so no rings")
        })
        .collect()
    }

    /// Rules that need more sources than there are.
    pub(super) fn need_sources(&self, sources: usize) -> Vec<String> {
        let need = self.rules.iter().filter_map(|rule| {
            let least = usize::from(rule.min_sources);
            let missing = rule.sources.iter().find(|&&s| usize::from(s) >= sources);
            let why = match missing {
                Some(source) => format!(
                    "sources has {source}, and the last one is {}",
                    sources.saturating_sub(1)
                ),
                None if least > sources => {
                    format!("min_sources = {least}, and the number of sources is {sources}")
                }
                None => return None,
            };
            Some(format!("rule `{}` can never accept: {why}", rule.name))
        });
        need.collect()
    }
}
