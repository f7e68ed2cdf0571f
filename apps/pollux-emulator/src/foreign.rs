//! The truth about events that were made elsewhere, read from a file of docs/formats/truth.md.
//!
//! JSON lines: the first one names the format, and each of the others is an event. A file is read
//! whole, before a run begins.

use std::fmt::Write as _;

use pollux_na62::rich::geometry::DISKS;
use serde::{Deserialize, Serialize};

use crate::truth::Moment;
use pollux_na62::physics::model::{Origin, TrueRing};

/// Name of the format, in its first line.
pub const FORMAT: &str = "pollux-truth";
/// Version of the format.
pub const VERSION: u32 = 1;
/// Units of 25/256 ns in a nanosecond.
const FINE_PER_NS: f32 = 256.0 / 25.0;
/// Length of a slot in ns.
const SLOT_NS: f32 = 25.0;

/// Why a file is refused.
#[derive(Debug, thiserror::Error)]
pub enum TruthError {
    /// The first line is not that of the format.
    #[error(
        "line 1: not the first line of a truth file, {{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}: \
         {why}"
    )]
    Header {
        /// What is wrong with it.
        why: String,
    },
    /// A line is not an event.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    format: &'a str,
    version: u32,
}

/// An event.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "is_zero")]
    spill: u64,
    timestamp: u64,
    rings: Vec<LineRing>,
}

/// A ring of an event.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineRing {
    disk: u8,
    x_mm: f32,
    y_mm: f32,
    r_mm: f32,
    hits: u16,
    time_ns: f32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    particle: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    momentum_gev: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mass_gev: Option<f32>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes the field by reference
fn is_zero(spill: &u64) -> bool {
    *spill == 0
}

/// The true rings of events, by spill and time stamp.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignTruth {
    /// Spill, time stamp, and the end of its rings; ascending. Spills are counted from 0, whatever
    /// numbers the file gives them.
    events: Vec<(u64, u64, usize)>,
    rings: Vec<TrueRing>,
    /// The number that the file gives to the last spill.
    number: u64,
}

impl ForeignTruth {
    /// Whether a text is meant to be of this format, and no configuration of the emulator: its
    /// first character is a brace, which no TOML begins with.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().starts_with('{')
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// Names the first line that is wrong, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TruthError> {
        let mut lines = (1..).zip(text.lines());
        let header = lines.next().map_or("", |(_, header)| header);
        let header: Header<'_> =
            serde_json::from_str(header).map_err(|why| TruthError::Header {
                why: why.to_string(),
            })?;
        if (header.format, header.version) != (FORMAT, VERSION) {
            let why = format!("format {:?}, version {}", header.format, header.version);
            return Err(TruthError::Header { why });
        }
        let mut truth = Self::default();
        for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
            let wrong = |why| TruthError::Line { line, why };
            let event: Line = serde_json::from_str(text).map_err(|why| wrong(why.to_string()))?;
            truth.push(&event).map_err(wrong)?;
        }
        Ok(truth)
    }

    fn push(&mut self, event: &Line) -> Result<(), String> {
        let mut spill = 0;
        if let Some(&(last, timestamp, _)) = self.events.last() {
            if (event.spill, event.timestamp) <= (self.number, timestamp) {
                return Err(format!(
                    "spill {}, timestamp {}: must be above those of the event before, spill {}, \
                     timestamp {timestamp}: events ascend strictly",
                    event.spill, event.timestamp, self.number
                ));
            }
            spill = last + u64::from(event.spill > self.number);
        }
        self.number = event.spill;
        for (number, ring) in event.rings.iter().enumerate() {
            let ring = ring.check(number as u16);
            self.rings
                .push(ring.map_err(|why| format!("ring {number}: {why}"))?);
        }
        self.events.push((spill, event.timestamp, self.rings.len()));
        Ok(())
    }

    /// How many events there are.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// The rings of the event of a time stamp in a spill, of which the first in the file is 0; `None`
    /// where there is no event.
    #[must_use]
    pub fn rings(&self, spill: u64, timestamp: u64) -> Option<&[TrueRing]> {
        let key = |event: &(u64, u64, usize)| (event.0, event.1);
        let at = self
            .events
            .binary_search_by_key(&(spill, timestamp), key)
            .ok()?;
        let first = at.checked_sub(1).map_or(0, |before| self.events[before].2);
        self.rings.get(first..self.events[at].2)
    }
}

impl LineRing {
    fn check(&self, number: u16) -> Result<TrueRing, String> {
        let range = |name: &str, value: f32, low: f32, high: f32| {
            if (low..=high).contains(&value) {
                return Ok(value);
            }
            Err(format!("{name} = {value}: must be from {low} to {high}"))
        };
        if usize::from(self.disk) >= DISKS {
            return Err(format!("disk = {}: must be 0 or 1", self.disk));
        }
        let positive = |name, value: Option<f32>| range(name, value.unwrap_or(0.0), 0.0, 1e6);
        Ok(TrueRing {
            disk: self.disk,
            x: range("x_mm", self.x_mm, -1000.0, 1000.0)?,
            y: range("y_mm", self.y_mm, -1000.0, 1000.0)?,
            r: range("r_mm", self.r_mm, 0.0, 1000.0)?,
            hits: self.hits,
            time: range("time_ns", self.time_ns, -SLOT_NS, 2.0 * SLOT_NS)? * FINE_PER_NS,
            momentum: positive("momentum_gev", self.momentum_gev)?,
            mass: positive("mass_gev", self.mass_gev)?,
            origin: Origin::Event,
            particle: self.particle.unwrap_or(number),
        })
    }
}

/// The first line of a file.
#[must_use]
pub fn header() -> String {
    format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}\n")
}

/// Appends the line of an event to `out`.
pub fn write_event(at: Moment, rings: &[TrueRing], out: &mut String) {
    let rings = rings.iter().map(|ring| LineRing {
        disk: ring.disk,
        x_mm: ring.x,
        y_mm: ring.y,
        r_mm: ring.r,
        hits: ring.hits,
        time_ns: ring.time / FINE_PER_NS,
        particle: Some(ring.particle),
        momentum_gev: Some(ring.momentum),
        mass_gev: Some(ring.mass),
    });
    let line = Line {
        spill: at.spill,
        timestamp: at.timestamp,
        rings: rings.collect(),
    };
    // Numbers and strings have a form in JSON always, and writing to a string cannot fail.
    let _ = writeln!(out, "{}", serde_json::to_string(&line).unwrap_or_default());
}

#[cfg(test)]
mod tests;
