//! Rules: for which rings and hits an event is accepted.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::l0::{MAX_EVENT_HITS, Reconstructed};
use crate::rich::find::{FinderConfig, MAX_RINGS, Ring};
use crate::rich::geometry::DISKS;

/// Most rules of a set: a decision has a bit for each.
pub const MAX_RULES: usize = 8;

/// More than any radius.
const ANY_RADIUS_MM: f32 = 1000.0;

/// Options of `decide`: which events are accepted (docs/operations.md, "Rules").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecideOptions {
    /// The rules: an event that one of them accepts is accepted. Left out: one, `any-ring`, which
    /// accepts whatever has a ring.
    #[serde(rename = "rule")]
    #[schemars(length(min = 1, max = MAX_RULES))]
    pub rules: Vec<RuleOptions>,
    /// Of so many rejected events one is kept for monitoring, the first first; 0: none.
    #[schemars(extend("x-unit" = "events"))]
    pub downscale: u32,
}

/// Without rules, whatever has a ring is accepted.
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

/// One rule, which holds for an event when all of its bounds do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name"]))]
pub struct RuleOptions {
    /// What reports call it.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Fewest rings that count.
    #[schemars(extend("x-unit" = "rings"))]
    pub min_rings: usize,
    /// Most rings that count.
    #[schemars(extend("x-unit" = "rings"))]
    pub max_rings: usize,
    /// Smallest and largest radius of a ring that counts, in mm.
    #[schemars(extend("x-unit" = "mm"))]
    pub radius_mm: [f32; 2],
    /// Largest mean squared distance of its hits from a ring that counts, in mm^2; `inf`: any.
    #[schemars(range(min = 0.0), extend("x-default" = "inf"), extend("x-unit" = "mm^2"))]
    pub max_chi2_mm2: f32,
    /// Least significance of a ring that counts: minus the decimal logarithm of the number of rings
    /// that are expected by chance among the hits around it.
    #[schemars(range(min = 0.0, max = 25.5))]
    pub min_significance: f32,
    /// Disk of a ring that counts: 0 or 1; without it, either.
    #[schemars(range(max = 1))]
    pub disk: Option<u16>,
    /// Fewest hits of the event.
    #[schemars(extend("x-unit" = "hits"))]
    pub min_hits: u16,
    /// Most hits of the event.
    #[schemars(extend("x-unit" = "hits"))]
    pub max_hits: u16,
    /// Of so many events that the rule holds for one is accepted, the first first.
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
            prescale: 1,
        }
    }
}

/// What the rule asks for, in words; a bound that excludes nothing is left out.
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
    /// No rule, or more than there are bits for.
    #[error("{0} rules: there must be 1 to {MAX_RULES}")]
    Number(usize),
    /// A rule without a name.
    #[error("[[stage.rule]] number {0} has no `name`")]
    NoName(usize),
    /// A rule that is wrong.
    #[error("rule `{rule}`: {what}")]
    Bound {
        /// Its name.
        rule: String,
        /// What is wrong.
        what: String,
    },
    /// As many other rules wait for the decisions to take them over.
    #[error("the rules that were read last have not been taken over yet: try again")]
    Busy,
}

impl RuleOptions {
    /// Checks that the bounds make sense.
    fn check(&self) -> Result<(), String> {
        let &Self {
            min_rings,
            max_rings,
            radius_mm: [low, high],
            max_chi2_mm2: chi2,
            min_significance: significance,
            min_hits,
            max_hits,
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

    /// Whether all bounds hold.
    #[inline]
    pub(super) fn holds(&self, event: &Reconstructed) -> bool {
        let counting = event
            .rings()
            .iter()
            .filter(|ring| self.counts(ring))
            .count();
        (self.min_rings..=self.max_rings).contains(&counting)
            && (self.min_hits..=self.max_hits).contains(&event.head().hits)
    }

    /// Why the rule can never hold, or must always, given what is looked for; `None` if neither.
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
        (any_rings && any_hits && self.prescale == 1)
            .then(|| "accepts every event: no bound of it excludes one".into())
    }
}

impl DecideOptions {
    /// Checks that the rules make sense.
    ///
    /// # Errors
    /// The first rule that is wrong, and what is wrong with it.
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

    /// What is most likely a mistake: a rule that can never accept, or must always, where rings are
    /// looked for as `finder` says.
    #[must_use]
    pub fn doubts(&self, finder: Option<&FinderConfig>) -> Vec<String> {
        let doubt = |rule: &RuleOptions| {
            let why = rule.doubt(finder)?;
            Some(format!("rule `{}` {why}", rule.name))
        };
        self.rules.iter().filter_map(doubt).collect()
    }
}
