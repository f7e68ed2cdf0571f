//! Candidates: pixels that are above the threshold of their ring.

use pollux_pipelines::simd::{Kernel, LANES, Lanes};

use super::background::Background;
use super::rings::Rings;
use crate::{Pixel, Shape};

/// Candidates of an image that belong to no peak yet.
#[derive(Debug)]
pub(super) struct Candidates {
    /// Bit i of a group: its pixel i is a candidate. A row has whole groups.
    bits: Vec<u16>,
    /// Groups with candidates, in the order of the image; as long as there can be any.
    groups: Vec<u32>,
    /// Number of them.
    used: usize,
    /// Groups of a row.
    pub(super) groups_per_row: usize,
    /// A row in photons, filled up with bad pixels to whole groups.
    row: Vec<f32>,
}

impl Candidates {
    pub(super) fn new(shape: Shape, rings: &Rings) -> Self {
        let groups = rings.innermost().len();
        Self {
            bits: vec![0; groups],
            groups: vec![0; groups],
            used: 0,
            groups_per_row: shape.columns.div_ceil(LANES),
            row: vec![f32::NAN; shape.columns.next_multiple_of(LANES)],
        }
    }

    /// Groups that had candidates when the image was searched.
    pub(super) fn groups(&self) -> usize {
        self.used
    }

    /// Takes the first candidate of the `n`th of them: its group, and its place there.
    #[inline]
    pub(super) fn take_first(&mut self, n: usize) -> Option<(usize, usize)> {
        let group = *self.groups.get(n)? as usize;
        let bits = self.bits.get_mut(group)?;
        let place = bits.trailing_zeros() as usize;
        *bits &= bits.wrapping_sub(1);
        (place < LANES).then_some((group, place))
    }

    /// Takes the candidate at a place, if there is one.
    #[inline(always)]
    pub(super) fn take(&mut self, row: usize, column: usize) -> bool {
        let group = row * self.groups_per_row + column / LANES;
        let Some(bits) = self.bits.get_mut(group) else {
            return false;
        };
        let bit = 1 << (column % LANES);
        let is_one = *bits & bit != 0;
        *bits &= !bit;
        is_one
    }
}

/// Step 4 of the [method](super). A group of pixels is compared with the lowest threshold of its
/// rings first: nearly all have no pixel above that.
pub(super) struct FindCandidates<'a, P> {
    pub(super) image: &'a [P],
    pub(super) columns: usize,
    pub(super) rings: &'a Rings,
    pub(super) background: &'a Background,
    pub(super) candidates: &'a mut Candidates,
}

impl<P: Pixel> Kernel for FindCandidates<'_, P> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self, isa: V::Isa) {
        let candidates = self.candidates;
        candidates.used = 0;
        let groups_per_row = candidates.groups_per_row;
        let rows = self.image.chunks_exact(self.columns);
        let rings = self.rings.of_pixel().chunks_exact(self.columns);
        let innermost = self.rings.innermost().chunks_exact(groups_per_row);
        let bits = candidates.bits.chunks_exact_mut(groups_per_row);
        let mut first = 0;
        for (((row, rings), innermost), bits) in rows.zip(rings).zip(innermost).zip(bits) {
            for (value, pixel) in candidates.row.iter_mut().zip(row) {
                *value = pixel.photons();
            }
            let (values, _) = candidates.row.as_chunks::<LANES>();
            let groups = values.iter().zip(rings.chunks(LANES));
            let groups = groups.zip(innermost.iter().zip(bits));
            for (i, ((values, rings), (&innermost, bits))) in (first..).zip(groups) {
                let floor = V::splat(isa, self.background.floor(innermost));
                *bits = V::bits(floor.le(V::load(isa, values)));
                if *bits == 0 {
                    continue;
                }
                *bits = above(*bits, values, rings, self.background);
                if *bits != 0
                    && let Some(group) = candidates.groups.get_mut(candidates.used)
                {
                    *group = i;
                    candidates.used += 1;
                }
            }
            first += groups_per_row as u32;
        }
    }
}

/// Those of the pixels that are above the threshold of their own ring.
#[inline(always)]
fn above(mut bits: u16, values: &[f32; LANES], rings: &[u16], background: &Background) -> u16 {
    let mut above = 0;
    while bits != 0 {
        let i = bits.trailing_zeros() as usize % LANES;
        bits &= bits - 1;
        let threshold = rings.get(i).map(|&ring| background.of(ring).threshold);
        above |= u16::from(threshold.is_some_and(|threshold| values[i] >= threshold)) << i;
    }
    above
}
