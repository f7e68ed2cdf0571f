//! L0 events on disk: the event file of 64-byte records, and with the feature `hdf5` recordings in
//! HDF5, with the hits.
//!
//! | item | what |
//! | --- | --- |
//! | [`Events`] | either, to be read |
//! | [`record_header`], [`Records`] | the event file: docs/formats/event-record.md |
//! | `Writer`, `Recording` | the recording: docs/formats/recording.md |

#[cfg(feature = "hdf5")]
mod hdf5;
mod records;

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;

use pollux_na62::rich::Hit;
use pollux_na62::rich::find::Ring;

#[cfg(feature = "hdf5")]
pub use self::hdf5::{About, Ending, Recording, Rule, StreamLoss, Writer};
pub use self::records::{Records, record_header};

/// First bytes of an HDF5 file (HDF5 file format specification, "Superblock").
const HDF5: &[u8; 8] = b"\x89HDF\r\n\x1a\n";

/// What is known of an event besides its hits and rings.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Time of the event, in slots of 25 ns.
    pub timestamp: u64,
    /// Number of the burst that it is of, from 1 on, in a run with a number.
    pub burst: Option<u16>,
    /// Bit s: source s contributed.
    pub sources: u16,
    /// The trigger's word.
    pub accepted: bool,
    /// All sources contributed, with all of their hits.
    pub complete: bool,
    /// Hits were left out, as the event had no room for more.
    pub truncated: bool,
    /// Sources disagreed on the time, and none had a majority: this is the event of some of them.
    pub disputed: bool,
    /// The budget had passed when the decision was sent. Never of a capture that is read again.
    pub late: bool,
    /// It was rejected, and is kept for monitoring.
    pub monitored: bool,
    /// Bit r: rule r of the set accepted it.
    pub rules: u8,
    /// Which set of rules decided.
    pub rule_set: u16,
}

/// An event as a file has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// What is known of it.
    pub facts: Facts,
    /// Number of hits.
    pub hit_count: usize,
    /// The hits, where the file has them.
    pub hits: Option<Vec<Hit>>,
    /// The rings; what the file does not have of them is 0.
    pub rings: Vec<Ring>,
}

/// Why a file of events could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system does not let it be read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// It is another kind of file.
    #[error("{path} is no file of events: it begins like neither an event file nor HDF5")]
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
        /// Ours.
        known: u32,
    },
    /// Something in it cannot be.
    #[error("{path} is damaged: {what}")]
    Damaged {
        /// The file.
        path: String,
        /// What, and where.
        what: String,
    },
    /// HDF5 cannot do something.
    #[cfg(feature = "hdf5")]
    #[error("{path}: {}", hdf5::told(.error))]
    Hdf5 {
        /// The file.
        path: String,
        /// What the library says.
        error: hdf5_metno::Error,
    },
}

/// A file of events, of either kind.
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
            // What is shorter is no file of events.
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

    /// Events in the file.
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

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is wrong with its end, if so: a file whose writer was stopped has one.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Records(records) => records.warning(),
            #[cfg(feature = "hdf5")]
            Self::Recording(recording) => recording.warning(),
        }
    }

    /// Reads events by their numbers, from 0; those beyond the last are not there.
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

/// A path for messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
