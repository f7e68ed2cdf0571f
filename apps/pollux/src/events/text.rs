//! Text output of events.

use std::io::{self, Write};

use pollux_na62::rich::geometry::{POSITIONS, disk_of};
use pollux_recording::{Event, Facts};

use super::hypothesis::Likely;
use super::units::FINE_NS;

fn word(facts: &Facts) -> &'static str {
    match (facts.accepted, facts.monitored) {
        (true, _) => "accepted",
        (false, true) => "monitored",
        (false, false) => "rejected",
    }
}

/// Properties that differ from the ordinary.
fn remarks(facts: &Facts) -> String {
    let remarks = [
        (!facts.complete, " incomplete"),
        (facts.truncated, " truncated"),
        (facts.disputed, " disputed"),
        (facts.late, " late"),
    ];
    let remarks = remarks.into_iter().filter(|&(holds, _)| holds);
    remarks.map(|(_, name)| name).collect()
}

pub(super) fn head(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "   event         slot word      sources  hits rings  radii (mm)"
    )
}

pub(super) fn line(out: &mut dyn Write, number: usize, event: &Event) -> io::Result<()> {
    let Event {
        facts,
        hit_count,
        rings,
        ..
    } = event;
    write!(
        out,
        "{number:>8} {:>12} {:<9} {:>7x} {hit_count:>5} {:>5} ",
        facts.timestamp,
        word(facts),
        facts.sources,
        rings.len()
    )?;
    for ring in rings {
        write!(out, " {:.1}", ring.r)?;
    }
    writeln!(out, "{}", remarks(facts))
}

/// The event in full, with the hypotheses of its rings if the momentum (GeV/c) is known.
pub(super) fn event(
    out: &mut dyn Write,
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
    writeln!(
        out,
        "event      {number}, {}{}",
        word(facts),
        remarks(facts)
    )?;
    let ns = u128::from(facts.timestamp) * 25;
    let burst = facts.burst.map(|burst| format!(", burst {burst}"));
    let burst = burst.unwrap_or_default();
    writeln!(out, "time       slot {}, {ns} ns{burst}", facts.timestamp)?;
    writeln!(out, "sources    {:#06x}", facts.sources)?;
    writeln!(
        out,
        "rules      {:#04x} of set {}",
        facts.rules, facts.rule_set
    )?;
    let quality = if hits.is_some() {
        "   chi2 (mm2)   time (ns)  spread (ns)"
    } else {
        ""
    };
    let likely = momentum.map(|momentum| format!("  at {momentum} GeV/c (off by, sigma)"));
    writeln!(
        out,
        "rings      disk      x (mm)    y (mm)    r (mm)  hits{quality}{}",
        likely.unwrap_or_default()
    )?;
    for (n, ring) in rings.iter().enumerate() {
        write!(
            out,
            "{n:>9} {:>5} {:>11.2} {:>9.2} {:>9.2} {:>5}",
            ring.disk, ring.x, ring.y, ring.r, ring.hits
        )?;
        if hits.is_some() {
            let [time, spread] = [ring.time, ring.time_spread].map(|t| f64::from(t) * FINE_NS);
            write!(out, " {:>12.2} {time:>11.2} {spread:>12.2}", ring.chi2)?;
        }
        if let Some(momentum) = momentum {
            match Likely::of(ring, momentum) {
                Some(Likely::Particle(particle, pull)) => {
                    write!(out, "  {} ({pull:+.1})", particle.name())?;
                }
                Some(Likely::Nothing(nearest, pull)) => {
                    write!(out, "  none fits; nearest: {} ({pull:+.1})", nearest.name())?;
                }
                None => write!(out, "  no particle")?,
            }
        }
        writeln!(out)?;
    }
    let Some(hits) = hits else {
        return writeln!(
            out,
            "hits       {hit_count}, which this kind of file does not have"
        );
    };
    writeln!(
        out,
        "hits         PM      disk    x (mm)    y (mm)   time (ns)"
    )?;
    for (n, hit) in hits.iter().enumerate() {
        let [x, y] = POSITIONS
            .get(usize::from(hit.pm))
            .copied()
            .unwrap_or_default();
        let time = f64::from(hit.fine) * FINE_NS;
        writeln!(
            out,
            "{n:>9} {:>5} {:>9} {x:>9.1} {y:>9.1} {time:>11.2}",
            hit.pm,
            disk_of(hit.pm)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_na62::rich::Hit;
    use pollux_na62::rich::find::Ring;

    #[test]
    fn an_event_is_told_in_a_line_and_in_full() {
        let mut sample = Event {
            facts: Facts {
                timestamp: 4000,
                sources: 0xb,
                late: true,
                ..Facts::default()
            },
            hit_count: 2,
            hits: None,
            rings: vec![Ring {
                r: 180.25,
                hits: 16,
                chi2: 21.5,
                time_spread: 3.0,
                ..Ring::default()
            }],
        };
        let text = |sample: &Event, whole: bool| {
            let mut out = Vec::new();
            if whole {
                event(&mut out, 7, sample, Some(28.0)).unwrap();
            } else {
                line(&mut out, 7, sample).unwrap();
            }
            String::from_utf8(out).unwrap()
        };
        let listed = text(&sample, false);
        assert_eq!(
            listed.split_whitespace().collect::<Vec<_>>(),
            [
                "7",
                "4000",
                "rejected",
                "b",
                "2",
                "1",
                "180.2",
                "incomplete",
                "late"
            ]
        );
        assert!(
            text(&sample, true).contains("hits       2, which this kind of file does not have")
        );
        // At 28 GeV/c tan^2 = n^2 beta^2 - 1 is that of 179.6 mm for a muon, known to 1.125 mm.
        assert!(text(&sample, true).contains("    16  muon (+0.6)\n"));
        sample.hits = Some([0, 1951].map(|pm| Hit { pm, fine: 256 }).into());
        sample.facts.monitored = true;
        let whole = text(&sample, true);
        for part in [
            "event      7, monitored incomplete late",
            "slot 4000, 100000 ns",
            " 1951 ",
            "25.00",
            "   21.50        0.00         0.29  muon (+0.6)\n",
        ] {
            assert!(whole.contains(part), "no `{part}` in {whole}");
        }
    }
}
