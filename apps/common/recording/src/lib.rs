//! L0 events on disk: the event file of 64-byte records and, with the feature `hdf5`, recordings in
//! HDF5 with the hits.
//!
//! | item | what |
//! | --- | --- |
//! | [`Events`] | reader of either format |
//! | [`record_header`], [`Records`] | event file: docs/formats/event-record.md |
//! | `Writer`, `Recording` | recording: docs/formats/recording.md |

mod error;
mod event;
#[cfg(feature = "hdf5")]
mod hdf5;
mod records;

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

pub use self::error::Error;
use self::error::shown;
pub use self::event::{Event, Facts};
#[cfg(feature = "hdf5")]
pub use self::hdf5::{About, Ending, Recording, Rule, StreamLoss, Writer};
pub use self::records::{Records, record_header};

/// First bytes of an HDF5 file (HDF5 file format specification, "Superblock").
const HDF5: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// An event file of either format.
pub enum Events {
    /// The event file.
    Records(Records),
    /// The recording.
    #[cfg(feature = "hdf5")]
    Recording(Recording),
}

impl Events {
    /// Opens a file of either kind.
    ///
    /// # Errors
    /// A file that cannot be read, or is of another kind or version.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut magic = [0; 8];
        let read = File::open(path).and_then(|mut file| {
            // A shorter file is no event file.
            let n = file.read(&mut magic)?;
            Ok(n == magic.len())
        });
        let path_of = || shown(path);
        let error = |error| Error::Io {
            path: path_of(),
            error,
        };
        match (read.map_err(error)?, &magic) {
            (true, records::MAGIC) => Records::open(path).map(Self::Records),
            #[cfg(feature = "hdf5")]
            (true, HDF5) => Recording::open(path).map(Self::Recording),
            #[cfg(not(feature = "hdf5"))]
            (true, HDF5) => Err(Error::NotBuiltIn { path: path_of() }),
            _ => Err(Error::Foreign { path: path_of() }),
        }
    }

    /// Number of events in the file.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Records(records) => records.len(),
            #[cfg(feature = "hdf5")]
            Self::Recording(recording) => recording.len(),
        }
    }

    /// The number of the run, if it has one.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn run(&self) -> Result<Option<u32>, Error> {
        match self {
            Self::Records(records) => Ok(records.run()),
            #[cfg(feature = "hdf5")]
            Self::Recording(recording) => recording.run(),
        }
    }

    /// Whether the file has no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Describes a damaged end of the file. A file whose writer was stopped has one.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Records(records) => records.warning(),
            #[cfg(feature = "hdf5")]
            Self::Recording(recording) => recording.warning(),
        }
    }

    /// Reads events by their numbers, from 0. Numbers beyond the last are ignored.
    ///
    /// # Errors
    /// A file that cannot be read, or is damaged there.
    pub fn read(&mut self, range: Range<usize>) -> Result<Vec<Event>, Error> {
        let range = range.start.min(self.len())..range.end.min(self.len());
        if range.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Self::Records(records) => records.read(range),
            #[cfg(feature = "hdf5")]
            Self::Recording(recording) => recording.read(range),
        }
    }
}
