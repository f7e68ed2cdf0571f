//! Notes of a packet: what stages need to know of its pixels, found while they are in the cache.

/// What is noted of the pixels of each packet while they are converted, so that later stages need not
/// read the image again. Thresholds are in photons; bad pixels reach none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NoteConfig {
    /// Pixels that reach this threshold are counted, for the [veto](crate::veto).
    pub count: Option<f32>,
    /// Pixels that reach this threshold are marked, for [compression](crate::sparse) to sparse rows.
    pub mark: Option<f32>,
}

impl NoteConfig {
    /// Bytes of the count, and of the marks, of a packet with so many pixels.
    pub(crate) const fn bytes(&self, pixels: usize) -> [usize; 2] {
        let count = if self.count.is_some() {
            size_of::<u32>()
        } else {
            0
        };
        let marks = if self.mark.is_some() {
            pixels / u64::BITS as usize * size_of::<u64>()
        } else {
            0
        };
        [count, marks]
    }
}

/// Notes of one packet, for [`Converter::convert_and_note`](super::Converter::convert_and_note).
#[derive(Debug, Default)]
pub struct Notes<'a> {
    pub(super) config: NoteConfig,
    /// One number if pixels are counted, else none.
    pub(super) count: &'a mut [u32],
    /// One word for each 64 pixels if they are marked, else none.
    pub(super) marks: &'a mut [u64],
}

impl<'a> Notes<'a> {
    pub(crate) fn new(config: NoteConfig, count: &'a mut [u32], marks: &'a mut [u64]) -> Self {
        Self {
            config,
            count,
            marks,
        }
    }

    /// Notes of pixels of which none reaches a threshold: their place has those of an earlier image
    /// until it is written.
    pub fn clear(&mut self) {
        self.set_count(0);
        self.marks.fill(0);
    }

    pub(super) fn set_count(&mut self, count: usize) {
        self.count.fill(count as u32);
    }
}
