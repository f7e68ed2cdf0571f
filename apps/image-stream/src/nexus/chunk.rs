//! Direct writes of chunks: the one call that hdf5-metno does not have.

use std::ptr;

use hdf5_metno::sync::sync;
use hdf5_metno::{Dataset, Error, Result};
use hdf5_metno_sys::h5::hsize_t;
use hdf5_metno_sys::h5d::H5Dwrite_chunk;
use hdf5_metno_sys::h5p::H5P_DEFAULT;

/// The filters of the dataset have been applied to the bytes.
pub(super) const FILTERED: u32 = 0;

/// The first filter of the dataset has not been applied to the bytes.
pub(super) const NOT_FILTERED: u32 = 1;

/// Writes `bytes` as the chunk at `origin`, which is inside the dataset's extent and a multiple of
/// its chunk in each dimension, or the library refuses it. No filter runs. `skipped`: bit n is set if
/// filter n has not been applied to the bytes.
pub(super) fn write<const RANK: usize>(
    set: &Dataset,
    origin: [u64; RANK],
    skipped: u32,
    bytes: &[u8],
) -> Result<()> {
    // The call reads as many coordinates as the dataset has dimensions.
    if set.ndim() != RANK {
        return Err(format!("{RANK} coordinates for {} dimensions", set.ndim()).into());
    }
    let origin: [hsize_t; RANK] = origin;
    sync(|| {
        // SAFETY: the library's lock is held. `set` is an open dataset with RANK dimensions, and both
        // pointers are valid for the lengths that the call reads: RANK coordinates and `bytes.len()`
        // bytes. It keeps neither.
        let status = unsafe {
            H5Dwrite_chunk(
                set.id(),
                H5P_DEFAULT,
                skipped,
                ptr::from_ref(&origin).cast(),
                bytes.len(),
                bytes.as_ptr().cast(),
            )
        };
        if status < 0 {
            return Err(Error::query().unwrap_or_else(|error| error));
        }
        Ok(())
    })
}
