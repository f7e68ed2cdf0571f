//! Errors of reading and writing event files.

use std::io;
use std::path::Path;

/// Reason why an event file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refuses to read it.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// Error of the system.
        error: io::Error,
    },
    /// It is another kind of file.
    #[error("{path} is not a file of events: it starts like neither an event file nor HDF5")]
    Foreign {
        /// The file.
        path: String,
    },
    /// It is an HDF5 file, which this build does not read.
    #[error("{path} is an HDF5 file: build with --features hdf5 (needs libhdf5-dev) to read it")]
    NotBuiltIn {
        /// The file.
        path: String,
    },
    /// It is of another version of the format.
    #[error("{path} has version {version} of the format, and {known} is known")]
    Version {
        /// The file.
        path: String,
        /// Its version.
        version: String,
        /// Supported version.
        known: u32,
    },
    /// Some content is invalid.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// The invalid content, and its position.
        what: String,
    },
    /// HDF5 reports an error.
    #[cfg(feature = "hdf5")]
    #[error("{path}: {}", message(.error))]
    Hdf5 {
        /// The file.
        path: String,
        /// Error of the library.
        error: hdf5_metno::Error,
    },
}

/// A path for messages.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Message of an error of HDF5: that of the system, if the system refused, or else that of the library.
#[cfg(feature = "hdf5")]
fn message(error: &hdf5_metno::Error) -> String {
    const SYSTEM: &str = "error message = '";
    let text = error.to_string();
    let system = text
        .split_once(SYSTEM)
        .and_then(|(_, rest)| rest.split_once('\''));
    match system {
        // The library locks a file that is open for writing (H5Fopen).
        Some(("Resource temporarily unavailable", _)) => {
            "it is being written: look again when the run has ended".into()
        }
        Some((message, _)) => message.into(),
        None => text,
    }
}
