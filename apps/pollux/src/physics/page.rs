//! Report of the study as Markdown tables, and docs/physics.md with its plots.

use std::fmt::Write;

use pollux_na62::physics::model::ModelConfig;
use pollux_na62::rich::find::{FinderConfig, MAX_RINGS_PER_DISK};
use pollux_na62::rich::geometry::{ACCEPTANCE_MM, FOCAL_LENGTH_MM, PITCH_MM, PMS, REFRACTIVITY};

use super::plot::{Curve, Plot};
use super::report::Report;
use pollux_na62::physics::study::momentum::{MomentumRow, SeparationRow};
use pollux_na62::physics::study::rate::Rate;
use pollux_na62::physics::study::{NOISE, PILEUP, RINGS, Row, SHARED};

/// Noise and pile-up in the plots over other variables.
const PLOT_NOISE: f64 = 0.2;
const PLOT_PILEUP: f64 = 0.0;

/// The rows as Markdown tables: by distance, then by purity.
pub(super) fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| pile-up | noise | rings | efficiency | 7 hits | any hits | fakes | fakes, 7 hits | clones | over limit | radius, mm | bound, mm | ratio |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let (error, bound) = (row.radius_resolution_mm, row.radius_bound_mm);
        let ratio = error.zip(bound).map(|(error, bound)| error / bound);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.pileup,
            row.noise,
            row.rings,
            share(row.efficiency),
            share(row.efficiency_7),
            share(row.efficiency_all),
            share(row.fake_rate),
            share(row.fake_rate_7),
            share(row.clone_rate),
            share(row.over_limit),
            sure(error, row.radius_resolution_error_mm),
            number(bound),
            number(ratio)
        );
    }
    out.push_str("\nBy the purity of hits:\n\n| pile-up | noise | rings | efficiency | fakes | clones |\n| --- | --- | --- | --- | --- | --- |\n");
    for row in rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            row.pileup,
            row.noise,
            row.rings,
            share(row.purity_efficiency),
            share(row.purity_fake_rate),
            share(row.purity_clone_rate),
        );
    }
    out
}

/// Single rings against momentum.
pub(super) fn momenta(rows: &[MomentumRow]) -> String {
    let mut out = String::from(
        "| particle | GeV/c | radius, mm | hits | any hits | 5 hits | 7 hits | fitted radius, mm | spread, mm |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.particle,
            row.momentum,
            number(row.radius_mm),
            number(row.hits),
            share(row.efficiency_all),
            share(row.efficiency),
            share(row.efficiency_7),
            number(row.fitted_mm),
            sure(row.spread_mm, row.spread_error_mm),
        );
    }
    out
}

/// Pions and muons of one momentum.
pub(super) fn separation(rows: &[SeparationRow]) -> String {
    let mut out = String::from(
        "| GeV/c | distance, mm | distance, standard deviations | pions kept | muons taken for pions |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            row.momentum,
            number(row.distance_mm),
            number(row.sigmas),
            share(row.pions_kept),
            share(row.muons_as_pions),
        );
    }
    out
}

/// A share in per cent, with its error.
fn share(rate: Rate) -> String {
    let both = rate.value().zip(rate.error());
    both.map_or_else(
        || "-".into(),
        |(share, error)| format!("{:.2} ± {:.2} %", 100.0 * share, 100.0 * error),
    )
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}"))
}

fn sure(value: Option<f64>, error: Option<f64>) -> String {
    let both = value.zip(error);
    both.map_or_else(
        || "-".into(),
        |(value, error)| format!("{value:.2} ± {error:.2}"),
    )
}

/// The page and its plots: names and contents. The report is that of triplets; `grid` has the rows
/// of the other method.
pub(super) fn files(report: &Report<'_>, grid: &[Row]) -> Vec<(&'static str, String)> {
    let page = format!(
        "{HEAD}\n{}\n{MEANING}\n{PLOTS}\n{TRIPLETS}\n{}\n{SHARED_RINGS}\n{}\n{MOMENTUM}\n{}\n{SEPARATION}\n{}\n{GRID}\n{}",
        inputs(report),
        table(report.rows),
        table(report.shared),
        momenta(report.momentum),
        separation(report.separation),
        table(grid),
    );
    let mut files = vec![("physics.md", page)];
    files.extend(grid_plots(report.rows));
    files.extend(momentum_plots(report));
    files
}

/// All inputs of the study.
#[expect(clippy::too_many_lines, reason = "one row of a table for each input")]
fn inputs(report: &Report<'_>) -> String {
    let model: &ModelConfig = &report.inputs.model;
    let hits = report
        .momentum
        .iter()
        .find(|row| row.particle == "electron")
        .and_then(|row| row.hits);
    let [muons, pions, electrons] = model.particles;
    let [low, high] = model.momentum;
    let fill =
        (model.cone_mm / f64::from(PITCH_MM)).powi(2) * std::f64::consts::PI / 12.0_f64.sqrt();
    let rows = [
        (
            "seed, events",
            format!("{}; {} a row", report.inputs.seed, report.inputs.events),
        ),
        (
            "photomultipliers",
            format!(
                "{PMS} on two disks, on a hexagonal lattice of {PITCH_MM} mm ([positions](formats/rich-hits.md#photomultipliers))"
            ),
        ),
        (
            "optics",
            format!(
                "focal length {FOCAL_LENGTH_MM} mm, neon of n - 1 = {REFRACTIVITY:e}; the radius is f tan(acos(1 / (n beta)))"
            ),
        ),
        (
            "light",
            format!(
                "Poisson of mean {} x {} x (sin(theta) / sin(theta of beta = 1))^2 photons, uniform in angle, of which those inside a cone are detected: {} hits on a ring at beta = 1, as positrons have in the NA62 RICH (JINST 13 (2018) P07012: some 14)",
                model.photons,
                model.quantum_efficiency,
                hits.map_or_else(|| "-".into(), |hits| format!("{hits:.1}")),
            ),
        ),
        (
            "light cones",
            format!(
                "round, {} mm in diameter: {:.3} of the plane; light between them is lost",
                model.cone_mm,
                fill.min(1.0)
            ),
        ),
        (
            "dead channels",
            format!(
                "{:.2} % of all, chosen by seed {}",
                100.0 * model.dead,
                model.dead_seed
            ),
        ),
        (
            "particles",
            format!(
                "{muons} muons, {pions} pions, {electrons} electrons, except in the tables against momentum"
            ),
        ),
        (
            "momentum",
            format!("even from {low} to {high} GeV/c, except in the tables against momentum"),
        ),
        (
            "centres",
            format!(
                "even over a circle of {ACCEPTANCE_MM} mm around the centre of a disk, either one at random"
            ),
        ),
        (
            "time",
            format!(
                "rings of one decay have one time, uniform over the slot of 25 ns; a hit's resolution is {} ns (Gaussian); a hit outside the slot is read at its edge",
                model.jitter_ns
            ),
        ),
        (
            "noise",
            format!(
                "Poisson; uniform over working photomultipliers and the slot; {} hits per hit of a ring, except in the rows that state another value",
                model.noise
            ),
        ),
        (
            "pile-up",
            format!(
                "Poisson number of other decays of the same kind, each at an independent time; halo muons: {}",
                model.halo
            ),
        ),
        (
            "rings shared by both disks",
            format!("{} of the rings, and {SHARED} in their rows", model.shared),
        ),
        (
            "two photons in one tube",
            "one hit, of the first photon drawn".into(),
        ),
    ];
    let mut out = String::from("## Inputs\n\n| input | value |\n| --- | --- |\n");
    for (name, value) in rows {
        let _ = writeln!(out, "| {name} | {value} |");
    }
    let _ = writeln!(
        out,
        "\nThe finder searches for at most {MAX_RINGS_PER_DISK} rings a disk, with {}.",
        finder(&report.inputs.finder)
    );
    out
}

/// Parameters of the finder, by name.
fn finder(cfg: &FinderConfig) -> String {
    let value = serde_json::to_value(cfg).unwrap_or_default();
    let values = value.as_object().into_iter().flatten();
    let values: Vec<_> = values
        .filter(|(name, _)| *name != "method")
        .map(|(name, value)| format!("`{name}` = {}", plain(value)))
        .collect();
    values.join(", ")
}

/// A number in short form: the configuration's numbers have single precision.
fn plain(value: &serde_json::Value) -> String {
    let float = value.as_f64().filter(|_| value.is_f64());
    float.map_or_else(|| value.to_string(), |value| (value as f32).to_string())
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

fn per_cent(rate: Rate) -> Option<f64> {
    rate.value().map(|share| 100.0 * share)
}

fn grid_plots(rows: &[Row]) -> Vec<(&'static str, String)> {
    let named = |n: u32| format!("{n} ring{}", if n == 1 { "" } else { "s" });
    let curve = |name: String, points: &dyn Fn(&Row) -> Option<(f64, f64)>| -> Curve {
        (name, rows.iter().filter_map(points).collect())
    };
    let over_rings = NOISE.map(|noise| {
        curve(format!("noise {noise}"), &|row| {
            let ours = same(row.noise, noise) && same(row.pileup, PLOT_PILEUP);
            ours.then_some((f64::from(row.rings), per_cent(row.efficiency)?))
        })
    });
    let over_noise = RINGS.map(|rings| {
        curve(named(rings), &|row| {
            let ours = row.rings == rings && same(row.pileup, PLOT_PILEUP);
            ours.then_some((row.noise, per_cent(row.fake_rate)?))
        })
    });
    let over_pileup = RINGS.map(|rings| {
        curve(named(rings), &|row| {
            let ours = row.rings == rings && same(row.noise, PLOT_NOISE);
            ours.then_some((row.pileup, per_cent(row.efficiency)?))
        })
    });
    debug_assert!(PILEUP.contains(&PLOT_PILEUP) && NOISE.contains(&PLOT_NOISE));
    let plot = |title: String, x_axis, y| Plot {
        title,
        x_axis,
        x: None,
        y,
    };
    vec![
        (
            "physics-rings.svg",
            plot(
                format!("Rings found, pile-up {PLOT_PILEUP}"),
                "rings of an event",
                [90.0, 100.0],
            )
            .svg(&over_rings),
        ),
        (
            "physics-noise.svg",
            plot(
                format!("Fake rings, pile-up {PLOT_PILEUP}"),
                "noise hits per hit of a ring",
                [0.0, 10.0],
            )
            .svg(&over_noise),
        ),
        (
            "physics-pileup.svg",
            plot(
                format!("Rings found, noise {PLOT_NOISE}"),
                "other events in the slot",
                [70.0, 100.0],
            )
            .svg(&over_pileup),
        ),
    ]
}

fn momentum_plots(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let of = |particle: &str, rate: &dyn Fn(&MomentumRow) -> Rate| {
        let rows = report
            .momentum
            .iter()
            .filter(|row| row.particle == particle);
        rows.filter_map(|row| Some((row.momentum, per_cent(rate(row))?)))
            .collect()
    };
    let found: [Curve; 4] = [
        (
            "pions, any hits".into(),
            of("pion", &|row| row.efficiency_all),
        ),
        ("pions, 5 hits".into(), of("pion", &|row| row.efficiency)),
        (
            "muons, any hits".into(),
            of("muon", &|row| row.efficiency_all),
        ),
        ("muons, 5 hits".into(), of("muon", &|row| row.efficiency)),
    ];
    let apart = |rate: &dyn Fn(&SeparationRow) -> Rate| {
        let rows = report.separation.iter();
        rows.filter_map(|row| Some((row.momentum, per_cent(rate(row))?)))
            .collect()
    };
    let separation: [Curve; 2] = [
        (
            "pions lost".into(),
            apart(&|row| {
                let Rate { part, all } = row.pions_kept;
                Rate::new(all - part, all)
            }),
        ),
        ("muons as pions".into(), apart(&|row| row.muons_as_pions)),
    ];
    let plot = |title: &str, y| Plot {
        title: title.into(),
        x_axis: "momentum, GeV/c",
        x: Some([15.0, 35.0]),
        y,
    };
    vec![
        (
            "physics-momentum.svg",
            plot("Single rings found", [50.0, 100.0]).svg(&found),
        ),
        (
            "physics-separation.svg",
            plot("Pions and muons by the radius", [0.0, 25.0]).svg(&separation),
        ),
    ]
}

const HEAD: &str = "\
# Physics: efficiency and purity of the ring finder

`pollux physics --docs docs` writes this page and its plots, from events of the emulated detector with known truth. `pollux physics --json FILE` writes the rows in machine-readable form. The emulated detector is a model of the RICH, not a simulation: its figures do not include scattered light, cross-talk, afterpulses, misaligned mirrors, inefficient tubes or tracks that the field bends.
";

/// Descriptions of the columns. A test compares their figures with the code.
const MEANING: &str = "\
## Columns

Errors are statistical, one standard deviation: half of Wilson's interval for a fraction, 1 / sqrt(2 n) for a spread.

| column | what |
| --- | --- |
| pile-up | other events in the slot of an event, on average, each at an independent time: 0.25 is 10 MHz, 1 is 40 MHz |
| noise | noise hits for each hit of a ring, anywhere on the detector and at any time in the slot of 25 ns |
| rings | rings of the event itself; each lies on one of the two disks at random |
| efficiency | found rings per reconstructible ring: at least 5 hits, centre inside the acceptance, no other centre on the disk nearer than one pitch (18 mm). Rings of other events in the slot count as well |
| 7 hits, any hits | the same for rings of at least 7 hits, and whatever the number of hits, rings without light included |
| fakes | fitted rings that belong to no true ring, per fitted ring; of those with at least 7 hits |
| clones | fitted rings that belong to the same true ring as another fit, per fitted ring |
| over limit | reconstructible rings beyond four on their disk, per reconstructible ring: the finder searches for at most four, and an event's record holds eight. They count as not found |
| radius | root mean square of the error of the radius, over the found reconstructible rings |
| bound | Cramer-Rao bound of that error, root mean square over the same rings: the minimum of an unbiased fit to the true hits of the ring, with a Gaussian error of a hit that is the root mean square of its cone (4.5 mm: a quarter of the diameter). A finder does not know the true hits, so it cannot reach the bound where rings cross |
| ratio | radius over bound. It may be a little below 1: the true error of a hit ends at the rim of its cone and is not Gaussian, and rings of a few hits on an arc, whose bound is large, count only if the fit is within 10 mm |

By distance, a fit belongs to a ring if the centres are within 20 mm and the radii within 10 mm, and each ring has one fit. By purity, it belongs to the ring whose light is in at least 70 % of its hits, wherever its circle lies; its hits are those within the finder's road of the circle and its window of time.
";

const PLOTS: &str = "\
![Rings found over the number of rings](physics-rings.svg)

![Fake rings over noise](physics-noise.svg)

![Rings found over pile-up](physics-pileup.svg)

![Single rings found over momentum](physics-momentum.svg)

![Pions lost, and muons taken for pions, over momentum](physics-separation.svg)
";

const TRIPLETS: &str = "\
## Triplets

Circles through three hits, sixteen at a time, are compared with all hits by Ptolemy's criterion; Taubin's fit refines the best, and the hits of the ring are removed (`pipelines/na62/src/rich/find.rs`). The trigger uses this method.
";

const SHARED_RINGS: &str = "\
### Rings shared by both disks

Of the tracks, 0.15 pass so near to the border of the two halves of the mirrors that light reaches both disks, at distances spread evenly up to the radius of the ring: a sixth of the light of such a ring is on the other disk, on an arc, with the same centre and radius. An arc of 5 hits or more counts as a ring by itself. The fraction is an estimate: in a disk of light of 1.4 m radius, this fraction of tracks is within 0.17 m of a straight border.
";

const MOMENTUM: &str = "\
## Single rings against momentum

One ring in an event, noise as in the inputs, no pile-up.
";

const SEPARATION: &str = "\
## Pions and muons

The fitted radius of the same rings, for a track whose momentum is known: rings below the middle of the radii of pion and muon are taken for pions. Fits are matched by purity, so that the tails of the radius are included. NA62 also cuts on the likelihood and on the mass, so these figures describe the finder's radius, not the experiment.
";

const GRID: &str = "\
## Grid of centres

For each centre on a grid, the method fills a histogram of the distances of all hits; its fullest bins are the candidates, which are refined in the same way. It searches everywhere, and takes several times as long.
";

#[cfg(test)]
mod tests {
    use pollux_na62::physics::model::TrueRing;
    use pollux_na62::physics::score::purity::PURITY;
    use pollux_na62::physics::score::{CENTRE_MM, RADIUS_MM};

    use super::*;
    use pollux_na62::physics::study::STRONG;

    #[test]
    fn the_text_has_the_figures_of_the_code() {
        for figure in [
            format!("within {CENTRE_MM} mm and the radii within {RADIUS_MM} mm"),
            format!("at least {} hits, centre", TrueRing::MIN_HITS),
            format!("at least {STRONG} hits, and whatever"),
            format!("one pitch ({PITCH_MM} mm)"),
            format!("at least {} % of its hits", 100.0 * PURITY),
            format!("({} mm: a quarter", ModelConfig::default().hit_error_mm()),
        ] {
            assert!(MEANING.contains(&figure), "{figure}");
        }
        assert_eq!(MAX_RINGS_PER_DISK, 4);
        assert!(SHARED_RINGS.contains(&format!("Of the tracks, {SHARED} pass")));
    }
}
