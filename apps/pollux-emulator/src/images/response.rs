//! Response of a module: the raw values that its pixels give for a number of photons.
//!
//! A pixel of JUNGFRAU integrates charge, and switches from gain G0 to G1 and G2 as the charge grows.
//! Its 16 bits are the gain (00, 01, 11) and 14 bits of ADC units. G1 and G2 are negative: more charge
//! gives a smaller value. Pedestals, gains, their spreads and the ADC values at which the gain switches
//! are those of a recorded module; the noise is some 14 ADC units in G0.

use pollux_images::Shape;
use pollux_images::formats::Detector;
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::config::ImagesConfig;
use super::random::{Purpose, generator};

/// Number of gains.
pub const GAINS: usize = 3;
/// Rows and columns of a readout chip of JUNGFRAU.
const CHIP: usize = 256;
/// Largest value of the ADC.
const ADC_MAX: f32 = 16_383.0;
/// Value in G0 from which a pixel switches to G1: some 22 photons of 12.4 keV.
const SWITCH_G0: f32 = 13_500.0;
/// Value in G1 down to which a pixel does not switch to G2: some 650 photons of 12.4 keV.
const SWITCH_G1: f32 = 2_000.0;
/// Largest count of a pixel of EIGER with 16 bits: its counters have 12.
const COUNTER_MAX: u32 = 4_095;
/// Raw value of a saturated pixel: G2, and no charge left to measure.
const SATURATED: u16 = 0xc000;
/// Raw values of bad pixels: a dead one, one without charge left in G0, and the two error codes.
const BAD: [u16; 4] = [0, 0x3fff, 0xffff, 0x4000];
/// Codes of the gains in the two highest bits of a raw value.
const CODES: [u16; GAINS] = [0, 1 << 14, 3 << 14];

/// A gain of a module: means over its pixels and standard deviations.
struct Gain {
    /// Pedestal in ADC units.
    pedestal: f32,
    /// Deviation of the mean pedestal of a chip.
    chip: f32,
    /// Deviation of the pedestal of a pixel from that of its chip.
    pixel: f32,
    /// ADC units per keV.
    per_kev: f32,
    /// Relative deviation of the gain of a pixel.
    spread: f32,
    /// Electronic noise in ADC units.
    noise: f32,
}

const JUNGFRAU: [Gain; GAINS] = [
    Gain {
        pedestal: 2_450.0,
        chip: 90.0,
        pixel: 140.0,
        per_kev: 40.86,
        spread: 0.01,
        noise: 14.0,
    },
    Gain {
        pedestal: 13_590.0,
        chip: 20.0,
        pixel: 98.0,
        per_kev: -1.449,
        spread: 0.015,
        noise: 2.0,
    },
    Gain {
        pedestal: 14_100.0,
        chip: 25.0,
        pixel: 98.0,
        per_kev: -0.1153,
        spread: 0.015,
        noise: 2.0,
    },
];

/// How the pixels of a detector measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readout {
    /// They integrate charge, with three gains.
    Switching,
    /// They integrate charge, with G0 alone.
    Integrating,
    /// They count photons.
    Counting,
}

impl Readout {
    /// That of a detector.
    #[must_use]
    pub fn of(detector: Detector) -> Self {
        match detector {
            Detector::Eiger => Self::Counting,
            Detector::Moench => Self::Integrating,
            _ => Self::Switching,
        }
    }

    /// Number of gains; 0 for a detector that counts and needs no calibration but its mask.
    #[must_use]
    pub fn gains(self) -> usize {
        match self {
            Self::Switching => GAINS,
            Self::Integrating => 1,
            Self::Counting => 0,
        }
    }
}

/// The pixels of a module, in the order of its rows.
#[derive(Clone, Debug)]
pub struct Response {
    readout: Readout,
    pedestals: Vec<Vec<f32>>,
    gains: Vec<Vec<f32>>,
    /// Raw values of bad pixels, in the order of the pixels.
    bad: Vec<(usize, u16)>,
    pixels: usize,
}

impl Response {
    /// The pixels of a module of a configuration that is valid.
    #[must_use]
    pub fn new(config: &ImagesConfig, shape: Shape, module: usize) -> Self {
        let readout = Readout::of(config.detector);
        let mut rng = generator(config.seed, Purpose::Response, module as u64, 0);
        let kev = config.pattern.photon_kev as f32;
        let (mut pedestals, mut gains) = (Vec::new(), Vec::new());
        let chips = shape.columns.div_ceil(CHIP);
        for gain in &JUNGFRAU[..readout.gains()] {
            let means: Vec<f32> = (0..shape.rows.div_ceil(CHIP) * chips)
                .map(|_| gain.pedestal + gain.chip * normal(&mut rng))
                .collect();
            let chip = |pixel: usize| {
                let (row, column) = (pixel / shape.columns, pixel % shape.columns);
                means[row / CHIP * chips + column / CHIP]
            };
            let pedestal = (0..shape.pixels()).map(|n| chip(n) + gain.pixel * normal(&mut rng));
            pedestals.push(pedestal.collect());
            let factor = |_| kev * gain.per_kev * (1.0 + gain.spread * normal(&mut rng));
            gains.push((0..shape.pixels()).map(factor).collect());
        }
        Self {
            readout,
            pedestals,
            gains,
            bad: bad_pixels(config.pattern.bad_pixels as usize, shape.pixels(), &mut rng),
            pixels: shape.pixels(),
        }
    }

    /// How its pixels measure.
    #[must_use]
    pub fn readout(&self) -> Readout {
        self.readout
    }

    /// Pedestals in a gain, in ADC units; empty where the detector does not have it.
    #[must_use]
    pub fn pedestals(&self, gain: usize) -> &[f32] {
        self.pedestals.get(gain).map_or(&[], Vec::as_slice)
    }

    /// Gain factors of a gain, in ADC units per photon; empty where the detector does not have it.
    #[must_use]
    pub fn gains(&self, gain: usize) -> &[f32] {
        self.gains.get(gain).map_or(&[], Vec::as_slice)
    }

    /// One byte a pixel: 1 for a bad one, 0 for others.
    #[must_use]
    pub fn mask(&self) -> Vec<u8> {
        let mut mask = vec![0; self.pixels];
        self.bad.iter().for_each(|&(pixel, _)| mask[pixel] = 1);
        mask
    }

    /// Reads the pixels out: the raw value of each for its number of photons, with noise.
    pub fn read(&self, photons: &[u32], rng: &mut Xoshiro256PlusPlus, raw: &mut [u16]) {
        match self.readout {
            Readout::Counting => {
                let pixels = raw.iter_mut().zip(photons);
                pixels.for_each(|(raw, &photons)| *raw = photons.min(COUNTER_MAX) as u16);
            }
            Readout::Integrating => {
                for (pixel, (raw, &photons)) in raw.iter_mut().zip(photons).enumerate() {
                    *raw = self.adc(0, pixel, photons, rng).clamp(0.0, ADC_MAX) as u16;
                }
            }
            Readout::Switching => {
                for (pixel, (raw, &photons)) in raw.iter_mut().zip(photons).enumerate() {
                    *raw = self.switching(pixel, photons, rng);
                }
            }
        }
        for &(pixel, code) in &self.bad {
            if let Some(raw) = raw.get_mut(pixel) {
                *raw = code;
            }
        }
    }

    /// Raw value of a pixel with three gains.
    fn switching(&self, pixel: usize, photons: u32, rng: &mut Xoshiro256PlusPlus) -> u16 {
        let first = self.adc(0, pixel, photons, rng);
        if first < SWITCH_G0 {
            return CODES[0] | first.max(0.0) as u16;
        }
        let second = self.adc(1, pixel, photons, rng);
        if second >= SWITCH_G1 {
            return CODES[1] | second.min(ADC_MAX) as u16;
        }
        let third = self.adc(2, pixel, photons, rng);
        if third < 1.0 {
            return SATURATED;
        }
        // The largest value is an error code.
        CODES[2] | third.min(ADC_MAX - 1.0) as u16
    }

    /// Value of the ADC in a gain, rounded and not yet limited to its range.
    fn adc(&self, gain: usize, pixel: usize, photons: u32, rng: &mut Xoshiro256PlusPlus) -> f32 {
        let signal = self.gains[gain][pixel] * photons as f32;
        let noise = JUNGFRAU[gain].noise * normal(rng);
        (self.pedestals[gain][pixel] + signal + noise).round()
    }
}

fn normal(rng: &mut Xoshiro256PlusPlus) -> f32 {
    StandardNormal.sample(rng)
}

/// Draws so many different pixels of `pixels`, more than there are bad ones.
fn bad_pixels(count: usize, pixels: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<(usize, u16)> {
    let mut is_bad = vec![false; pixels];
    let mut left = count.min(pixels);
    while left > 0 {
        let pixel = rng.random_range(0..pixels);
        left -= usize::from(!std::mem::replace(&mut is_bad[pixel], true));
    }
    let pixels = (0..pixels).filter(|&pixel| is_bad[pixel]);
    pixels.zip(BAD.into_iter().cycle()).collect()
}
