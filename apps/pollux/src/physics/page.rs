//! The study for people: a table, and docs/physics.md with its plots.

use std::fmt::Write;

use super::plot::{Curve, svg};
use super::study::{NOISE, PILEUP, RINGS, Row};

/// Noise and pile-up of the plots over something else.
const PLOT_NOISE: f64 = 0.2;
const PLOT_PILEUP: f64 = 0.0;

/// The rows as a Markdown table.
pub(super) fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| pile-up | noise | rings | efficiency | fakes | radius, mm | bound, mm | ratio |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let (efficiency, fakes) = (per_cent(row.efficiency), per_cent(row.fake_rate));
        let (error, bound) = (row.radius_resolution_mm, row.radius_bound_mm);
        let ratio = error.zip(bound).map(|(error, bound)| error / bound);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "| {} | {} | {} | {efficiency} | {fakes} | {} | {} | {} |",
            row.pileup,
            row.noise,
            row.rings,
            number(error),
            number(bound),
            number(ratio)
        );
    }
    out
}

fn per_cent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.2} %", 100.0 * share))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}"))
}

/// The page and its plots: names and contents.
pub(super) fn files(
    seed: u64,
    events: u64,
    triplets: &[Row],
    grid: &[Row],
) -> Vec<(&'static str, String)> {
    let page = format!(
        "{HEAD}\nSeed {seed}, {events} events a row.\n\n{}\n{GRID}\n{}",
        table(triplets),
        table(grid)
    );
    let named = |n: u32| format!("{n} ring{}", if n == 1 { "" } else { "s" });
    let curve = |name: String, points: &dyn Fn(&Row) -> Option<(f64, f64)>| -> Curve {
        (name, triplets.iter().filter_map(points).collect())
    };
    let same = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let over_rings = NOISE.map(|noise| {
        curve(format!("noise {noise}"), &|row| {
            let ours = same(row.noise, noise) && same(row.pileup, PLOT_PILEUP);
            ours.then_some((f64::from(row.rings), 100.0 * row.efficiency?))
        })
    });
    let over_noise = RINGS.map(|rings| {
        curve(named(rings), &|row| {
            let ours = row.rings == rings && same(row.pileup, PLOT_PILEUP);
            ours.then_some((row.noise, 100.0 * row.fake_rate?))
        })
    });
    let over_pileup = RINGS.map(|rings| {
        curve(named(rings), &|row| {
            let ours = row.rings == rings && same(row.noise, PLOT_NOISE);
            ours.then_some((row.pileup, 100.0 * row.efficiency?))
        })
    });
    let (rings, noise, pileup) = (
        format!("Rings found, pile-up {PLOT_PILEUP}"),
        format!("Fake rings, pile-up {PLOT_PILEUP}"),
        format!("Rings found, noise {PLOT_NOISE}"),
    );
    let range = [90.0, 100.0];
    debug_assert!(PILEUP.contains(&PLOT_PILEUP) && NOISE.contains(&PLOT_NOISE));
    vec![
        ("physics.md", page),
        (
            "physics-rings.svg",
            svg(&rings, "rings of an event", range, &over_rings),
        ),
        (
            "physics-noise.svg",
            svg(
                &noise,
                "noise hits per hit of a ring",
                [0.0, 10.0],
                &over_noise,
            ),
        ),
        (
            "physics-pileup.svg",
            svg(
                &pileup,
                "other events in the slot",
                [75.0, 100.0],
                &over_pileup,
            ),
        ),
    ]
}

const HEAD: &str = "\
# Physics: how well rings are found

This page and its plots are written by `pollux physics --docs docs`, from events of the emulated detector whose truth is known. `pollux physics --json FILE` writes the rows for machines.

| column | what |
| --- | --- |
| pile-up | other events in the slot of an event, on average, each at a time of its own: 0.25 is 10 MHz, 1 is 40 MHz |
| noise | noise hits for each hit of a ring, anywhere on the detector and at any time in the slot of 25 ns |
| rings | rings of the event itself; each lies on one of the two disks by chance |
| efficiency | found rings per ring that is asked for: at least 5 hits, centre inside the acceptance, no other centre on the disk nearer than one pitch (18 mm). Rings of other events in the slot are asked for as well |
| fakes | fitted rings that belong to no true ring, per fitted ring. A fit belongs to a ring if the centres are within 20 mm and the radii within 10 mm |
| radius | root mean square of the error of the radius |
| bound | the least that any fit could have for the same hits (Cramer and Rao), with a Gaussian error of 0.264 pitch = 4.74 mm a hit, which is the root mean square of a hexagonal cell |

![Rings found over the number of rings](physics-rings.svg)

![Fake rings over noise](physics-noise.svg)

![Rings found over pile-up](physics-pileup.svg)

## Triplets

Circles through three hits, sixteen at a time, held against all hits by Ptolemy's criterion; the best are refined by Taubin's fit, and the hits of the ring are taken out (`pipelines/src/rich/find.rs`). This is what the trigger does.
";

const GRID: &str = "\
## Grid of centres

For each centre on a grid the histogram of the distances of all hits; its fullest bins are the candidates, which are refined in the same way. It looks everywhere, and takes several times as long.
";
