//! Errors of writing image files.

use crate::detector::DetectorError;
use crate::image::PixelError;

/// Reason why an image file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The detector cannot be described.
    #[error(transparent)]
    Detector(#[from] DetectorError),
    /// The pixels of an image do not fit the file, which is unchanged.
    #[error("{path}: image {image} is refused: {error}")]
    Pixels {
        /// The file.
        path: String,
        /// Number of the image in the file, from 0.
        image: u64,
        /// The reason.
        error: PixelError,
    },
    /// Compressed pixels for a file whose images are not compressed.
    #[error(
        "{path}: image {image} is refused: it is compressed, and the file has no compression: give \
         raw pixels, or create the file with bitshuffle-LZ4"
    )]
    Compressed {
        /// The file.
        path: String,
        /// Number of the image in the file, from 0.
        image: u64,
    },
    /// HDF5 reports an error.
    #[error("{path}: {}", message(.error))]
    Hdf5 {
        /// The file.
        path: String,
        /// Error of the library.
        error: hdf5_metno::Error,
    },
}

impl FileError {
    /// Whether only this image is affected: the file can take others.
    #[must_use]
    pub const fn is_of_image(&self) -> bool {
        matches!(self, Self::Pixels { .. } | Self::Compressed { .. })
    }
}

/// Message of an error of HDF5: that of the system, if the system refused, or else that of the library.
fn message(error: &hdf5_metno::Error) -> String {
    const SYSTEM: &str = "error message = '";
    let text = error.to_string();
    let system = text
        .split_once(SYSTEM)
        .and_then(|(_, rest)| rest.split_once('\''));
    match system {
        Some((message, _)) => message.into(),
        None => text,
    }
}
