//! Limits of the IOMMU: alignment and usable address ranges.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;

use iommufd_bindings::iommu_iova_range;
use vfio_bindings::bindings::vfio::{
    VFIO_IOMMU_INFO_CAPS, VFIO_IOMMU_INFO_PGSIZES, VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE,
};

use super::{abi, error};
use crate::bus::BusError;

#[derive(Debug, PartialEq)]
pub(super) struct Limits {
    /// Alignment of addresses and lengths in bytes.
    page: u64,
    /// Addresses that devices can use; all where the kernel reports none.
    ranges: Vec<RangeInclusive<u64>>,
}

impl Limits {
    /// Limits of the IOMMU behind a container (VFIO_IOMMU_GET_INFO).
    pub(super) fn of_container(file: BorrowedFd<'_>) -> io::Result<Self> {
        let mut words = vec![0; 64];
        loop {
            abi::IOMMU_GET_INFO.call(file, &mut words[..])?;
            // The kernel has reported the required number of bytes.
            let needed = words.first().map_or(0, |&size| size as usize).div_ceil(4);
            if needed <= words.len() {
                return Ok(Self::from_words(&words));
            }
            words = vec![0; needed];
        }
    }

    /// Limits of an address space of /dev/iommu (IOMMU_IOAS_IOVA_RANGES).
    pub(super) fn of_iommufd(file: BorrowedFd<'_>, space: u32) -> io::Result<Self> {
        let mut ranges = vec![iommu_iova_range::default(); 16];
        loop {
            let (count, page) = abi::iova_ranges(file, space, &mut ranges)?;
            if count <= ranges.len() {
                let ranges = ranges[..count].iter().map(|range| range.start..=range.last);
                let ranges = ranges.collect();
                return Ok(Self { page, ranges });
            }
            ranges.resize(count, iommu_iova_range::default());
        }
    }

    /// Parses `struct vfio_iommu_type1_info` and the capabilities behind it, which are a list by
    /// offsets in bytes.
    fn from_words(words: &[u32]) -> Self {
        /// Words of a capability in front of its ranges: header, count and padding.
        const HEAD: usize = 4;
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        let flags = word(1);
        let page = match long(2) {
            sizes if flags & VFIO_IOMMU_INFO_PGSIZES != 0 && sizes != 0 => {
                1 << sizes.trailing_zeros()
            }
            _ => 4096,
        };
        let mut ranges = Vec::new();
        let has_more = flags & VFIO_IOMMU_INFO_CAPS != 0;
        let mut next = if has_more { word(4) as usize / 4 } else { 0 };
        while (1..words.len()).contains(&next) {
            let at = next;
            if word(at) & 0xffff == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE {
                let count = (word(at + 2) as usize).min(words.len() / 4);
                let range = |i: usize| at + HEAD + i * 4;
                ranges = (0..count)
                    .map(|i| long(range(i))..=long(range(i) + 2))
                    .collect();
            }
            // Forwards only: a circular list would have no end.
            next = (word(at + 1) as usize / 4).max(at);
            if next == at {
                break;
            }
        }
        Self { page, ranges }
    }

    /// Refuses a range that cannot be mapped at its own address.
    pub(super) fn check(&self, device: &str, start: u64, len: u64) -> Result<(), BusError> {
        let Self { page, ranges } = self;
        if !start.is_multiple_of(*page) || !len.is_multiple_of(*page) {
            let what = format!(
                "the IOMMU maps pages of {page} bytes and more, and this memory is of smaller \
                 ones: use hugepages (scripts/hugepages)"
            );
            return Err(error::wrong(device, what));
        }
        let last = start.saturating_add(len.saturating_sub(1));
        let fits = |range: &RangeInclusive<u64>| range.contains(&start) && range.contains(&last);
        if ranges.is_empty() || ranges.iter().any(fits) {
            return Ok(());
        }
        let one = |range: &RangeInclusive<u64>| format!("{:#x}-{:#x}", range.start(), range.end());
        let all: Vec<_> = ranges.iter().map(one).collect();
        let what = format!(
            "memory at {start:#x}-{last:#x} is where the IOMMU reaches nothing; it reaches {} (an \
             IOMMU of 39 bits is too narrow for a process: a guest's is given aw-bits=48)",
            all.join(", ")
        );
        Err(error::wrong(device, what))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// As an 82574L's IOMMU in a guest reports it, with a capability of another kind in front.
    fn words() -> Vec<u32> {
        let mut words = vec![96, 3, 0x4020_1000, 0, 24, 0];
        words.extend([3 | 1 << 16, 40, 65535, 0]);
        words.extend([1 | 1 << 16, 0, 2, 0]);
        for long in [0_u64, 0xfedf_ffff, 0xfef0_0000, (1 << 48) - 1] {
            words.extend([long as u32, (long >> 32) as u32]);
        }
        words
    }

    #[test]
    fn limits_are_read_and_held() {
        let limits = Limits::from_words(&words());
        let ranges = vec![0..=0xfedf_ffff, 0xfef0_0000..=(1 << 48) - 1];
        assert_eq!(limits, Limits { page: 4096, ranges });
        limits.check("d", 0x7f00_0000_0000, 2 << 20).unwrap();
        limits.check("d", 0xfed0_0000, 1 << 20).unwrap();
        let said = |start, len| limits.check("d", start, len).unwrap_err().to_string();
        assert!(said(0xfec0_0000, 4 << 20).contains("reaches 0x0-0xfedfffff, 0xfef00000-0xffff"));
        assert!(said(1 << 48, 4096).contains("aw-bits"));
        assert!(said(0x1800, 4096).contains("pages of 4096 bytes"));
    }

    #[test]
    fn any_words_are_survived() {
        for cut in 0..words().len() {
            let _ = Limits::from_words(&words()[..cut]);
        }
        for (at, value) in [
            (4, u32::MAX),
            (7, 24),
            (7, u32::MAX),
            (12, u32::MAX),
            (3, 1),
        ] {
            let mut words = words();
            words[at] = value;
            let _ = Limits::from_words(&words);
        }
        // Neither pages nor ranges reported.
        let limits = Limits::from_words(&[24, 0, 0, 0, 0, 0]);
        limits.check("d", 4096, 4096).unwrap();
    }
}
