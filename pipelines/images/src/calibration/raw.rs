//! Raw pixels of a JUNGFRAU: gain in bits 15 and 14, ADU in bits 13 to 0.

use std::fmt;

/// The bits of the ADU.
pub(crate) const ADU: u16 = 0x3FFF;
/// Gain bits that no gain has, without ADU.
pub(crate) const NO_GAIN: u16 = 0x8000;
/// The gain bits of G2, and a pixel that has reached the end of the range, at 0 ADU.
pub(crate) const SATURATED: u16 = 0xC000;
/// Two codes of the detector for a pixel without a value.
pub(crate) const ERRORS: [u16; 2] = [0x4000, 0xFFFF];

/// Gain that a pixel has chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// The highest: single photons are seen.
    G0,
    /// The middle one.
    G1,
    /// The lowest.
    G2,
}

impl Gain {
    /// All, the highest first.
    pub const ALL: [Self; 3] = [Self::G0, Self::G1, Self::G2];
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Meaning of a raw pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Charge at a gain, in ADU.
    Adu(Gain, u16),
    /// More charge than can be measured (0xC000).
    Saturated,
    /// An error code (0x4000, 0xFFFF), or gain bits that no gain has (10).
    Invalid,
}

impl From<u16> for Reading {
    #[inline(always)]
    fn from(raw: u16) -> Self {
        let adu = raw & ADU;
        match raw >> 14 {
            _ if raw == SATURATED => Self::Saturated,
            _ if ERRORS.contains(&raw) => Self::Invalid,
            0 => Self::Adu(Gain::G0, adu),
            1 => Self::Adu(Gain::G1, adu),
            3 => Self::Adu(Gain::G2, adu),
            _ => Self::Invalid,
        }
    }
}
