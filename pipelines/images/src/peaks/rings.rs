//! Rings around the beam, and the pixels of each.

use std::ops::Range;

use pollux_pipelines::simd::LANES;

use super::config::{MIN_RING_PIXELS, PeakConfig, PeakError};
use crate::Shape;

/// Rings of an image, numbered from the beam outwards.
#[derive(Debug)]
pub(super) struct Rings {
    /// Number of rings, which is the ring of a pixel that is in none.
    count: usize,
    /// Ring of each pixel.
    of_pixel: Vec<u16>,
    /// Innermost ring of each group of [`LANES`] pixels of a row.
    innermost: Vec<u16>,
    /// Maximum number of rings that a group extends over, from its innermost one to its outermost.
    span: usize,
    /// Sampled pixels, in the order in which they are copied.
    samples: Vec<u32>,
    /// Parts of them that are copied together.
    runs: Vec<Run>,
    /// For each ring, the end of its samples after they are copied, in groups of [`LANES`].
    ends: Vec<u32>,
}

/// Samples of one ring in one band of the image.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Number of samples.
    len: u32,
    /// Place of the first after they are copied.
    place: u32,
}

/// Pixels of a band. The samples of all rings are copied band by band, so that the pixels that are
/// read are in the cache: a ring by itself extends over the whole image.
const BAND: usize = 1 << 16;

impl Rings {
    /// Steps 1 and 2 of the [method](super).
    pub(super) fn new(
        shape: Shape,
        radius: impl Fn(usize, usize) -> f64,
        config: &PeakConfig,
    ) -> Result<Self, PeakError> {
        let places = (0..shape.rows).flat_map(|row| (0..shape.columns).map(move |c| (row, c)));
        let bins = places.map(|(row, column)| bin(radius(row, column), config));
        let bins = bins.collect::<Result<Vec<_>, _>>()?;
        let ring_of_bin = join(&bins);
        let Some(count) = ring_of_bin.last().map(|&last| usize::from(last) + 1) else {
            return Err(PeakError::NoPixels {
                min: config.min_radius,
                max: config.max_radius,
            });
        };
        let ring = |bin: &Option<u16>| bin.map_or(count as u16, |b| ring_of_bin[usize::from(b)]);
        let of_pixel: Vec<u16> = bins.iter().map(ring).collect();
        let samples_of_rings = sample(&of_pixel, count, config.ring_samples);
        let (samples, runs, ends) = in_bands(&samples_of_rings, shape.pixels());

        let rows = of_pixel.chunks(shape.columns);
        let groups = rows.flat_map(|row| row.chunks(LANES));
        let innermost = groups.clone().map(|g| g.iter().copied().min().unwrap_or(0));
        let span = |group: &[u16]| {
            let rings = group.iter().filter(|&&ring| usize::from(ring) < count);
            let first = rings.clone().min().copied().unwrap_or(0);
            usize::from(rings.max().copied().unwrap_or(first) - first) + 1
        };
        Ok(Self {
            count,
            innermost: innermost.collect(),
            span: groups.map(span).max().unwrap_or(1),
            of_pixel,
            samples,
            runs,
            ends,
        })
    }

    /// Number of rings.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Ring of each pixel; [`len`](Self::len) if it is in none.
    #[inline(always)]
    pub(super) fn of_pixel(&self) -> &[u16] {
        &self.of_pixel
    }

    /// Innermost ring of each group of [`LANES`] pixels, row by row; the last group of a row may be
    /// shorter.
    #[inline(always)]
    pub(super) fn innermost(&self) -> &[u16] {
        &self.innermost
    }

    /// Maximum number of rings between the innermost and the outermost pixel of a group.
    pub(super) fn span(&self) -> usize {
        self.span
    }

    /// Samples that are copied together, and the place of the first in the copy.
    #[inline(always)]
    pub(super) fn runs(&self) -> impl Iterator<Item = (&[u32], usize)> {
        let mut rest = &self.samples[..];
        self.runs.iter().map_while(move |run| {
            let (samples, after) = rest.split_at_checked(run.len as usize)?;
            rest = after;
            Some((samples, run.place as usize))
        })
    }

    /// Samples of each ring after they are copied, in groups of [`LANES`].
    #[inline(always)]
    pub(super) fn copies(&self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let groups = start..end as usize;
            start = groups.end;
            groups
        })
    }
}

/// Bin of a radius; `None` if it is out of the limits.
fn bin(radius: f64, config: &PeakConfig) -> Result<Option<u16>, PeakError> {
    if !(config.min_radius..=config.max_radius).contains(&radius) {
        return Ok(None);
    }
    let bin = (radius / config.ring_width).floor();
    if bin >= f64::from(u16::MAX) {
        return Err(PeakError::Rings {
            radius,
            width: config.ring_width,
        });
    }
    Ok(Some(bin as u16))
}

/// Ring of each bin up to the last that has pixels.
fn join(bins: &[Option<u16>]) -> Vec<u16> {
    let mut pixels = Vec::new();
    for &bin in bins.iter().flatten() {
        let bin = usize::from(bin);
        pixels.resize(pixels.len().max(bin + 1), 0);
        pixels[bin] += 1;
    }
    let (mut ring, mut n) = (0u16, 0);
    let mut rings = Vec::with_capacity(pixels.len());
    for more in pixels {
        rings.push(ring);
        n += more;
        if n >= MIN_RING_PIXELS {
            (ring, n) = (ring + 1, 0);
        }
    }
    // The last ring has too few pixels.
    let last = ring.saturating_sub(1);
    for ring in &mut rings {
        *ring = last.min(*ring);
    }
    rings
}

/// Samples of each ring.
fn sample(of_pixel: &[u16], rings: usize, most: u32) -> Vec<Vec<u32>> {
    let mut pixels = vec![Vec::new(); rings];
    for (pixel, &ring) in (0u32..).zip(of_pixel) {
        if let Some(ring) = pixels.get_mut(usize::from(ring)) {
            ring.push(pixel);
        }
    }
    let samples = |ring: Vec<u32>| {
        let (n, count) = (ring.len(), ring.len().min(most as usize));
        (0..count).map(|i| ring[i * n / count]).collect()
    };
    pixels.into_iter().map(samples).collect()
}

/// Samples in the order of bands, then of rings; their runs; and the ends of the copies.
fn in_bands(rings: &[Vec<u32>], pixels: usize) -> (Vec<u32>, Vec<Run>, Vec<u32>) {
    let (mut samples, mut runs, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    // Of each ring, the place of its next sample.
    let mut places = Vec::new();
    let mut end = 0;
    for ring in rings {
        places.push(end * LANES as u32);
        end += ring.len().div_ceil(LANES) as u32;
        ends.push(end);
    }
    let mut rest: Vec<&[u32]> = rings.iter().map(Vec::as_slice).collect();
    for band in (BAND..pixels + BAND).step_by(BAND) {
        for (rest, place) in rest.iter_mut().zip(&mut places) {
            let len = rest.partition_point(|&pixel| (pixel as usize) < band);
            let (now, later) = rest.split_at(len);
            if len > 0 {
                let (len, place) = (len as u32, *place);
                runs.push(Run { len, place });
            }
            samples.extend_from_slice(now);
            *place += len as u32;
            *rest = later;
        }
    }
    (samples, runs, ends)
}
