//! Description of the detector and the run, for files and streams.

use crate::Detector;
use crate::detector::LossLayout;
use crate::image::PixelType;

use super::plan::Plan;

/// Thickness of the sensor of the detectors, in m.
const SENSOR: f64 = 320e-6;

/// Bit of a bad pixel in the mask of NeXus (NXmx): dead.
const DEAD: u32 = 1 << 1;

/// The detector of a run; `bad` is true for its bad pixels, if they are known.
pub fn detector(plan: &Plan, pixel: PixelType, bad: &[bool]) -> Detector {
    let (layout, beam) = (&plan.layout, &plan.config.beam);
    let shape = layout.image();
    let middle = |side: usize| (side as f64 - 1.0) / 2.0;
    let (row, column) = beam
        .centre
        .unwrap_or((middle(shape.rows), middle(shape.columns)));
    Detector {
        description: layout.detector().to_string(),
        serial_number: String::new(),
        shape,
        pixel,
        pixel_size: [beam.pixel_m; 2],
        distance: beam.distance_m,
        beam_center: [column, row],
        photon_energy: beam.photon_energy_ev,
        sensor_material: "Si".into(),
        sensor_thickness: SENSOR,
        count_time: beam.count_time_s,
        frame_time: beam.frame_time_s,
        loss: LossLayout {
            modules: layout.modules(),
            packets: layout.module_packets(),
            rows: layout.packet_rows(0..1).len(),
        },
        mask: (!bad.is_empty())
            .then(|| bad.iter().map(|&bad| if bad { DEAD } else { 0 }).collect()),
    }
}

/// The file of a run.
///
/// # Errors
/// A file that cannot be created, or a configuration that cannot be written down.
#[cfg(feature = "hdf5")]
pub fn file<P: pollux_images::receive::Stored>(
    plan: &Plan,
    output: &pollux_app::Output,
    (detector, findings): (&Detector, &super::stages::Findings),
    summary: crate::nexus::Summary,
    queue: usize,
) -> anyhow::Result<(
    crate::nexus::Recorder,
    crate::nexus::FileQueue<super::outputs::Bytes<P>>,
)> {
    use crate::nexus::{Compression, FileInfo, FindingsInfo, Recorder, RecorderConfig};
    use anyhow::Context as _;

    let stages = &plan.config.stage;
    let compresses =
        |stage: &toml::Table| stage.get("name").and_then(toml::Value::as_str) == Some("compress");
    let files = plan.config.calibration.iter().flat_map(|calibration| {
        let name = |what: &str, n: usize| format!("{what}_g{n}");
        let pedestals = calibration.pedestals.iter().enumerate();
        let gains = calibration.gains.iter().enumerate();
        let pedestals = pedestals.map(move |(n, path)| (name("pedestal", n), path));
        let gains = gains.map(move |(n, path)| (name("gain", n), path));
        let mask = calibration
            .mask
            .iter()
            .map(|path| ("mask".to_owned(), path));
        pedestals.chain(gains).chain(mask)
    });
    let info = FileInfo {
        program: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        title: format!("Images of {}", plan.layout.detector()),
        run: None,
        configuration: toml::to_string(&plan.config).context("the configuration")?,
        calibration: files
            .map(|(name, path)| (name, path.display().to_string()))
            .collect(),
        detector: detector.clone(),
        compression: if stages.iter().any(compresses) {
            Compression::BitshuffleLz4
        } else {
            Compression::None
        },
        findings: FindingsInfo {
            max_peaks: Some(findings.capacity.peaks).filter(|&most| most > 0),
            axis: findings.axis.clone(),
        },
    };
    let config = RecorderConfig {
        queue,
        loops: plan.cpus(),
        rotation: plan.options.rotation.rotation()?,
    };
    Recorder::start(output, info, summary, config)
}
