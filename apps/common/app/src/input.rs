//! Input files that are read whole, up to a limit: a named pipe or a device may have no end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Longest text, such as a configuration: 16 MiB.
const MAX_TEXT: u64 = 1 << 24;

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// The file cannot be read, or it is longer.
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(most.saturating_add(1));
    if file.read_to_end(&mut bytes)? as u64 > most {
        let why = format!("more than {most} B: give a shorter file");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a text, such as a configuration, of at most 16 MiB.
///
/// # Errors
/// The file cannot be read, is longer, or is no text in UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read_up_to(path, MAX_TEXT)?);
    text.map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = format!("no text in UTF-8: byte {at} is part of no character");
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "four").unwrap();
        assert_eq!(read_up_to(file.path(), 4).unwrap(), b"four");
        let long = read_up_to(file.path(), 3).unwrap_err();
        assert!(long.to_string().starts_with("more than 3 B"), "{long}");
        assert_eq!(read_text(file.path()).unwrap(), "four");
        std::fs::write(file.path(), [0xFF]).unwrap();
        let binary = read_text(file.path()).unwrap_err();
        assert!(binary.to_string().contains("UTF-8"), "{binary}");
    }

    #[test]
    fn a_device_without_an_end_is_refused() {
        let zero = Path::new("/dev/zero");
        assert!(read_up_to(zero, 1 << 20).is_err());
        assert!(read_text(zero).is_err());
    }
}
