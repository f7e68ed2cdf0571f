//! Integrates images in files, and prints their curves as JSON.
//!
//! usage: integrate REQUEST.json
//!
//! A request has the detector's `rows`, `columns` and `geometry`, the options `integration`, the file
//! `image`, and optionally a file `mask` and one of `variance`. Images are pixels of f32, little
//! endian, without a header; a mask has a byte for each pixel, 0 for those that count. With
//! `rounds`, `seconds` has the time of each of so many integrations, after one that warms up.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pollux_images::Shape;
use pollux_images::integrate::{Geometry, IntegrationConfig, Integrator, Variance};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    rows: usize,
    columns: usize,
    geometry: Geometry,
    #[serde(default)]
    integration: IntegrationConfig,
    image: PathBuf,
    mask: Option<PathBuf>,
    variance: Option<PathBuf>,
    #[serde(default)]
    rounds: usize,
    /// Type of the pixels during the integration: `f32`, `i32` or `i16`.
    #[serde(default)]
    pixel: PixelType,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PixelType {
    #[default]
    F32,
    I32,
    I16,
}

fn read(path: &Path) -> std::io::Result<Vec<f32>> {
    let bytes = std::fs::read(path)?;
    let (pixels, _) = bytes.as_chunks();
    Ok(pixels
        .iter()
        .map(|&pixel| f32::from_le_bytes(pixel))
        .collect())
}

fn integrate<P: pollux_images::Pixel>(
    request: &Request,
    image: &[P],
) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let shape = Shape {
        rows: request.rows,
        columns: request.columns,
    };
    let mask = request.mask.as_ref().map(std::fs::read).transpose()?;
    let mask = mask.map(|mask| mask.iter().map(|&byte| byte != 0).collect::<Vec<_>>());
    let variance = request.variance.as_deref().map(read).transpose()?;
    let variance = variance
        .as_deref()
        .map_or(Variance::Poisson, Variance::Image);
    let start = Instant::now();
    let (geometry, config) = (&request.geometry, &request.integration);
    let mut integrator = Integrator::new(shape, geometry, config, mask.as_deref())?;
    let setup = start.elapsed().as_secs_f64();
    let radial = integrator.radial().to_vec();
    integrator.integrate(image, variance)?;
    let mut seconds = Vec::with_capacity(request.rounds);
    for _ in 0..request.rounds {
        let start = Instant::now();
        integrator.integrate(image, variance)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    let curve = integrator.integrate(image, variance)?;
    Ok(json!({
        "radial": radial,
        "signal": curve.signal,
        "normalisation": curve.normalisation,
        "variance": curve.variance,
        "count": curve.count,
        "mean": curve.mean,
        "sigma": curve.sigma,
        "setup_seconds": setup,
        "seconds": seconds,
    }))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("usage: integrate REQUEST.json")?;
    let request: Request = serde_json::from_slice(&std::fs::read(path)?)?;
    let image = read(&request.image)?;
    let result = match request.pixel {
        PixelType::F32 => integrate(&request, &image)?,
        PixelType::I32 => integrate(
            &request,
            &image.iter().map(|&pixel| pixel as i32).collect::<Vec<_>>(),
        )?,
        PixelType::I16 => integrate(
            &request,
            &image.iter().map(|&pixel| pixel as i16).collect::<Vec<_>>(),
        )?,
    };
    println!("{result}");
    Ok(())
}
