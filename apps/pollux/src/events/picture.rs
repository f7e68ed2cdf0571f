//! Event display as SVG: the two disks of photomultipliers, hits and rings.

use std::fmt::{self, Write};

use pollux_na62::rich::geometry::{DISKS, PITCH_MM, PMS_PER_DISK, POSITIONS, disk_of};
use pollux_recording::Event;

/// Half the side of a disk's picture, in mm: the rim of the disk is at 295 mm.
const HALF: f32 = 310.0;
const NAMES: [&str; DISKS] = ["Jura", "Saleve"];

/// Size of the picture; a unit is a millimetre.
pub(super) fn svg(number: usize, event: &Event) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, number, event);
    out
}

fn write(out: &mut String, number: usize, event: &Event) -> fmt::Result {
    let word = if event.facts.accepted {
        "accepted"
    } else {
        "rejected"
    };
    let (width, height) = (2.0 * HALF * DISKS as f32, 2.0 * HALF + 40.0);
    writeln!(
        out,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="20">
<title>Event {number} at slot {}: {word}, {} hits, {} rings</title>
<rect width="{width}" height="{height}" fill="white"/>"#,
        event.facts.timestamp,
        event.hit_count,
        event.rings.len()
    )?;
    let radius = PITCH_MM / 2.0;
    for (disk, name) in NAMES.into_iter().enumerate() {
        let x = HALF * (2 * disk + 1) as f32;
        // y upwards, as in the detector.
        writeln!(
            out,
            r##"<text x="{x}" y="{}" text-anchor="middle">{name}</text>
<g transform="translate({x} {HALF}) scale(1 -1)">
<g fill="none" stroke="#c9d1d9">"##,
            2.0 * HALF + 20.0
        )?;
        for [x, y] in &POSITIONS[..PMS_PER_DISK] {
            writeln!(
                out,
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="{}"/>"#,
                radius - 1.0
            )?;
        }
        writeln!(out, r##"</g><g fill="#0072b2">"##)?;
        let hits = event.hits.iter().flatten();
        for hit in hits.filter(|hit| usize::from(disk_of(hit.pm)) == disk) {
            if let Some([x, y]) = POSITIONS.get(usize::from(hit.pm)) {
                writeln!(
                    out,
                    r#"<circle cx="{x:.1}" cy="{y:.1}" r="{}"><title>PM {}</title></circle>"#,
                    radius - 2.0,
                    hit.pm
                )?;
            }
        }
        writeln!(
            out,
            r##"</g><g fill="none" stroke="#d55e00" stroke-width="2.5">"##
        )?;
        for ring in event
            .rings
            .iter()
            .filter(|ring| usize::from(ring.disk) == disk)
        {
            // A damaged file may contain numbers that SVG does not allow.
            if [ring.x, ring.y, ring.r].iter().all(|v| v.is_finite()) && ring.r >= 0.0 {
                writeln!(
                    out,
                    r#"<circle cx="{}" cy="{}" r="{}"/>"#,
                    ring.x, ring.y, ring.r
                )?;
            }
        }
        writeln!(out, "</g></g>")?;
    }
    writeln!(out, "</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pollux_na62::rich::Hit;
    use pollux_na62::rich::find::Ring;

    #[test]
    fn hits_and_rings_are_on_their_disks() {
        let ring = |disk, r| Ring {
            disk,
            r,
            x: -20.5,
            ..Ring::default()
        };
        let event = Event {
            hits: Some(
                [0, 975, 976, 1951, 60_000]
                    .map(|pm| Hit { pm, fine: 3 })
                    .into(),
            ),
            hit_count: 5,
            rings: vec![ring(0, 180.25), ring(1, 120.0), ring(1, f32::NAN)],
            ..Event::default()
        };
        let picture = svg(7, &event);
        assert!(picture.contains("<title>Event 7 at slot 0: rejected, 5 hits, 3 rings</title>"));
        assert_eq!(picture.matches("<circle").count(), 2 * PMS_PER_DISK + 4 + 2);
        let (jura, saleve) = picture.split_once("Saleve").unwrap_or_default();
        for (disk, texts) in [
            (jura, ["<title>PM 975<", r#"cx="-20.5" cy="0" r="180.25""#]),
            (saleve, ["<title>PM 976<", r#"cx="-20.5" cy="0" r="120""#]),
        ] {
            assert!(texts.iter().all(|text| disk.contains(text)), "{disk}");
        }
        assert!(!picture.contains("NaN") && !picture.contains("PM 60000"));
    }
}
