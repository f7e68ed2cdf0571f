//! Finds Bragg peaks in files, and prints them as JSON, one line for each file.
//!
//! usage: peaks REQUEST.json FILE...
//!
//! A request has the images' `rows` and `columns`, the `module_rows`, the beam's `centre` (row and
//! column), and optionally the options of the finder, `config`. Files have photons of f32, little
//! endian, without a header.

use std::path::Path;

use pollux_images::Shape;
use pollux_images::peaks::{PeakConfig, PeakFinder, distance_from};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    rows: usize,
    columns: usize,
    module_rows: usize,
    centre: (f64, f64),
    #[serde(default)]
    config: PeakConfig,
}

fn read(path: &Path) -> std::io::Result<Vec<f32>> {
    let bytes = std::fs::read(path)?;
    let (pixels, _) = bytes.as_chunks();
    Ok(pixels
        .iter()
        .map(|&pixel| f32::from_le_bytes(pixel))
        .collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let request = arguments
        .next()
        .ok_or("usage: peaks REQUEST.json FILE...")?;
    let request: Request = serde_json::from_slice(&std::fs::read(request)?)?;
    let shape = Shape {
        rows: request.rows,
        columns: request.columns,
    };
    let radius = distance_from(request.centre.0, request.centre.1);
    let mut finder = PeakFinder::new(shape, request.module_rows, radius, request.config)?;
    for file in arguments {
        let peaks = finder.find(&read(Path::new(&file))?)?;
        println!(
            "{}",
            json!({ "peaks": peaks.list(), "beyond": peaks.beyond, "candidates": peaks.candidates })
        );
    }
    Ok(())
}
