//! Reader of HDF5 recordings.

use std::ops::Range;
use std::path::Path;

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{File, Group, H5Type, Result};
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::{MAX_RINGS, Ring};

use super::layout::{EVENTS_WRITTEN, FINE_NS, VERSION, flag};
use crate::error::shown;
use crate::{Error, Event, Facts};

/// A recording, open for reading.
pub struct Recording {
    path: String,
    file: File,
    events: Group,
    hits: Group,
    rings: Group,
    len: usize,
    /// Its writer has completed it.
    complete: bool,
}

/// The columns of some events.
struct Rows {
    timestamp: Vec<u64>,
    /// In a run with a number.
    burst: Option<Vec<u16>>,
    sources: Vec<u16>,
    flags: Vec<u8>,
    rules: Vec<u8>,
    rule_set: Vec<u16>,
    hits: Extents,
    rings: Extents,
}

/// Range of the hits, or rings, of an event.
struct Extents {
    first: Vec<u64>,
    count: Vec<usize>,
}

impl Extents {
    fn read<C: H5Type + Copy + Into<u32>>(
        events: &Group,
        [first, count]: [&str; 2],
        range: &Range<usize>,
    ) -> Result<Self> {
        let count: Vec<C> = read(events, count, range)?;
        Ok(Self {
            first: read(events, first, range)?,
            count: count.into_iter().map(|n| n.into() as usize).collect(),
        })
    }

    /// Items of all the events, stored contiguously.
    fn all(&self) -> Option<Range<usize>> {
        let start = usize::try_from(*self.first.first()?).ok()?;
        let mut end = start;
        for (&first, &count) in self.first.iter().zip(&self.count) {
            if first != end as u64 {
                return None;
            }
            end = end.checked_add(count)?;
        }
        Some(start..end)
    }
}

impl Recording {
    /// Opens a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is no recording.
    pub fn open(path: &Path) -> std::result::Result<Self, Error> {
        let path = shown(path);
        let failed = |error| Error::Hdf5 {
            path: path.clone(),
            error,
        };
        let file = File::open(&path).map_err(failed)?;
        let version = file
            .attr("pollux_version")
            .and_then(|version| version.read_scalar());
        let version: u32 = version.map_err(|_| Error::Foreign { path: path.clone() })?;
        if !(1..=VERSION).contains(&version) {
            return Err(Error::Version {
                path,
                version: version.to_string(),
                known: VERSION,
            });
        }
        let open = || {
            let entry = file.group("entry")?;
            let [events, hits, rings] = ["events", "hits", "rings"].map(|name| entry.group(name));
            // Columns are written one after the other, and extended before their items are on the
            // disk: an event counts when all its columns have it and the writer has confirmed it.
            let events = events?;
            let columns = events.datasets()?;
            let len = columns
                .iter()
                .map(|column| column.size())
                .chain(confirmed(&events)?)
                .min()
                .unwrap_or(0);
            let complete = entry.link_exists("end_time");
            Ok((events, hits?, rings?, len, complete))
        };
        let (events, hits, rings, len, complete) = open().map_err(failed)?;
        Ok(Self {
            path,
            file,
            events,
            hits,
            rings,
            len,
            complete,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn warning(&self) -> Option<String> {
        let path = &self.path;
        (!self.complete)
            .then(|| format!("{path} was not completed: its writer runs, or was killed"))
    }

    /// The configuration of the run, in TOML.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn configuration(&self) -> std::result::Result<String, Error> {
        self.text("entry/configuration/data")
    }

    /// Start of the run, in ISO 8601.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn start(&self) -> std::result::Result<String, Error> {
        self.text("entry/start_time")
    }

    /// The number of the run, if it has one.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn run(&self) -> std::result::Result<Option<u32>, Error> {
        let read = || {
            let entry = self.file.group("entry")?;
            if entry.attr_names()?.iter().all(|name| name != "run_number") {
                return Ok(None);
            }
            entry.attr("run_number")?.read_scalar().map(Some)
        };
        read().map_err(|error| Error::Hdf5 {
            path: self.path.clone(),
            error,
        })
    }

    fn text(&self, name: &str) -> std::result::Result<String, Error> {
        let set = self.file.dataset(name);
        let text: Result<VarLenUnicode> = set.and_then(|set| set.read_scalar());
        let text = text.map_err(|error| Error::Hdf5 {
            path: self.path.clone(),
            error,
        })?;
        Ok(text.as_str().into())
    }

    pub(crate) fn read(&mut self, range: Range<usize>) -> std::result::Result<Vec<Event>, Error> {
        let failed = |error| Error::Hdf5 {
            path: self.path.clone(),
            error,
        };
        let rows = self.rows(&range).map_err(failed)?;
        let damaged = |what: &str| Error::Damaged {
            path: self.path.clone(),
            what: format!("events {} to {}: {what}", range.start, range.end - 1),
        };
        let (hits, rings) = (rows.hits.all(), rows.rings.all());
        let (Some(hits), Some(rings)) = (hits, rings) else {
            return Err(damaged("their hits or rings do not follow each other"));
        };
        if rows.rings.count.iter().any(|&n| n > MAX_RINGS) {
            return Err(damaged("one has more rings than can be"));
        }
        let beyond = |group: &Group, name, range: &Range<usize>| {
            group.dataset(name).map(|set| set.size() < range.end)
        };
        let cut = beyond(&self.hits, "event_id", &hits).map_err(failed)?
            || beyond(&self.rings, "x", &rings).map_err(failed)?;
        if cut {
            return Err(damaged("their hits or rings are not there"));
        }
        let mut hits = self.hits_of(&hits).map_err(failed)?.into_iter();
        let mut rings = self.rings_of(&rings).map_err(failed)?.into_iter();
        let event = |n: usize| {
            let flags = rows.flags[n];
            Event {
                facts: Facts {
                    timestamp: rows.timestamp[n],
                    burst: rows.burst.as_ref().map(|burst| burst[n]),
                    sources: rows.sources[n],
                    accepted: flags & flag::ACCEPTED != 0,
                    complete: flags & flag::COMPLETE != 0,
                    monitored: flags & flag::MONITORED != 0,
                    late: flags & flag::LATE != 0,
                    truncated: flags & flag::TRUNCATED != 0,
                    disputed: flags & flag::DISPUTED != 0,
                    rules: rows.rules[n],
                    rule_set: rows.rule_set[n],
                },
                hit_count: rows.hits.count[n],
                hits: Some(hits.by_ref().take(rows.hits.count[n]).collect()),
                rings: rings.by_ref().take(rows.rings.count[n]).collect(),
            }
        };
        Ok((0..range.len()).map(event).collect())
    }

    fn rows(&self, range: &Range<usize>) -> Result<Rows> {
        let events = &self.events;
        Ok(Rows {
            timestamp: read(events, "timestamp", range)?,
            burst: (events.link_exists("burst"))
                .then(|| read(events, "burst", range))
                .transpose()?,
            sources: read(events, "sources", range)?,
            flags: read(events, "flags", range)?,
            rules: read(events, "rules", range)?,
            rule_set: read(events, "rule_set", range)?,
            hits: Extents::read::<u16>(events, ["hit_index", "hit_count"], range)?,
            rings: Extents::read::<u8>(events, ["ring_index", "ring_count"], range)?,
        })
    }

    fn hits_of(&self, range: &Range<usize>) -> Result<Vec<Hit>> {
        let tubes: Vec<u16> = read(&self.hits, "event_id", range)?;
        let times: Vec<f32> = read(&self.hits, "event_time_offset", range)?;
        let hits = tubes.into_iter().zip(times).map(|(pm, time)| Hit {
            pm,
            // A cast saturates.
            fine: (time / FINE_NS) as _,
        });
        Ok(hits.collect())
    }

    fn rings_of(&self, range: &Range<usize>) -> Result<Vec<Ring>> {
        let rings = &self.rings;
        let disks: Vec<u8> = read(rings, "disk", range)?;
        let hits: Vec<u16> = read(rings, "hits", range)?;
        let lengths = ["x", "y", "r", "chi2", "time", "time_spread"];
        let lengths: Vec<Vec<f32>> = lengths
            .iter()
            .map(|name| read(rings, name, range))
            .collect::<Result<_>>()?;
        let ring = |n: usize| {
            let [x, y, r, chi2, time, time_spread] = std::array::from_fn(|i| lengths[i][n]);
            Ring {
                disk: disks[n],
                x,
                y,
                r,
                hits: hits[n],
                chi2,
                time: time / FINE_NS,
                time_spread: time_spread / FINE_NS,
                ..Ring::default()
            }
        };
        Ok((0..range.len()).map(ring).collect())
    }
}

/// Number of events that the writer has confirmed. Files of earlier programs do not have it.
fn confirmed(events: &Group) -> Result<Option<usize>> {
    if events
        .attr_names()?
        .iter()
        .all(|name| name != EVENTS_WRITTEN)
    {
        return Ok(None);
    }
    let written: u64 = events.attr(EVENTS_WRITTEN)?.read_scalar()?;
    Ok(Some(usize::try_from(written).unwrap_or(usize::MAX)))
}

/// Some items of a column: as many as requested, or an error.
fn read<T: H5Type>(group: &Group, name: &str, range: &Range<usize>) -> Result<Vec<T>> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let items = group.dataset(name)?.read_slice_1d::<T, _>(range.clone())?;
    Ok(items.into_raw_vec_and_offset().0)
}
