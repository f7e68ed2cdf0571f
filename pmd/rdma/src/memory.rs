//! Memory that peers may access.

use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::region::MemoryRegion;

use crate::copy::{copy_from_shared, copy_to_shared};

/// Error: a range is not inside the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{len} B at offset {offset} of memory of {of} B")]
pub struct OutOfBounds {
    /// Offset of the range.
    pub offset: usize,
    /// Its bytes.
    pub len: usize,
    /// Bytes of the memory.
    pub of: usize,
}

/// Memory that peers may access: a region that is shared with them for good. Its bytes may change at any
/// time, so it is read and written by copies, and there is never a reference to them.
///
/// It is made from a region as a whole, which therefore holds nothing else: no packet buffers, no queue.
#[derive(Clone)]
pub struct Memory(Arc<MemoryRegion>);

impl Memory {
    /// The memory of a region.
    #[must_use]
    pub fn new(region: MemoryRegion) -> Self {
        Self(Arc::new(region))
    }

    /// Bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a region is never empty
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The region.
    pub(crate) fn region(&self) -> &MemoryRegion {
        &self.0
    }

    /// First byte of a range.
    pub(crate) fn at(&self, range: &Range<usize>) -> Result<NonNull<u8>, OutOfBounds> {
        let len = range.end.saturating_sub(range.start);
        let refused = OutOfBounds {
            offset: range.start,
            len,
            of: self.len(),
        };
        self.0.ptr_at(range.start, len).map_err(|_| refused)
    }

    /// Copies bytes from `offset` on to `to`. A peer that writes meanwhile may leave a mixture of old and
    /// new bytes.
    ///
    /// # Errors
    /// The range is not inside the memory; `to` is as it was.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), OutOfBounds> {
        let from = self.at(&(offset..offset.saturating_add(to.len())))?;
        // SAFETY: so many bytes are in the region (`at`), which lives as long as `self`.
        unsafe { copy_from_shared(from.as_ptr(), to) };
        Ok(())
    }

    /// Copies `from` to the bytes from `offset` on. A peer that reads meanwhile may get a mixture of old
    /// and new bytes.
    ///
    /// # Errors
    /// The range is not inside the memory, which is as it was.
    pub fn write(&self, offset: usize, from: &[u8]) -> Result<(), OutOfBounds> {
        let to = self.at(&(offset..offset.saturating_add(from.len())))?;
        // SAFETY: as in `read`.
        unsafe { copy_to_shared(to.as_ptr(), from) };
        Ok(())
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Memory").field(&self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_beside_it() {
        let memory = Memory::new(MemoryRegion::builder(8192).build().unwrap());
        assert!(memory.len() >= 8192);
        let all: Vec<u8> = (0..memory.len()).map(|n| n as u8 ^ 0x5a).collect();
        for len in [0, 1, 7, 8, 9, 63, 64, 255, 256, 257, 1000, 4096] {
            for offset in [0, 1, 8, 4000] {
                memory.write(0, &all).unwrap();
                let data: Vec<u8> = (0..len).map(|n| n as u8 | 1).collect();
                memory.write(offset, &data).unwrap();
                let mut expected = all.clone();
                expected[offset..offset + len].copy_from_slice(&data);
                let mut now = vec![0; all.len()];
                memory.read(0, &mut now).unwrap();
                assert!(now == expected, "{len} at {offset}");
                let mut part = vec![0; len];
                memory.read(offset, &mut part).unwrap();
                assert_eq!(part, data);
            }
        }
        let end = memory.len();
        assert!(memory.write(end - 1, &[1, 2]).is_err());
        assert!(memory.read(usize::MAX, &mut [0]).is_err());
        assert_eq!(memory.write(end, &[]), Ok(()));
    }
}
