//! Time of the peak finder and of the statistics for one image: `cargo run --release -p
//! pollux-images --example peaks_speed`.
//!
//! Images of Poisson noise over a radial profile, 0.5 to 5 photons, with 100 spots a module; of one
//! JUNGFRAU module, and of eight. For each type of pixel and instruction set, the median of turns.

use std::time::{Duration, Instant};

use pollux_images::Shape;
use pollux_images::peaks::{PeakConfig, PeakFinder, distance_from};
use pollux_images::statistics::{ImageStatistics, SumPixel};
use pollux_pipelines::simd::Simd;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Rows of a module.
const MODULE: usize = 512;
/// Time of the turns of one measurement.
const TIME: Duration = Duration::from_millis(400);

type Failure = Box<dyn std::error::Error>;

/// Modules side by side in two columns around the beam, stacked in the image.
fn radius(modules: usize) -> impl Fn(usize, usize) -> f64 {
    let (tall, wide) = (modules.div_ceil(2), modules.min(2));
    let distance = distance_from(tall as f64 * 256.0, wide as f64 * 512.0);
    move |row, column| {
        let module = row / MODULE;
        distance(
            module / wide * MODULE + row % MODULE,
            module % wide * 1024 + column,
        )
    }
}

fn photons(modules: usize) -> Result<Vec<f64>, Failure> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let radius = radius(modules);
    let mut image = Vec::new();
    for row in 0..modules * MODULE {
        for column in 0..1024 {
            let mean = 0.5 + 4.5 * (-radius(row, column) / 150.0).exp();
            image.push(Poisson::new(mean)?.sample(&mut rng));
        }
    }
    for spot in 0..100 * modules {
        let row = spot / 100 * MODULE + rng.random_range(8..MODULE - 8);
        let column = rng.random_range(8..1016);
        for (y, x) in (0..7).flat_map(|y| (0..7).map(move |x| (y, x))) {
            let square = (f64::from(y) - 3.0).powi(2) + (f64::from(x) - 3.0).powi(2);
            let mean = 300.0 / 9.05 * (-square / 2.88).exp();
            image[(row + y as usize - 3) * 1024 + column + x as usize - 3] +=
                Poisson::new(mean)?.sample(&mut rng);
        }
    }
    Ok(image)
}

/// Median time of a call, in milliseconds.
fn median(mut call: impl FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
    let (start, mut times) = (Instant::now(), Vec::new());
    while start.elapsed() < TIME || times.len() < 5 {
        let turn = Instant::now();
        call()?;
        times.push(turn.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn measure<P: SumPixel>(
    name: &str,
    modules: usize,
    photons: &[f64],
    of: impl Fn(f64) -> P,
) -> Result<(), Failure> {
    let shape = Shape {
        rows: modules * MODULE,
        columns: 1024,
    };
    let image: Vec<P> = photons.iter().map(|&photons| of(photons)).collect();
    for simd in Simd::all() {
        let report = |what: &str, ms: f64, more: &str| {
            let rate = shape.pixels() as f64 / ms / 1e3;
            println!(
                "{shape} {name} {}: {what} {ms:.3} ms, {rate:.0} Mpixel/s{more}",
                simd.name()
            );
        };
        for ring_samples in [1024, u32::MAX] {
            let config = PeakConfig {
                ring_samples,
                ..PeakConfig::default()
            };
            let mut finder = PeakFinder::with_simd(shape, MODULE, radius(modules), config, simd)?;
            let ms = median(|| finder.find(&image).map(|_| ()).map_err(Into::into))?;
            let peaks = finder.peaks();
            let found = format!(
                "; {} peaks, {} candidates",
                peaks.list().len(),
                peaks.candidates
            );
            let what = ["peaks", "peaks, all samples"][usize::from(ring_samples == u32::MAX)];
            report(what, ms, &found);
        }
        let mut statistics = ImageStatistics::with_simd(shape, simd)?;
        let ms = median(|| statistics.add(&image).map(|_| ()).map_err(Into::into))?;
        report("statistics", ms, "");
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    for modules in [1, 8] {
        let photons = photons(modules)?;
        measure("i16", modules, &photons, |photons| photons as i16)?;
        measure("i32", modules, &photons, |photons| photons as i32)?;
        measure("f32", modules, &photons, |photons| photons as f32)?;
    }
    Ok(())
}
