//! Layout of a pool's region: where the data rooms of its buffers lie.

use crate::region::BASE_PAGE;

/// Data rooms in sequence, none of which crosses the border of two hugepages: pages that are
/// contiguous in virtual memory may not be so for a device without an IOMMU, and each buffer must
/// be contiguous for it. A data room that would cross a border begins after it.
#[derive(Clone, Copy, Debug)]
pub struct BufferLayout {
    buffers: usize,
    stride: usize,
    /// Bytes from the start of the first data room to the end of the last.
    span: usize,
    /// 2^64 / stride, rounded up: multiplying by it divides, without the time of a division.
    per_stride: u64,
    /// Buffers of a page; the largest number where pages do not matter.
    per_page: usize,
    /// The size of a page as a power of two; one larger than any region if they need not.
    page_shift: u32,
}

impl BufferLayout {
    /// So many data rooms of `stride` bytes, at most [`MAX_DATA_ROOM`](super::MAX_DATA_ROOM), in a
    /// region of pages of this size.
    pub(super) fn new(buffers: usize, stride: usize, page_size: usize) -> Self {
        // Base pages are smaller than most buffers: a driver that needs physically contiguous buffers uses
        // hugepages.
        let (per_page, page_shift) = if page_size == BASE_PAGE {
            (usize::MAX, usize::BITS - 1)
        } else {
            (page_size / stride, page_size.trailing_zeros())
        };
        let mut layout = Self {
            buffers,
            stride,
            span: 0,
            per_stride: u64::MAX / stride as u64 + 1,
            per_page,
            page_shift,
        };
        layout.span = layout.offset(buffers - 1) + stride;
        layout
    }

    #[inline]
    pub(super) fn buffers(&self) -> usize {
        self.buffers
    }

    #[inline]
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Bytes from the first room's beginning to the end of the last.
    #[must_use]
    pub fn span(&self) -> usize {
        self.span
    }

    /// Where the room of this buffer begins, in bytes from the beginning of the region.
    #[must_use]
    pub fn offset(&self, index: usize) -> usize {
        let (page, place) = (index / self.per_page, index % self.per_page);
        (page << self.page_shift) + place * self.stride
    }

    /// Number of the buffer in whose room the byte at `offset` of the region lies; `None` if there
    /// is no room. With [`Mbuf::index`](crate::Mbuf::index) it identifies which of a driver's posted
    /// buffers a device speaks of.
    #[must_use]
    #[inline]
    pub fn index_at(&self, offset: usize) -> Option<usize> {
        let (page, into) = (
            offset >> self.page_shift,
            offset & ((1 << self.page_shift) - 1),
        );
        // Exact for any place in a pool: 2^38 bytes times an error of less than 2^20 of 2^64.
        let place = ((into as u128 * u128::from(self.per_stride)) >> 64) as usize;
        let index = page.wrapping_mul(self.per_page).wrapping_add(place);
        (offset < self.span && place < self.per_page).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::MAX_DATA_ROOM;
    use crate::region::{HUGE_PAGE, PageSize};

    #[test]
    fn every_place_is_in_the_room_that_the_division_finds() {
        let sizes = [PageSize::Kib4, PageSize::Mib2, PageSize::Gib1];
        for page in sizes.into_iter().filter_map(PageSize::bytes) {
            for stride in [
                64,
                2048,
                2176,
                2240,
                4096,
                9152,
                65_472,
                700_032,
                MAX_DATA_ROOM,
            ] {
                let layout = BufferLayout::new((1 << 38) / stride / 2, stride, page);
                let last = layout.buffers - 1;
                for index in [0, 1, 2, 963, 964, 1000, last / 2, last - 1, last] {
                    let start = layout.offset(index);
                    for place in [start, start + 1, start + stride - 1] {
                        assert_eq!(layout.index_at(place), Some(index), "{layout:?}");
                    }
                    let before = start.checked_sub(1).and_then(|at| layout.index_at(at));
                    assert!(before.is_none() || before == index.checked_sub(1));
                    if page != BASE_PAGE {
                        assert_eq!(start / page, (start + stride - 1) / page, "{layout:?}");
                    }
                }
                assert_eq!(layout.span(), layout.offset(last) + stride);
                for behind in [layout.span(), layout.span() + HUGE_PAGE, usize::MAX] {
                    assert_eq!(layout.index_at(behind), None);
                }
            }
        }
    }

    #[test]
    fn the_rest_of_a_page_is_unused() {
        let layout = BufferLayout::new(2000, 2176, HUGE_PAGE);
        let fit = HUGE_PAGE / 2176;
        assert_eq!(
            layout.offset(fit - 1) + 2 * 2176,
            HUGE_PAGE + 2176 - HUGE_PAGE % 2176
        );
        assert_eq!(layout.index_at(fit * 2176), None);
        assert_eq!(layout.index_at(HUGE_PAGE - 1), None);
        assert_eq!(layout.index_at(HUGE_PAGE), Some(fit));
        assert_eq!(layout.offset(2 * fit), 2 * HUGE_PAGE);
        let packed = BufferLayout::new(2000, 2176, BASE_PAGE);
        assert_eq!(packed.span(), 2000 * 2176);
        assert_eq!(packed.offset(fit), fit * 2176);
    }
}
