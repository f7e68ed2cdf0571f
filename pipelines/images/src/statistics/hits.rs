//! Hit rate: the share of images that are kept.

/// Bits of a word.
const BITS: usize = u64::BITS as usize;

/// Images kept and all, since the start and over a sliding window of the last ones.
#[derive(Clone, Debug)]
pub struct HitRate {
    images: u64,
    kept: u64,
    /// Whether each of the last images was kept; a ring of `window` bits.
    ring: Vec<u64>,
    window: usize,
    next: usize,
    kept_in_window: usize,
}

impl HitRate {
    /// A rate over all images, and over the last `window` ones: 1 to 2^24, others are limited to that.
    #[must_use]
    pub fn new(window: usize) -> Self {
        let window = window.clamp(1, 1 << 24);
        Self {
            images: 0,
            kept: 0,
            ring: vec![0; window.div_ceil(BITS)],
            window,
            next: 0,
            kept_in_window: 0,
        }
    }

    /// Counts an image.
    #[inline]
    pub fn record(&mut self, kept: bool) {
        self.images += 1;
        self.kept += u64::from(kept);
        let Some(word) = self.ring.get_mut(self.next / BITS) else {
            return;
        };
        let bit = 1 << (self.next % BITS);
        let was_kept = *word & bit != 0;
        *word = if kept { *word | bit } else { *word & !bit };
        self.kept_in_window = self.kept_in_window + usize::from(kept) - usize::from(was_kept);
        self.next = (self.next + 1) % self.window;
    }

    /// Number of images.
    #[must_use]
    pub fn images(&self) -> u64 {
        self.images
    }

    /// Number of images that were kept.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Images kept, of all; `None` before the first.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.images > 0).then(|| self.kept as f64 / self.images as f64)
    }

    /// Images kept, of the last ones; `None` before the first.
    #[must_use]
    pub fn recent_rate(&self) -> Option<f64> {
        let images = self.images.min(self.window as u64);
        (images > 0).then(|| self.kept_in_window as f64 / images as f64)
    }
}
