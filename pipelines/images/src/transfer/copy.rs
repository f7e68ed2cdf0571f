//! A transfer: which images a receiver gets, and the copies of their regions.

use std::mem::size_of;
use std::sync::Arc;

use pollux_pipelines::Moment;

use super::config::{TransferConfig, TransferError};
use super::region::Region;
use super::view::{TransferView, ViewState};
use crate::Shape;

/// Selects images for a receiver, and copies regions of them. Nothing is allocated after the
/// constructor.
#[derive(Debug)]
pub struct Transfer {
    shape: Shape,
    regions: Box<[Region]>,
    buffer_pixels: usize,
    every: u64,
    phase: u64,
    period_ns: Option<u64>,
    /// Number of the first period without an image.
    next_period: u64,
    state: Arc<ViewState>,
}

impl Transfer {
    /// A transfer of images of this shape.
    ///
    /// # Errors
    /// As [`TransferConfig::check`], with the name of the receiver.
    pub fn new(config: &TransferConfig, shape: Shape) -> Result<Self, TransferError> {
        let buffer_pixels = config.check(shape).map_err(|error| config.named(error))?;
        let regions = config.regions(shape).into_boxed_slice();
        Ok(Self {
            shape,
            buffer_pixels,
            every: config.every,
            phase: config.phase,
            period_ns: config.period_ns(),
            next_period: 0,
            state: Arc::new(ViewState::new(config, &regions)),
            regions,
        })
    }

    /// Whether the receiver gets the image of this number, which was taken at this time. Deterministic:
    /// equal numbers and times give equal answers. Times should not decrease; until the latest one is
    /// reached again, nothing is selected by rate.
    #[inline]
    pub fn wants(&mut self, number: u64, at: Moment) -> bool {
        if number % self.every != self.phase {
            return false;
        }
        let Some(period_ns) = self.period_ns else {
            return true;
        };
        let period = at.0 / period_ns;
        let is_first = period >= self.next_period;
        if is_first {
            self.next_period = period.saturating_add(1);
        }
        is_first
    }

    /// Copies the regions of an image to their places in a buffer, and counts the image. Pixels between
    /// the regions are left as they are.
    ///
    /// # Errors
    /// An image of another shape; a buffer with fewer than [`buffer_pixels`](Self::buffer_pixels).
    #[inline]
    pub fn copy<P: Copy>(&self, image: &[P], buffer: &mut [P]) -> Result<(), TransferError> {
        if image.len() != self.shape.pixels() {
            return Err(TransferError::ImageLength {
                found: image.len(),
                shape: self.shape,
            });
        }
        if buffer.len() < self.buffer_pixels {
            return Err(TransferError::BufferLength {
                found: buffer.len(),
                need: self.buffer_pixels,
            });
        }
        let mut pixels = 0;
        for region in &self.regions {
            copy_region(image, self.shape.columns, region, buffer);
            pixels += region.pixels();
        }
        let counts = &self.state.counts;
        counts.images.add(1);
        counts.bytes.add((pixels * size_of::<P>()) as u64);
        Ok(())
    }

    /// Pixels of a buffer: up to the last one that a region has a place for.
    #[must_use]
    pub fn buffer_pixels(&self) -> usize {
        self.buffer_pixels
    }

    /// The regions.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Configuration and counts, for any thread.
    #[must_use]
    pub fn view(&self) -> TransferView {
        TransferView::new(&self.state)
    }

    /// State that the view shows.
    pub(super) fn state(&self) -> &Arc<ViewState> {
        &self.state
    }
}

/// Copies a region of an image with so many columns. Both sides were checked to be long enough.
#[inline]
fn copy_region<P: Copy>(image: &[P], columns: usize, region: &Region, buffer: &mut [P]) {
    let rows = image.get(region.first_row * columns..).unwrap_or_default();
    let buffer = buffer.get_mut(region.offset..).unwrap_or_default();
    // Whole rows that follow each other on both sides are one row: a long copy bypasses the caches.
    let is_one = region.columns == columns && region.stride() == columns;
    let (count, width, from, to) = if is_one {
        let pixels = region.pixels();
        (1, pixels, pixels, pixels)
    } else {
        (region.rows, region.columns, columns, region.stride())
    };
    for (from, to) in rows.chunks(from).zip(buffer.chunks_mut(to)).take(count) {
        let from = from.get(region.first_column..).unwrap_or_default();
        if let (Some(from), Some(to)) = (from.get(..width), to.get_mut(..width)) {
            to.copy_from_slice(from);
        }
    }
}
