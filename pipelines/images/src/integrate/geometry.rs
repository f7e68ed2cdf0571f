//! Position of a detector, and the coordinates of its pixels.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

/// Position of a flat detector, as pyFAI's PONI files have it: by the point of normal incidence
/// (PONI), which is the foot of the perpendicular from the sample to the plane of the detector.
///
/// Axis 1 goes along the columns of the image (slow, the row's number grows), axis 2 along its rows
/// (fast), axis 3 along the beam. Pixel (0, 0) has a corner at the origin of the PONI's coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Distance of the sample from the PONI, in m.
    pub dist: f64,
    /// Coordinate of the PONI along axis 1, in m.
    pub poni1: f64,
    /// Coordinate of the PONI along axis 2, in m.
    pub poni2: f64,
    /// Rotation about axis 1, left-handed, in rad.
    #[serde(default)]
    pub rot1: f64,
    /// Rotation about axis 2, left-handed, in rad.
    #[serde(default)]
    pub rot2: f64,
    /// Rotation about axis 3, right-handed, in rad.
    #[serde(default)]
    pub rot3: f64,
    /// Size of a pixel along axis 1, in m.
    pub pixel1: f64,
    /// Size of a pixel along axis 2, in m.
    pub pixel2: f64,
    /// Wavelength in m; only needed for q.
    #[serde(default)]
    pub wavelength: Option<f64>,
}

/// Radial coordinate of a curve, by pyFAI's name for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RadialUnit {
    /// Scattering vector q = 4 pi / wavelength sin(2theta / 2), in 1/nm.
    #[default]
    #[serde(rename = "q_nm^-1")]
    QPerNm,
    /// Scattering vector, in 1/angstrom.
    #[serde(rename = "q_A^-1")]
    QPerAngstrom,
    /// Scattering angle 2theta, in rad.
    #[serde(rename = "2th_rad")]
    TwoThetaRad,
    /// Scattering angle 2theta, in degrees.
    #[serde(rename = "2th_deg")]
    TwoThetaDeg,
    /// Distance from the beam, perpendicular to it, in mm.
    #[serde(rename = "r_mm")]
    RadiusMm,
}

impl RadialUnit {
    /// Whether the wavelength is needed.
    #[must_use]
    pub const fn needs_wavelength(self) -> bool {
        matches!(self, Self::QPerNm | Self::QPerAngstrom)
    }

    /// Its name in configurations, which is pyFAI's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QPerNm => "q_nm^-1",
            Self::QPerAngstrom => "q_A^-1",
            Self::TwoThetaRad => "2th_rad",
            Self::TwoThetaDeg => "2th_deg",
            Self::RadiusMm => "r_mm",
        }
    }

    /// Value in this unit of 1 in the unit of [`Placed::radial`].
    pub(super) fn scale(self) -> f64 {
        match self {
            Self::QPerNm | Self::TwoThetaRad => 1.0,
            Self::QPerAngstrom => 0.1,
            Self::TwoThetaDeg => 180.0 / PI,
            Self::RadiusMm => 1000.0,
        }
    }
}

/// A detector with the sines and cosines of its rotations.
pub(super) struct Placed {
    geometry: Geometry,
    /// Rows: axes 1, 2 and 3 of the laboratory; columns: those of the detector.
    rotation: [[f64; 3]; 3],
}

impl Placed {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let (s1, c1) = geometry.rot1.sin_cos();
        let (s2, c2) = geometry.rot2.sin_cos();
        let (s3, c3) = geometry.rot3.sin_cos();
        Self {
            geometry: *geometry,
            // Rotation 3 after 2 after 1.
            rotation: [
                [c2 * c3, c3 * s1 * s2 - c1 * s3, -(c1 * c3 * s2 + s1 * s3)],
                [c2 * s3, c1 * c3 + s1 * s2 * s3, c3 * s1 - c1 * s2 * s3],
                [s2, -c2 * s1, c1 * c2],
            ],
        }
    }

    /// Position relative to the sample, in m, of a point of the detector, in pixels.
    pub(super) fn position(&self, row: f64, column: f64) -> [f64; 3] {
        let [p1, p2] = self.relative_to_poni(row, column);
        let dist = self.geometry.dist;
        self.rotation
            .map(|[r1, r2, r3]| p1 * r1 + p2 * r2 + dist * r3)
    }

    fn relative_to_poni(&self, row: f64, column: f64) -> [f64; 2] {
        [
            row * self.geometry.pixel1 - self.geometry.poni1,
            column * self.geometry.pixel2 - self.geometry.poni2,
        ]
    }

    /// Radial coordinate of a position: 1/nm, rad or m. q is infinite without a wavelength.
    pub(super) fn radial(&self, unit: RadialUnit, [y, x, z]: [f64; 3]) -> f64 {
        let radius = (x * x + y * y).sqrt();
        match unit {
            RadialUnit::RadiusMm => radius,
            RadialUnit::TwoThetaRad | RadialUnit::TwoThetaDeg => radius.atan2(z),
            RadialUnit::QPerNm | RadialUnit::QPerAngstrom => {
                let wavelength = self.geometry.wavelength.unwrap_or(0.0);
                4.0e-9 * PI * (radius.atan2(z) / 2.0).sin() / wavelength
            }
        }
    }

    /// Solid angle of a pixel there, relative to one at the PONI: the cube of the cosine of the
    /// angle of incidence.
    pub(super) fn solid_angle(&self, row: f64, column: f64) -> f64 {
        let [p1, p2] = self.relative_to_poni(row, column);
        let dist = self.geometry.dist;
        (dist / (dist * dist + (p1 * p1 + p2 * p2)).sqrt()).powi(3)
    }
}

/// Intensity that an electron scatters to a position, relative to the forward direction, by the
/// polarisation of the beam. The factor is (Ih - Iv) / (Ih + Iv): 1 if the beam is polarised along
/// axis 2, -1 if along axis 1, 0 if it is not polarised.
pub(super) fn polarisation(factor: f64, [y, x, z]: [f64; 3]) -> f64 {
    let radius = (x * x + y * y).sqrt();
    let cos2 = radius.atan2(z).cos().powi(2);
    0.5 * (1.0 + cos2 - factor * (2.0 * y.atan2(x)).cos() * (1.0 - cos2))
}
