//! Configuration of the transfers: a `[[receiver]]` table for each, or a message of the control link.

use serde::{Deserialize, Serialize};

use super::region::{MAX_BUFFER_PIXELS, Region};
use crate::Shape;

/// Most receivers of an image stream.
pub const MAX_RECEIVERS: usize = 64;

/// Most regions of a receiver.
pub const MAX_REGIONS: usize = 64;

/// Most buffers of a receiver.
pub const MAX_BUFFERS: usize = 65_536;

/// Longest name of a receiver, in bytes.
const MAX_NAME: usize = 64;

/// Highest rate in images a second.
const MAX_RATE: f64 = 1e6;

/// Lowest rate in images a second.
const MIN_RATE: f64 = 1e-3;

/// The sub-images that a receiver gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferConfig {
    /// Name of the receiver, for reports and messages.
    pub name: String,
    /// Regions of interest, all placed in one buffer. Without any: the whole image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub region: Vec<Region>,
    /// One image in so many is transferred.
    #[serde(default = "one")]
    pub every: u64,
    /// Which of them: the remainder of its number divided by `every`.
    #[serde(default)]
    pub phase: u64,
    /// Most images a second. Time is divided into periods of that rate, and the first image of each
    /// that `every` leaves is transferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// Buffers of the ring: sub-images that the receiver may be behind.
    #[serde(default = "default_buffers")]
    pub buffers: usize,
}

const fn one() -> u64 {
    1
}

const fn default_buffers() -> usize {
    16
}

/// A transfer is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The region is not a part of the image.
    #[error(
        "region {region}: an image has {shape} pixels; give at least one row and one column inside it"
    )]
    Outside {
        /// The region.
        region: Region,
        /// Shape of the images.
        shape: Shape,
    },
    /// The rows overlap in the buffer.
    #[error(
        "stride = {stride}: rows of {columns} pixels overlap; give {columns} or more, or leave it out"
    )]
    Stride {
        /// The stride.
        stride: usize,
        /// Columns of the region.
        columns: usize,
    },
    /// The region's place is beyond the largest buffer.
    #[error(
        "offset = {offset}, stride = {stride}: the region ends beyond the largest buffer, which has {MAX_BUFFER_PIXELS} pixels; give smaller ones"
    )]
    Buffer {
        /// The offset.
        offset: usize,
        /// The stride.
        stride: usize,
    },
    /// Two regions have the same place in the buffer.
    #[error("pixel {pixel} of the buffer has a place in two regions: give each its own `offset`")]
    Overlap {
        /// The pixel.
        pixel: usize,
    },
    /// There are too many regions, buffers or receivers.
    #[error("{count} {what}: give 1 to {limit}")]
    Count {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The subsampling selects no image.
    #[error(
        "every = {every}, phase = {phase}: `every` is 1 or more, and `phase` less than `every`"
    )]
    Every {
        /// One image in so many.
        every: u64,
        /// Which of them.
        phase: u64,
    },
    /// The rate is no rate.
    #[error("rate_hz = {0}: give {MIN_RATE} to {MAX_RATE} images a second, or leave it out")]
    Rate(f64),
    /// The name is empty, too long, or cannot be shown.
    #[error("name = {0:?}: give 1 to {MAX_NAME} bytes without control characters")]
    Name(String),
    /// Two receivers have one name.
    #[error("two receivers are named `{0}`: give each its own name")]
    SameName(String),
    /// The buffers take more memory than is allowed.
    #[error(
        "the buffers take {bytes} bytes of memory, and {limit} are allowed: use fewer `buffers` or smaller regions"
    )]
    Memory {
        /// What they take.
        bytes: u64,
        /// What they may take.
        limit: u64,
    },
    /// The system has no memory for a buffer.
    #[error(
        "no memory for {buffers} buffers of {bytes} bytes: use fewer `buffers` or smaller regions"
    )]
    NoMemory {
        /// Number of buffers.
        buffers: usize,
        /// Bytes of each.
        bytes: usize,
    },
    /// The image is of another shape.
    #[error(
        "an image of {found} pixels, and transfers of images of {shape}: transfer images of one shape"
    )]
    ImageLength {
        /// Pixels of the image.
        found: usize,
        /// Shape of the images.
        shape: Shape,
    },
    /// The buffer is too small.
    #[error("a buffer of {found} pixels, and the regions need {need}: give a larger one")]
    BufferLength {
        /// Pixels of the buffer.
        found: usize,
        /// Pixels that the regions need.
        need: usize,
    },
    /// A receiver's transfer is refused.
    #[error("receiver `{name}`: {error}")]
    Receiver {
        /// Name of the receiver.
        name: String,
        /// The reason.
        error: Box<TransferError>,
    },
}

impl TransferConfig {
    /// All images, whole.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            region: Vec::new(),
            every: one(),
            phase: 0,
            rate_hz: None,
            buffers: default_buffers(),
        }
    }

    /// Pixels of a buffer for images of this shape; a check of everything.
    ///
    /// # Errors
    /// A value out of range; a region outside the image; regions that overlap in the buffer.
    pub fn check(&self, shape: Shape) -> Result<usize, TransferError> {
        let shown = !self.name.chars().any(char::is_control);
        if !shown || !(1..=MAX_NAME).contains(&self.name.len()) {
            let short: String = self.name.chars().take(MAX_NAME).collect();
            return Err(TransferError::Name(short));
        }
        let (every, phase) = (self.every, self.phase);
        if phase >= every {
            return Err(TransferError::Every { every, phase });
        }
        if let Some(rate) = self.rate_hz
            && !(MIN_RATE..=MAX_RATE).contains(&rate)
        {
            return Err(TransferError::Rate(rate));
        }
        count("buffers", self.buffers, MAX_BUFFERS)?;
        let regions = self.regions(shape);
        count("regions", regions.len(), MAX_REGIONS)?;
        for region in &regions {
            check_region(region, shape)?;
        }
        let mut places: Vec<_> = regions.iter().flat_map(Region::places).collect();
        places.sort_by_key(|place| place.start);
        let overlap = places.windows(2).find(|pair| pair[0].end > pair[1].start);
        match overlap {
            Some(pair) => Err(TransferError::Overlap {
                pixel: pair[1].start,
            }),
            // The last one to begin is the last one to end: they do not overlap.
            None => Ok(places.last().map_or(0, |place| place.end)),
        }
    }

    /// The regions: those of the configuration, or the whole image.
    pub(super) fn regions(&self, shape: Shape) -> Vec<Region> {
        if self.region.is_empty() {
            vec![Region::whole(shape)]
        } else {
            self.region.clone()
        }
    }

    /// Period of the rate in nanoseconds, for a configuration that is checked.
    pub(super) fn period_ns(&self) -> Option<u64> {
        self.rate_hz
            .map(|rate| ((1e9 / rate).round() as u64).max(1))
    }

    /// The error with the name of the receiver.
    pub(super) fn named(&self, error: TransferError) -> TransferError {
        TransferError::Receiver {
            name: self.name.clone(),
            error: Box::new(error),
        }
    }
}

/// Checks all receivers of an image stream, with `pixel_bytes` bytes a pixel, and adds up the memory of
/// their buffers, in bytes.
///
/// # Errors
/// What [`TransferConfig::check`] refuses, with the name of the receiver; more than [`MAX_RECEIVERS`];
/// two of one name; more than `memory` bytes for all buffers.
pub fn check_all(
    configs: &[TransferConfig],
    shape: Shape,
    pixel_bytes: usize,
    memory: u64,
) -> Result<u64, TransferError> {
    if !configs.is_empty() {
        count("receivers", configs.len(), MAX_RECEIVERS)?;
    }
    let mut bytes = 0;
    for (n, config) in configs.iter().enumerate() {
        let pixels = config.check(shape).map_err(|error| config.named(error))?;
        if configs[..n].iter().any(|other| other.name == config.name) {
            return Err(TransferError::SameName(config.name.clone()));
        }
        // 64 receivers of 2^16 buffers of 2^28 pixels of 8 bytes: less than 2^54.
        bytes += (config.buffers * pixels * pixel_bytes) as u64;
    }
    if bytes > memory {
        let limit = memory;
        return Err(TransferError::Memory { bytes, limit });
    }
    Ok(bytes)
}

fn count(what: &'static str, count: usize, limit: usize) -> Result<(), TransferError> {
    if (1..=limit).contains(&count) {
        Ok(())
    } else {
        Err(TransferError::Count { what, count, limit })
    }
}

/// Checks a region against the images that it is cut from.
fn check_region(region: &Region, shape: Shape) -> Result<(), TransferError> {
    let within = |first: usize, count: usize, limit: usize| {
        count > 0 && first.checked_add(count).is_some_and(|end| end <= limit)
    };
    let rows = within(region.first_row, region.rows, shape.rows);
    if !rows || !within(region.first_column, region.columns, shape.columns) {
        return Err(TransferError::Outside {
            region: *region,
            shape,
        });
    }
    if region.stride() < region.columns {
        return Err(TransferError::Stride {
            stride: region.stride(),
            columns: region.columns,
        });
    }
    let last_row = (region.rows - 1).checked_mul(region.stride());
    let end = last_row
        .and_then(|last| last.checked_add(region.offset))
        .and_then(|last| last.checked_add(region.columns));
    match end {
        Some(end) if end <= MAX_BUFFER_PIXELS => Ok(()),
        _ => Err(TransferError::Buffer {
            offset: region.offset,
            stride: region.stride(),
        }),
    }
}
