//! Description of the detector and its beam, for the outputs.

use pollux_images::Shape;

use crate::image::{MAX_LOSS_WORDS, PixelType};

/// Product of Planck's constant and the speed of light, in eV angstrom (CODATA 2018).
const EV_ANGSTROM: f64 = 12_398.419_843_320_026;

/// Packets of a module, for the loss map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossLayout {
    /// Number of modules.
    pub modules: usize,
    /// Number of packets of a module.
    pub packets: usize,
    /// Number of rows of a module in a packet.
    pub rows: usize,
}

impl LossLayout {
    /// 64-bit words of a module.
    #[must_use]
    pub const fn module_words(self) -> usize {
        self.packets.div_ceil(64)
    }

    /// 64-bit words of an image.
    #[must_use]
    pub const fn words(self) -> usize {
        self.modules.saturating_mul(self.module_words())
    }
}

/// A detector and its beam. Lengths are in metres and times in seconds.
#[derive(Clone, Debug)]
pub struct Detector {
    /// Model.
    pub description: String,
    /// Serial number.
    pub serial_number: String,
    /// Shape of an image.
    pub shape: Shape,
    /// Type of its pixels.
    pub pixel: PixelType,
    /// Size of a pixel in x (along a row) and y.
    pub pixel_size: [f64; 2],
    /// From the sample to the detector.
    pub distance: f64,
    /// Where the direct beam hits the detector, in pixels: column and row.
    pub beam_center: [f64; 2],
    /// Photon energy in eV.
    pub photon_energy: f64,
    /// Material of the sensor: `Si`.
    pub sensor_material: String,
    /// Its thickness.
    pub sensor_thickness: f64,
    /// Exposure time of an image.
    pub count_time: f64,
    /// From the start of an image to that of the next.
    pub frame_time: f64,
    /// Packets of the modules.
    pub loss: LossLayout,
    /// Pixel mask in the shape of an image, as NXmx defines its bits: 0 is a good pixel.
    pub mask: Option<Vec<u32>>,
}

/// Reason why a description is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DetectorError {
    /// An image without pixels, or with more than an output can describe.
    #[error("an image of {0} pixels: give 1 to 65536 rows and columns")]
    Shape(Shape),
    /// A quantity that is not above zero.
    #[error("{name} = {value}: give a number above 0")]
    Quantity {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A quantity that is no number.
    #[error("{name} = {value}: give a finite number")]
    NoNumber {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A loss map without packets, or with too many.
    #[error(
        "a loss map of {} modules with {} packets: give 1 packet or more, and at most {MAX_LOSS_WORDS} \
         words of 64 packets in all modules", .0.modules, .0.packets
    )]
    Loss(LossLayout),
    /// A mask of another shape.
    #[error("a mask of {given} pixels for an image of {shape}: give {} pixels", shape.pixels())]
    Mask {
        /// Pixels of the mask.
        given: usize,
        /// Shape of the image.
        shape: Shape,
    },
}

impl Detector {
    /// Wavelength in angstrom.
    #[must_use]
    pub fn wavelength(&self) -> f64 {
        EV_ANGSTROM / self.photon_energy
    }

    /// Bytes of an image that is not compressed.
    #[must_use]
    pub const fn image_bytes(&self) -> usize {
        self.shape.pixels() * self.pixel.bytes()
    }

    /// Checks the description.
    ///
    /// # Errors
    /// What an output cannot describe.
    pub fn check(&self) -> Result<(), DetectorError> {
        const SIDE: usize = 1 << 16;
        let shape = self.shape;
        if ![shape.rows, shape.columns]
            .iter()
            .all(|n| (1..=SIDE).contains(n))
        {
            return Err(DetectorError::Shape(shape));
        }
        let [x, y] = self.pixel_size;
        for (name, value) in [
            ("pixel size in x", x),
            ("pixel size in y", y),
            ("distance", self.distance),
            ("photon energy", self.photon_energy),
            ("sensor thickness", self.sensor_thickness),
            ("count time", self.count_time),
            ("frame time", self.frame_time),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(DetectorError::Quantity { name, value });
            }
        }
        let [x, y] = self.beam_center;
        for (name, value) in [("beam centre in x", x), ("beam centre in y", y)] {
            if !value.is_finite() {
                return Err(DetectorError::NoNumber { name, value });
            }
        }
        let loss = self.loss;
        if loss.words() == 0 || loss.words() > MAX_LOSS_WORDS || loss.rows == 0 {
            return Err(DetectorError::Loss(loss));
        }
        match &self.mask {
            Some(mask) if mask.len() != shape.pixels() => Err(DetectorError::Mask {
                given: mask.len(),
                shape,
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    pub(crate) fn detector(rows: usize, columns: usize, pixel: PixelType) -> Detector {
        Detector {
            description: "JUNGFRAU".into(),
            serial_number: "5".into(),
            shape: Shape { rows, columns },
            pixel,
            pixel_size: [75e-6, 75e-6],
            distance: 0.1,
            beam_center: [511.5, 255.5],
            photon_energy: 12_400.0,
            sensor_material: "Si".into(),
            sensor_thickness: 320e-6,
            count_time: 1e-5,
            frame_time: 5e-4,
            loss: LossLayout {
                modules: 1,
                packets: 128,
                rows: 4,
            },
            mask: None,
        }
    }

    #[test]
    fn a_description_that_no_output_can_write_is_refused() {
        type Change = fn(&mut Detector);
        let good = detector(4, 6, PixelType::I16);
        assert_eq!(good.check(), Ok(()));
        assert!((good.wavelength() - 0.999_872_5).abs() < 1e-6);
        let wrong: [(&str, Change); 7] = [
            ("0 x 6 pixels", |it| it.shape.rows = 0),
            ("65537", |it| it.shape.columns = 65_537),
            ("distance = -1", |it| it.distance = -1.0),
            ("photon energy = NaN", |it| it.photon_energy = f64::NAN),
            ("beam centre in y = inf", |it| {
                it.beam_center[1] = f64::INFINITY;
            }),
            ("33 modules with 128", |it| it.loss.modules = 33),
            ("a mask of 23 pixels for an image of 4 x 6: give 24", |it| {
                it.mask = Some(vec![0; 23]);
            }),
        ];
        for (message, change) in wrong {
            let mut detector = good.clone();
            change(&mut detector);
            let error = detector.check().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
