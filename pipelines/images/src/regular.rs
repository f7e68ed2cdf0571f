//! Input files of which the size is known.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Reads the first `most` bytes of a file at most; its length, and the bytes.
///
/// # Errors
/// The file cannot be read. A directory, a pipe or a device is refused before it is opened: the open of
/// a pipe waits for a writer.
pub fn read_regular(path: &Path, most: usize) -> io::Result<(u64, Vec<u8>)> {
    let found = fs::metadata(path)?;
    if found.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        let why = "not a regular file; copy its contents into one";
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let len = found.len();
    let mut bytes = Vec::with_capacity(most.min(usize::try_from(len).unwrap_or(most)));
    File::open(path)?
        .take(most as u64)
        .read_to_end(&mut bytes)?;
    Ok((len, bytes))
}
