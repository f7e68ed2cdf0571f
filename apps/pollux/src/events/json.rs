//! Events as JSON.

use std::io::{self, Write};

use pollux_na62::rich::particle::Particle;
use pollux_recording::{Event, Facts};
use serde::Serialize;

use super::hypothesis::Likely;
use super::units::FINE_NS;

/// An event; fields that the file format lacks are left out.
#[expect(clippy::struct_excessive_bools, reason = "the flags of an event")]
#[derive(Serialize)]
struct Object {
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u32>,
    event: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u16>,
    timestamp: u64,
    sources: u16,
    accepted: bool,
    complete: bool,
    late: bool,
    monitored: bool,
    truncated: bool,
    disputed: bool,
    rules: u8,
    rule_set: u16,
    hit_count: usize,
    rings: Vec<Ring>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hits: Option<Vec<(u16, f64)>>,
}

#[derive(Serialize)]
struct Ring {
    disk: u16,
    x: f32,
    y: f32,
    r: f32,
    hits: u16,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    quality: Option<Quality>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    hypothesis: Option<Hypothesis>,
}

#[derive(Serialize)]
struct Quality {
    chi2: f32,
    time: f64,
    time_spread: f64,
}

#[derive(Serialize)]
struct Hypothesis {
    #[serde(skip_serializing_if = "Option::is_none")]
    particle: Option<&'static str>,
    /// Set where no particle fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<&'static str>,
    pull: f32,
}

impl From<Likely> for Hypothesis {
    fn from(likely: Likely) -> Self {
        let (particle, nearest, pull) = match likely {
            Likely::Particle(particle, pull) => (Some(particle), None, pull),
            Likely::Nothing(nearest, pull) => (None, Some(nearest), pull),
        };
        Self {
            particle: particle.map(Particle::name),
            nearest: nearest.map(Particle::name),
            pull,
        }
    }
}

/// The event as one line of JSON, with the hypotheses of its rings if the momentum (GeV/c) is
/// known.
pub(super) fn line(
    out: &mut dyn Write,
    run: Option<u32>,
    number: usize,
    event: &Event,
    momentum: Option<f64>,
) -> io::Result<()> {
    let Event {
        facts,
        hit_count,
        hits,
        rings,
    } = event;
    let Facts {
        timestamp,
        burst,
        sources,
        accepted,
        complete,
        late,
        monitored,
        truncated,
        disputed,
        rules,
        rule_set,
    } = *facts;
    let ns = |fine: f32| f64::from(fine) * FINE_NS;
    let rings = rings.iter().map(|ring| Ring {
        disk: ring.disk.into(),
        x: ring.x,
        y: ring.y,
        r: ring.r,
        hits: ring.hits,
        quality: hits.is_some().then(|| Quality {
            chi2: ring.chi2,
            time: ns(ring.time),
            time_spread: ns(ring.time_spread),
        }),
        hypothesis: momentum.and_then(|momentum| Likely::of(ring, momentum).map(Into::into)),
    });
    let hits = hits.as_ref().map(|hits| {
        let hits = hits.iter().map(|hit| (hit.pm, ns(hit.fine.into())));
        hits.collect()
    });
    let object = Object {
        run,
        event: number,
        burst,
        timestamp,
        sources,
        accepted,
        complete,
        late,
        monitored,
        truncated,
        disputed,
        rules,
        rule_set,
        hit_count: *hit_count,
        rings: rings.collect(),
        hits,
    };
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}
