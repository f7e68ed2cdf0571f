//! Addresses as a device sees them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::region::MemoryRegion;

/// An address on the device's side (I/O virtual address). It is a number, never a pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Iova(pub u64);

/// A piece of a region that is contiguous for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where the piece begins in the region, in bytes.
    pub offset: usize,
    /// Where it begins for the device.
    pub iova: Iova,
    /// Bytes in the piece.
    pub len: usize,
}

/// Why an address could not be translated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IovaError {
    /// The bytes are not inside the region.
    #[error("{len} bytes at offset {offset} are outside the region of {region} bytes")]
    OutOfRange {
        /// Where the bytes begin.
        offset: usize,
        /// How many bytes.
        len: usize,
        /// Bytes in the region.
        region: usize,
    },
    /// The bytes are not contiguous for the device.
    #[error(
        "of {len} bytes at offset {offset} only {contiguous} are contiguous for the device; use larger pages or an IOMMU"
    )]
    NotContiguous {
        /// Where the bytes begin.
        offset: usize,
        /// How many bytes.
        len: usize,
        /// How many of them are contiguous.
        contiguous: usize,
    },
    /// The device's address does not lie in the region.
    #[error("{len} bytes at device address {iova:#x} are not in the region")]
    NotMapped {
        /// The device's address.
        iova: u64,
        /// How many bytes.
        len: usize,
    },
    /// The region would reach beyond the last device address.
    #[error(
        "a region of {len} bytes at device address {base:#x} passes the end of the address space"
    )]
    BaseTooHigh {
        /// Where the region should begin for the device.
        base: u64,
        /// Bytes in the region.
        len: usize,
    },
    /// Simulated addresses overlap the region's own, so that a pointer could pass for one.
    #[error(
        "simulated device addresses from {base:#x} overlap the region's own at {va:#x}; choose another base"
    )]
    BaseIsPointer {
        /// Where the region should begin for the device.
        base: u64,
        /// Where it begins for the processor.
        va: u64,
    },
    /// The kernel hides physical addresses from this process.
    #[error(
        "physical addresses are hidden from this process: run it as root or with CAP_SYS_ADMIN, or use an IOMMU"
    )]
    Hidden,
    /// A page of the region is not in memory.
    #[error("the page at offset {offset} is not in memory; lock the region")]
    NotPresent {
        /// Where the page begins in the region.
        offset: usize,
    },
    /// The page map could not be read.
    #[error("/proc/self/pagemap: {0}")]
    Pagemap(#[from] io::Error),
}

/// How a device sees a region: for each byte its address on the device's side.
///
/// The map is plain numbers, found once. It does not keep the region alive. Clones share its tables.
#[derive(Clone, Debug)]
pub struct IovaMap {
    /// In the order of their offsets, without gaps or overlaps; never empty.
    runs: Arc<[Run]>,
    /// The region in pieces of `1 << shift` bytes, none of which lies in two runs.
    pieces: Arc<[Piece]>,
    shift: u32,
    len: usize,
}

/// Start of a piece of a region, as the device sees it.
#[derive(Clone, Copy, Debug)]
struct Piece {
    iova: u64,
    /// Bytes from here to the end of the run.
    left: usize,
}

impl IovaMap {
    /// Device addresses equal the processor's, as VFIO maps them behind an IOMMU.
    #[must_use]
    pub fn identity(region: &MemoryRegion) -> Self {
        Self::one_run(region.as_ptr().addr().get() as u64, region.len())
    }

    /// Physical addresses, for a device without an IOMMU. Use hugepages: their addresses stay,
    /// while the kernel may move locked normal pages (compaction).
    ///
    /// # Errors
    /// [`IovaError::Hidden`] without CAP_SYS_ADMIN; [`IovaError::NotPresent`] if a page is swapped
    /// out; [`IovaError::Pagemap`] if the kernel has no page map.
    pub fn physical(region: &MemoryRegion) -> Result<Self, IovaError> {
        let pagemap = File::open("/proc/self/pagemap")?;
        let page = region.page_size();
        let start = region.as_ptr().addr().get();
        let pages = (0..region.len()).step_by(page).map(|offset| {
            // One 64-bit word for each base page, also inside a hugepage
            // (Documentation/admin-guide/mm/pagemap.rst).
            let mut word = [0; 8];
            pagemap.read_exact_at(&mut word, ((start + offset) / BASE_PAGE * 8) as u64)?;
            frame(u64::from_ne_bytes(word), offset)
        });
        Self::from_pages(page, pages)
    }

    /// Device addresses are offsets from `base`, as the two sides of vhost-user agree on.
    ///
    /// # Errors
    /// [`IovaError::BaseTooHigh`] if the end of the region has no address.
    pub fn offset(region: &MemoryRegion, base: u64) -> Result<Self, IovaError> {
        let len = region.len();
        base.checked_add(len as u64)
            .ok_or(IovaError::BaseTooHigh { base, len })?;
        Ok(Self::one_run(base, len))
    }

    /// Device addresses of a simulated device: offsets from `base`, never equal to any address of
    /// the region itself, so that an untranslated pointer faults at once.
    ///
    /// # Errors
    /// [`IovaError::BaseIsPointer`] if the two ranges overlap; as for [`offset`](Self::offset).
    pub fn simulated(region: &MemoryRegion, base: u64) -> Result<Self, IovaError> {
        let map = Self::offset(region, base)?;
        let (va, len) = (region.as_ptr().addr().get() as u64, region.len() as u64);
        if base < va + len && va < base + len {
            return Err(IovaError::BaseIsPointer { base, va });
        }
        Ok(map)
    }

    /// Device addresses of the region's pages, in order, for a bus that translates by itself.
    ///
    /// # Errors
    /// [`IovaError::NotPresent`] if there are fewer than the region has pages.
    pub fn paged(
        region: &MemoryRegion,
        pages: impl IntoIterator<Item = Iova>,
    ) -> Result<Self, IovaError> {
        let page = region.page_size();
        let mut pages = pages.into_iter();
        let pages = (0..region.len()).step_by(page).map(|offset| {
            let page = pages.next().ok_or(IovaError::NotPresent { offset })?;
            Ok(page.0)
        });
        Self::from_pages(page, pages)
    }

    /// Where the device sees `len` bytes that begin `offset` bytes into the region.
    ///
    /// # Errors
    /// [`IovaError::OutOfRange`]; [`IovaError::NotContiguous`] if the device sees them in pieces.
    #[inline]
    pub fn iova(&self, offset: usize, len: usize) -> Result<Iova, IovaError> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(IovaError::OutOfRange {
                offset,
                len,
                region: self.len,
            });
        }
        match self.find(offset, len) {
            Some(found) => Ok(found),
            None if offset == self.len => Ok(self.end()),
            None => Err(IovaError::NotContiguous {
                offset,
                len,
                contiguous: self.piece(offset).map_or(0, |(_, left)| left),
            }),
        }
    }

    /// As [`iova`](Self::iova), without a reason where there is no address, nor for no bytes behind
    /// the last one: one look into a table, for poll loops.
    #[inline]
    #[must_use]
    pub fn find(&self, offset: usize, len: usize) -> Option<Iova> {
        let (iova, left) = self.piece(offset)?;
        (len <= left).then_some(iova)
    }

    /// The address behind the last byte.
    fn end(&self) -> Iova {
        let last = self.runs.last();
        last.map_or(Iova(0), |run| Iova(run.iova.0 + run.len as u64))
    }

    /// The address of an offset, and the bytes from there to the end of its run.
    #[inline]
    fn piece(&self, offset: usize) -> Option<(Iova, usize)> {
        let piece = self.pieces.get(offset >> self.shift)?;
        let into = offset & ((1 << self.shift) - 1);
        // The last piece may be shorter than the others.
        let left = piece.left.checked_sub(into)?;
        Some((Iova(piece.iova + into as u64), left))
    }

    /// Where in the region the `len` bytes lie that a device addresses with `iova`: the way back,
    /// for simulated devices and back ends. Takes time in proportion to the number of runs.
    ///
    /// # Errors
    /// [`IovaError::NotMapped`] if not all of them are in one run of the region.
    pub fn offset_of(&self, iova: Iova, len: usize) -> Result<usize, IovaError> {
        self.runs
            .iter()
            .find_map(|run| {
                let into = usize::try_from(iova.0.checked_sub(run.iova.0)?).ok()?;
                (into < run.len && len <= run.len - into).then_some(run.offset + into)
            })
            .ok_or(IovaError::NotMapped { iova: iova.0, len })
    }

    /// The pieces that are contiguous for the device, in the order of the region; together they
    /// are the whole region.
    #[must_use]
    pub fn contiguous_runs(&self) -> &[Run] {
        &self.runs
    }

    fn one_run(base: u64, len: usize) -> Self {
        let run = Run {
            offset: 0,
            iova: Iova(base),
            len,
        };
        Self::from_runs(vec![run], len)
    }

    fn from_runs(runs: Vec<Run>, len: usize) -> Self {
        // Each run but the first, at zero, begins with a piece of its own.
        let zeros = runs.iter().map(|run| run.offset.trailing_zeros());
        let shift = zeros.min().unwrap_or(0).min(usize::BITS - 1);
        let pieces = runs.iter().flat_map(|run| {
            let starts = (0..run.len).step_by(1 << shift);
            starts.map(|into| Piece {
                iova: run.iova.0 + into as u64,
                left: run.len - into,
            })
        });
        Self {
            pieces: pieces.collect(),
            runs: runs.into(),
            shift,
            len,
        }
    }

    /// Joins pages that follow each other on both sides.
    fn from_pages(
        page: usize,
        pages: impl Iterator<Item = Result<u64, IovaError>>,
    ) -> Result<Self, IovaError> {
        let mut runs: Vec<Run> = Vec::new();
        let mut len = 0;
        for address in pages {
            let address = address?;
            match runs.last_mut() {
                Some(run) if run.iova.0 + run.len as u64 == address => run.len += page,
                _ => runs.push(Run {
                    offset: len,
                    iova: Iova(address),
                    len: page,
                }),
            }
            len += page;
        }
        Ok(Self::from_runs(runs, len))
    }
}

/// Bytes of memory that one word of the page map describes.
const BASE_PAGE: usize = 4096;

/// The physical address in a word of the page map: bit 63 says that the page is there, bits 0 to
/// 54 are its frame number, which is zero for those who may not know it.
fn frame(word: u64, offset: usize) -> Result<u64, IovaError> {
    if word >> 63 == 0 {
        return Err(IovaError::NotPresent { offset });
    }
    match word & ((1 << 55) - 1) {
        0 => Err(IovaError::Hidden),
        number => Ok(number * BASE_PAGE as u64),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::region::PageSize;

    fn region() -> MemoryRegion {
        MemoryRegion::builder(5 * BASE_PAGE)
            .pages(PageSize::Kib4)
            .build()
            .unwrap()
    }

    #[test]
    fn a_linear_map_is_one_run() {
        let region = region();
        let va = region.as_ptr().addr().get() as u64;
        let map = IovaMap::identity(&region);
        assert_eq!(
            map.contiguous_runs(),
            [Run {
                offset: 0,
                iova: Iova(va),
                len: region.len()
            }]
        );
        assert_eq!(map.iova(100, 20_000).unwrap(), Iova(va + 100));
        assert_eq!(map.offset_of(Iova(va + 100), 20_000).unwrap(), 100);
        let map = IovaMap::offset(&region, 0x1000).unwrap();
        assert_eq!(map.iova(5, 1).unwrap(), Iova(0x1005));
    }

    #[test]
    fn a_base_may_not_run_over_the_end_or_look_like_a_pointer() {
        let region = region();
        let (va, len) = (region.as_ptr().addr().get() as u64, region.len() as u64);
        let error = IovaMap::offset(&region, u64::MAX - 5).unwrap_err();
        assert!(matches!(error, IovaError::BaseTooHigh { .. }), "{error}");
        for base in [va, va + len - 1, va - len + 1] {
            let error = IovaMap::simulated(&region, base).unwrap_err();
            assert!(matches!(error, IovaError::BaseIsPointer { .. }), "{error}");
        }
        for base in [0, va + len, va - len] {
            assert_eq!(
                IovaMap::simulated(&region, base)
                    .unwrap()
                    .iova(1, 1)
                    .unwrap()
                    .0,
                base + 1
            );
        }
    }

    #[test]
    fn physical_addresses_are_found_or_the_reason_is_named() {
        let region = region();
        match IovaMap::physical(&region) {
            Ok(map) => {
                let covered: usize = map.contiguous_runs().iter().map(|run| run.len).sum();
                assert_eq!(covered, region.len());
                for page in 0..5 {
                    let iova = map.iova(page * BASE_PAGE, BASE_PAGE).unwrap();
                    assert!(iova.0 != 0 && iova.0 % BASE_PAGE as u64 == 0);
                    assert_eq!(map.offset_of(iova, BASE_PAGE).unwrap(), page * BASE_PAGE);
                }
            }
            Err(error @ IovaError::Hidden) => println!("skipped: {error}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn words_of_the_page_map_are_understood() {
        assert_eq!(frame(1 << 63 | 1 << 61 | 0x1234, 0).unwrap(), 0x1234 << 12);
        assert!(matches!(frame(1 << 63, 0), Err(IovaError::Hidden)));
        assert!(matches!(
            frame(1 << 62 | 0x1234, 8192),
            Err(IovaError::NotPresent { offset: 8192 })
        ));
    }

    proptest! {
        /// Against the definition: a range has a device address if each byte follows the one
        /// before it on the device's side.
        #[test]
        fn a_table_of_pages_translates_byte_by_byte(
            // Few, distinct frames in random order: some follow each other.
            frames in Just((1..12_u64).collect::<Vec<_>>()).prop_shuffle(),
            used in 1..12_usize,
            offset in 0..200_usize,
            len in 0..60_usize,
        ) {
            const PAGE: usize = 16;
            let frames = &frames[..used];
            let pages = frames.iter().map(|frame| Ok(frame * PAGE as u64));
            let map = IovaMap::from_pages(PAGE, pages).unwrap();
            let byte = |at: usize| frames[at / PAGE] * PAGE as u64 + (at % PAGE) as u64;

            let size = used * PAGE;
            let covered: usize = map.contiguous_runs().iter().map(|run| run.len).sum();
            prop_assert_eq!(covered, size);
            match map.iova(offset, len) {
                Ok(iova) => {
                    prop_assert!(offset + len <= size);
                    if offset < size {
                        prop_assert_eq!(map.find(offset, len), Some(iova));
                    }
                    for k in 0..len {
                        prop_assert_eq!(byte(offset + k), iova.0 + k as u64);
                    }
                    if len > 0 {
                        prop_assert_eq!(map.offset_of(iova, len).unwrap(), offset);
                    }
                }
                Err(IovaError::OutOfRange { .. }) => {
                    prop_assert!(offset + len > size);
                    prop_assert_eq!(map.find(offset, len), None);
                }
                Err(IovaError::NotContiguous { contiguous, .. }) => {
                    prop_assert!(contiguous < len);
                    prop_assert_eq!(map.find(offset, len), None);
                    let last = byte(offset + contiguous - 1);
                    prop_assert!(byte(offset + contiguous) != last + 1);
                    prop_assert!(map.offset_of(Iova(byte(offset)), len).is_err());
                }
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }
}
