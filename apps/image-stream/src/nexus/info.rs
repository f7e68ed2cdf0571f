//! What an image file says about its run and its detector.

use std::time::SystemTime;

use hdf5_metno::{Dataset, File, Group, Result};
use ndarray::ArrayView2;

use super::column::{attribute, describe, group, number_attribute, number_set, text_set};
use super::findings::FindingsInfo;
use crate::detector::Detector;

/// Version of the layout, in the attribute `pollux_version` of the root. It grows with every change
/// that a reader could notice.
const VERSION: u32 = 2;

/// Compression of dense images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// Bitshuffle and LZ4: HDF5 filter 32008. An image that does not become smaller can be written
    /// raw.
    BitshuffleLz4,
}

/// Description of a run and its detector, for its image files.
#[derive(Clone, Debug)]
pub struct FileInfo {
    /// Name of the program.
    pub program: String,
    /// Its version.
    pub version: String,
    /// Title of the run.
    pub title: String,
    /// Number of the run.
    pub run: Option<u32>,
    /// Configuration of the program, in TOML.
    pub configuration: String,
    /// Calibration by name: files of pedestals, gains and masks.
    pub calibration: Vec<(String, String)>,
    /// The detector.
    pub detector: Detector,
    /// Compression of dense images.
    pub compression: Compression,
    /// What stages find in the images.
    pub findings: FindingsInfo,
}

/// A time as NeXus writes it: ISO 8601, in UTC.
pub(super) fn iso(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH)).to_string()
}

impl FileInfo {
    /// Attributes of the root, and the entry.
    pub(super) fn write_entry(&self, file: &File, start: SystemTime) -> Result<Group> {
        attribute(file, "NX_class", "NXroot")?;
        attribute(file, "default", "entry")?;
        attribute(
            file,
            "creator",
            &format!("{} {}", self.program, self.version),
        )?;
        attribute(file, "file_time", &iso(start))?;
        number_attribute(file, "pollux_version", VERSION)?;
        let entry = group(file, "entry", "NXentry")?;
        attribute(&entry, "default", "data")?;
        if let Some(run) = self.run {
            number_attribute(&entry, "run_number", run)?;
        }
        text_set(&entry, "title", &self.title)?;
        text_set(&entry, "start_time", &iso(start))?;
        let program = text_set(&entry, "program_name", &self.program)?;
        attribute(&program, "version", &self.version)?;
        let note = group(&entry, "configuration", "NXnote")?;
        text_set(&note, "type", "application/toml")?;
        text_set(&note, "data", &self.configuration)?;
        Ok(entry)
    }

    /// The instrument: its beam and its detector.
    pub(super) fn write_instrument(&self, entry: &Group) -> Result<()> {
        let detector = &self.detector;
        let instrument = group(entry, "instrument", "NXinstrument")?;
        let beam = group(&instrument, "beam", "NXbeam")?;
        number_set(&beam, "incident_energy", detector.photon_energy, "eV")?;
        number_set(
            &beam,
            "incident_wavelength",
            detector.wavelength(),
            "angstrom",
        )?;
        let at = &group(&instrument, "detector", "NXdetector")?;
        text_set(at, "description", &detector.description)?;
        text_set(at, "serial_number", &detector.serial_number)?;
        text_set(at, "sensor_material", &detector.sensor_material)?;
        for (name, value, units) in [
            ("x_pixel_size", detector.pixel_size[0], "m"),
            ("y_pixel_size", detector.pixel_size[1], "m"),
            ("distance", detector.distance, "m"),
            ("beam_center_x", detector.beam_center[0], "pixel"),
            ("beam_center_y", detector.beam_center[1], "pixel"),
            ("sensor_thickness", detector.sensor_thickness, "m"),
            ("count_time", detector.count_time, "s"),
            ("frame_time", detector.frame_time, "s"),
        ] {
            number_set(at, name, value, units)?;
        }
        if let Some(largest) = detector.pixel.largest() {
            number_set(at, "saturation_value", largest, "")?;
        }
        if let Some(mask) = &detector.mask {
            let set = pixel_mask(at, detector, mask)?;
            describe(&set, "", "0 is a good pixel; bits as in NXmx")?;
        }
        let calibration = group(at, "calibration", "NXcollection")?;
        for (name, value) in &self.calibration {
            text_set(&calibration, name, value)?;
        }
        Ok(())
    }
}

fn pixel_mask(at: &Group, detector: &Detector, mask: &[u32]) -> Result<Dataset> {
    let shape = (detector.shape.rows, detector.shape.columns);
    let mask = ArrayView2::from_shape(shape, mask)?;
    at.new_dataset_builder()
        .with_data(mask)
        .create("pixel_mask")
}
