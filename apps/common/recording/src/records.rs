//! Event file of 64-byte records (docs/formats/event-record.md).

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use pollux_na62::l0::{L0_EVENT, L0Record};
use pollux_na62::rich::find::MAX_RINGS;
use pollux_pmd::event::EventRecord;

use crate::error::shown;
use crate::{Error, Event, Facts};

/// First bytes of the file.
pub(crate) const MAGIC: &[u8; 8] = b"PXEVENTS";
/// The latest version, of a run with a number.
const VERSION: u32 = 2;
const RECORD: usize = size_of::<EventRecord>();

/// First 64 bytes of an event file: magic, version, record size, and the number of the run if it
/// has one, which makes it version 2.
#[must_use]
pub fn record_header(run: Option<u32>) -> [u8; RECORD] {
    let version = if run.is_some() { VERSION } else { 1 };
    let mut header = [0; RECORD];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&(RECORD as u32).to_le_bytes());
    header[16..20].copy_from_slice(&run.unwrap_or(0).to_le_bytes());
    header
}

/// An event file, open for reading.
pub struct Records {
    path: String,
    file: File,
    len: usize,
    run: Option<u32>,
    /// Bytes behind the last whole record.
    rest: usize,
}

impl Records {
    /// Opens a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is none of events.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let path_of = || shown(path);
        let failed = |error| Error::Io {
            path: path_of(),
            error,
        };
        let mut file = File::open(path).map_err(failed)?;
        let mut header = [0; RECORD];
        file.read_exact(&mut header)
            .map_err(|_| Error::Foreign { path: path_of() })?;
        if header[..8] != *MAGIC {
            return Err(Error::Foreign { path: path_of() });
        }
        let [version, size, run] = [8, 12, 16].map(|at| {
            let word = header[at..].first_chunk().copied();
            u32::from_le_bytes(word.unwrap_or_default())
        });
        if !(1..=VERSION).contains(&version) || size != RECORD as u32 {
            return Err(Error::Version {
                path: path_of(),
                version: format!("{version} (records of {size} bytes)"),
                known: VERSION,
            });
        }
        let bytes = file.metadata().map_err(failed)?.len() as usize - RECORD;
        Ok(Self {
            path: path_of(),
            file,
            len: bytes / RECORD,
            run: (version >= 2).then_some(run),
            rest: bytes % RECORD,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of the run, if it has one.
    #[must_use]
    pub fn run(&self) -> Option<u32> {
        self.run
    }

    pub(crate) fn warning(&self) -> Option<String> {
        let Self {
            path, len, rest, ..
        } = self;
        (*rest > 0).then(|| format!("{path} ends within record {len}: {rest} bytes are left over"))
    }

    pub(crate) fn read(&mut self, range: Range<usize>) -> Result<Vec<Event>, Error> {
        let mut bytes = vec![0; range.len() * RECORD];
        let at = SeekFrom::Start(((range.start + 1) * RECORD) as u64);
        let mut read = || -> io::Result<()> {
            self.file.seek(at)?;
            self.file.read_exact(&mut bytes)
        };
        read().map_err(|error| Error::Io {
            path: self.path.clone(),
            error,
        })?;
        let (records, _) = bytes.as_chunks();
        let events = range.zip(records).map(|(number, bytes)| {
            event(bytes).map_err(|what| Error::Damaged {
                path: self.path.clone(),
                what: format!("record {number}: {what}"),
            })
        });
        events.collect()
    }
}

fn event(bytes: &[u8; RECORD]) -> Result<Event, String> {
    let record = EventRecord::from_bytes(bytes);
    let Some(l0) = L0Record::from_event(&record) else {
        let (kind, ours) = (record.kind.0, L0_EVENT.0);
        return Err(format!("kind {kind:#04x} where {ours:#04x} is an L0 event"));
    };
    if usize::from(l0.ring_count) > MAX_RINGS {
        return Err(format!(
            "{} rings, at most {MAX_RINGS} can be",
            l0.ring_count
        ));
    }
    Ok(Event {
        facts: Facts {
            timestamp: l0.timestamp,
            burst: (l0.burst != 0).then_some(l0.burst),
            sources: l0.sources,
            accepted: l0.accepted,
            complete: l0.complete,
            late: l0.late,
            monitored: l0.monitored,
            truncated: l0.truncated,
            disputed: l0.disputed,
            rules: l0.rules,
            rule_set: l0.rule_set,
        },
        hit_count: l0.hits.into(),
        hits: None,
        rings: l0.rings().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Events;
    use pollux_na62::rich::find::Ring;
    use proptest::prelude::*;

    fn record(n: u16) -> L0Record {
        let mut rings = [Ring::default(); MAX_RINGS];
        rings[0] = Ring {
            r: 100.0 + f32::from(n),
            hits: n,
            ..Ring::default()
        };
        L0Record {
            timestamp: 1000 + u64::from(n),
            hits: n,
            sources: 0b1101,
            ring_count: 1,
            accepted: n.is_multiple_of(2),
            rings,
            ..L0Record::default()
        }
    }

    fn file(records: u16) -> Vec<u8> {
        let bytes = (0..records).flat_map(|n| record(n).to_event(n.into()).to_bytes());
        record_header(None).into_iter().chain(bytes).collect()
    }

    fn open(bytes: &[u8]) -> Result<Events, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.events");
        std::fs::write(&path, bytes).unwrap();
        // The open file persists without its name.
        Events::open(&path)
    }

    fn error_text(bytes: &[u8]) -> String {
        open(bytes).err().unwrap().to_string()
    }

    #[test]
    fn events_are_those_that_were_written() {
        let mut events = open(&file(10)).unwrap();
        assert_eq!((events.len(), events.warning()), (10, None));
        let read = events.read(3..5).unwrap();
        assert_eq!(read.len(), 2);
        let Event {
            facts,
            hit_count,
            hits,
            rings,
        } = &read[1];
        assert_eq!((facts.timestamp, facts.sources), (1004, 0b1101));
        assert!(facts.accepted && !facts.complete && !read[0].facts.accepted);
        assert_eq!((*hit_count, hits), (4, &None));
        assert_eq!((rings.len(), rings[0].r, rings[0].hits), (1, 104.0, 4));
        assert_eq!(events.read(8..100).unwrap().len(), 2);
        assert_eq!(events.read(100..200).unwrap(), []);
    }

    /// Version 2 adds the number of the run, and is otherwise the same.
    #[test]
    fn a_run_with_a_number_has_it_in_its_file() {
        let mut bytes = file(3);
        assert_eq!(open(&bytes).unwrap().run().unwrap(), None);
        bytes[..64].copy_from_slice(&record_header(Some(0x0001_e240)));
        assert_eq!(bytes[8..20], [2, 0, 0, 0, 64, 0, 0, 0, 0x40, 0xe2, 1, 0]);
        let mut events = open(&bytes).unwrap();
        assert_eq!((events.len(), events.run().unwrap()), (3, Some(123_456)));
        assert_eq!(
            events.read(0..3).unwrap(),
            open(&file(3)).unwrap().read(0..3).unwrap()
        );
    }

    #[test]
    fn what_is_no_event_file_is_named() {
        for bytes in [
            &b""[..],
            b"PXEVENT",
            b"PXEVENTS",
            b"\xd4\xc3\xb2\xa1, and more than that",
        ] {
            assert!(
                error_text(bytes).contains("is not a file of events"),
                "{bytes:?}"
            );
        }
        let mut other = file(1);
        other[8] = 3;
        assert!(
            error_text(&other).contains("version 3 (records of 64 bytes)"),
            "{}",
            error_text(&other)
        );
        let cut = file(3);
        let mut events = open(&cut[..cut.len() - 10]).unwrap();
        assert_eq!(events.len(), 2);
        assert!(
            events
                .warning()
                .unwrap()
                .contains("ends within record 2: 54 bytes")
        );
        let mut kind = file(3);
        kind[64 + 64 + 62] = 1;
        events = open(&kind).unwrap();
        let message = events.read(0..3).unwrap_err().to_string();
        assert!(message.contains("record 1: kind 0x01"), "{message}");
        if cfg!(not(feature = "hdf5")) {
            let message = error_text(b"\x89HDF\r\n\x1a\n and so on");
            assert!(message.contains("--features hdf5"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let all: Vec<u8> = record_header(None).into_iter().chain(bytes).collect();
            let mut events = open(&all).unwrap();
            let _ = events.read(0..usize::MAX);
        }
    }
}
