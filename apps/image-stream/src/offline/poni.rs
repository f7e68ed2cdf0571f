//! Geometry from a PONI file, as pyFAI writes it (versions 1 and 2).

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use pollux_images::Shape;
use pollux_images::integrate::Geometry;

/// Reads a PONI file for images of a shape: lines of `Name: value`, in m and rad. Lines with `#` are
/// comments.
///
/// # Errors
/// The file cannot be read, lacks a value, has one that is not a number, or is of images of another
/// shape.
pub fn read(path: &Path, shape: Shape) -> Result<Geometry> {
    let text = pollux_app::read_text(path).with_context(|| path.display().to_string())?;
    parse(&text, shape).with_context(|| path.display().to_string())
}

fn parse(text: &str, shape: Shape) -> Result<Geometry> {
    // A later entry replaces an earlier one: pyFAI appends to the file.
    let entry = |name: &str| {
        let lines = text.lines().rev().filter(|line| !line.starts_with('#'));
        let entries = lines.filter_map(|line| line.split_once(':'));
        let mut named = entries.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.trim())
    };
    let number = |name: &str, value: &str| {
        let number = value.parse::<f64>();
        number.with_context(|| format!("{name} is {value}: it must be a number"))
    };
    let optional = |name: &str| entry(name).map(|value| number(name, value)).transpose();
    let required = |name: &str| optional(name)?.with_context(|| format!("no `{name}:`"));
    let config = entry("Detector_config").unwrap_or("{}");
    let config: serde_json::Value = serde_json::from_str(config).context("Detector_config")?;
    // 3 is rows from the bottom, columns from the left: the order of the file.
    let orientation = &config["orientation"];
    ensure!(
        orientation.is_null() || orientation.as_f64() == Some(3.0),
        "orientation is {orientation} in Detector_config: only 3, pyFAI's default, is read"
    );
    let (Shape { rows, columns }, largest) = (shape, &config["max_shape"]);
    ensure!(
        largest.is_null() || *largest == serde_json::json!([rows, columns]),
        "max_shape is {largest} in Detector_config, for images of {shape}: give the PONI file of this \
         detector, or --shape"
    );
    let pixel = |name: &str, inside: &str| {
        if let Some(size) = optional(name)? {
            return Ok(size);
        }
        // Version 2: `Detector_config: {"pixel1": 7.5e-05, "pixel2": 7.5e-05, ...}`.
        config[inside]
            .as_f64()
            .with_context(|| format!("neither `{name}:` nor `{inside}` in Detector_config"))
    };
    Ok(Geometry {
        dist: required("Distance")?,
        poni1: required("Poni1")?,
        poni2: required("Poni2")?,
        rot1: optional("Rot1")?.unwrap_or(0.0),
        rot2: optional("Rot2")?.unwrap_or(0.0),
        rot3: optional("Rot3")?.unwrap_or(0.0),
        pixel1: pixel("PixelSize1", "pixel1")?,
        pixel2: pixel("PixelSize2", "pixel2")?,
        wavelength: optional("Wavelength")?,
    })
}

#[cfg(test)]
mod tests {
    use pollux_images::Shape;
    use pollux_images::integrate::Geometry;

    const BODY: &str = "Distance: 0.15\nPoni1: 0.02\nPoni2: 0.04\nRot1: 0.1\nRot2: 0\nRot3: 0\nWavelength: 1e-10\n";

    fn parse(text: &str) -> anyhow::Result<Geometry> {
        super::parse(text, Shape::JUNGFRAU_MODULE)
    }

    #[test]
    fn both_versions_are_read() {
        let first = format!("# comment: 1\nPixelSize1: 7.5e-05\nPixelSize2: 8e-05\n{BODY}");
        let second = format!(
            "poni_version: 2\nDetector: Detector\nDetector_config: {{\"pixel1\": 7.5e-05, \"pixel2\": 8e-05}}\n{BODY}"
        );
        for text in [first, second] {
            let geometry = parse(&text).ok();
            let read = geometry.map(|g| (g.dist, g.pixel1, g.pixel2, g.rot1, g.wavelength));
            assert_eq!(read, Some((0.15, 7.5e-5, 8e-5, 0.1, Some(1e-10))));
        }
    }

    #[test]
    fn another_orientation_is_refused() {
        let text = |orientation: &str| {
            format!(
                "Detector_config: {{\"pixel1\": 1e-4, \"pixel2\": 1e-4, \"orientation\": {orientation}}}\n{BODY}"
            )
        };
        for known in ["3", "3.0", "null"] {
            assert!(parse(&text(known)).is_ok(), "{known}");
        }
        for other in ["1", "2.0", "3.5", "\"2\"", "\"3\"", "[3]"] {
            let error = parse(&text(other))
                .map(|_| ())
                .map_err(|error| error.to_string());
            let expected = format!("orientation is {other} in");
            assert!(
                error.is_err_and(|error| error.starts_with(&expected)),
                "{other}"
            );
        }
    }

    #[test]
    fn a_detector_of_another_shape_is_refused() {
        let text = |largest: &str| {
            format!(
                "Detector_config: {{\"pixel1\": 1e-4, \"pixel2\": 1e-4, \"max_shape\": {largest}}}\n{BODY}"
            )
        };
        for known in ["[512, 1024]", "null"] {
            assert!(parse(&text(known)).is_ok(), "{known}");
        }
        for other in ["[1024, 512]", "[512]", "\"512x1024\""] {
            let error = parse(&text(other))
                .map(|_| ())
                .map_err(|error| error.to_string());
            let wrong =
                |error: String| error.starts_with("max_shape is") && error.contains("512 x 1024");
            assert!(error.is_err_and(wrong), "{other}");
        }
    }

    #[test]
    fn the_last_entry_counts() {
        let text = format!("PixelSize1: 1e-4\nPixelSize2: 1e-4\n{BODY}Distance: 0.2\n");
        assert_eq!(parse(&text).ok().map(|g| g.dist), Some(0.2));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let error = |text: &str| parse(text).map_err(|error| format!("{error:#}")).err();
        assert_eq!(error("").as_deref(), Some("no `Distance:`"));
        let text = format!("{BODY}Rot3: left");
        let wrong = error(&text).unwrap_or_default();
        assert!(
            wrong.starts_with("Rot3 is left: it must be a number"),
            "{wrong}"
        );
        let pixels = error(BODY).unwrap_or_default();
        assert!(
            pixels.contains("neither `PixelSize1:` nor `pixel1`"),
            "{pixels}"
        );
        let broken = error(&format!("{BODY}Detector_config: {{"));
        assert!(broken.is_some_and(|error| error.starts_with("Detector_config")));
    }
}
