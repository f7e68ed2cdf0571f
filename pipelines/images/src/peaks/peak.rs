//! A peak, and the peaks of an image.

use serde::Serialize;

/// A Bragg peak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Peak {
    /// Row of the centre of mass, in pixels; the centre of the first row is at 0.
    pub row: f32,
    /// Column of the centre of mass, in pixels; the centre of the first column is at 0.
    pub column: f32,
    /// Sum of the pixels less the background below them, in photons.
    pub intensity: f32,
    /// Mean of the background around the peak, in photons a pixel.
    pub background: f32,
    /// Standard deviation of the background around the peak, in photons.
    pub sigma: f32,
    /// Intensity divided by sqrt(`pixels`) `sigma`.
    pub snr: f32,
    /// Largest pixel, in photons.
    pub maximum: f32,
    /// Number of pixels.
    pub pixels: u32,
    /// Number of pixels that are saturated. The intensity is then a lower bound.
    pub saturated: u32,
    /// Index of the module.
    pub module: u16,
}

/// The peaks of an image, and the numbers of groups of pixels that are none.
#[derive(Clone, Debug, Default)]
pub struct Peaks {
    /// Allocated for the largest number.
    list: Vec<Peak>,
    capacity: usize,
    /// Peaks that did not fit into the list.
    pub beyond: u32,
    /// Groups with too few pixels.
    pub small: u32,
    /// Groups with too many pixels.
    pub large: u32,
    /// Groups whose significance is too low.
    pub weak: u32,
    /// Pixels above the threshold of their ring.
    pub candidates: u32,
}

impl Peaks {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            list: Vec::with_capacity(capacity),
            capacity,
            ..Self::default()
        }
    }

    /// The peaks, in the order of their first pixel in the image.
    #[must_use]
    pub fn list(&self) -> &[Peak] {
        &self.list
    }

    /// Removes all, before the next image.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        (self.beyond, self.candidates) = (0, 0);
        (self.small, self.large, self.weak) = (0, 0, 0);
    }

    /// Adds a peak, or counts it if the list is full.
    pub(super) fn add(&mut self, peak: Peak) {
        if self.list.len() < self.capacity {
            self.list.push(peak);
        } else {
            self.beyond += 1;
        }
    }
}
