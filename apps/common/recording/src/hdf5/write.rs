//! Writer of HDF5 recordings.

use std::path::Path;
use std::time::SystemTime;

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Attribute, File, Group, Result};
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::Ring;
use pollux_na62::rich::geometry::{PMS, POSITIONS, disk_of};
use pollux_pmd::{Cause, Ledger};

use super::column::{Flush, attribute, describe, group, text, text_set};
use super::columns::{EventColumns, HitColumns, RingColumns};
use super::iso;
use super::layout::{EVENTS_WRITTEN, FINE_NS, VERSION, WITHOUT_RUN, flag};
use crate::error::shown;
use crate::{Error, Facts};

/// Description of a recording's run.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Name of the program.
    pub program: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its configuration, in TOML.
    pub configuration: &'a str,
    /// Start of the run, or of this file of it.
    pub start: SystemTime,
    /// Number of the run.
    pub run: Option<u32>,
    /// Whether an existing file is overwritten.
    pub overwrite: bool,
}

/// Loss counts of a stream by its sequence numbers, at the end of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamLoss {
    /// Frames with a readable payload.
    pub frames: u64,
    /// Frames that never arrived.
    pub missing: u64,
    /// Frames that arrived twice.
    pub duplicates: u64,
    /// Frames that arrived out of order.
    pub reordered: u64,
    /// Frames that arrived too late for any use.
    pub late: u64,
}

/// A rule by which events were decided.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The rule set that it belonged to.
    pub rule_set: u16,
    /// Its bit among the rules of a decision.
    pub bit: u8,
    /// Its name.
    pub name: String,
    /// Its bounds, as text. The data set is called `asks`.
    pub criteria: String,
}

/// Summary at the end of a run.
#[derive(Clone, Copy)]
pub struct Ending<'a> {
    /// End of the run.
    pub end: SystemTime,
    /// The ledger: the place of every frame.
    pub ledger: &'a Ledger,
    /// Loss counts of each stream.
    pub streams: &'a [StreamLoss],
    /// The rules of all sets.
    pub rules: &'a [Rule],
    /// Events that should have been recorded, and are not.
    pub lost: u64,
}

/// A recording, open for writing.
pub struct Writer {
    path: String,
    file: File,
    entry: Group,
    events: EventColumns,
    hits: HitColumns,
    rings: RingColumns,
    /// Number of events that are whole in the file.
    written: Attribute,
    next_event: u64,
    next_hit: u64,
    next_ring: u64,
}

impl Writer {
    /// Creates the file.
    ///
    /// # Errors
    /// A path that cannot be written; a file that is there, unless it is to be overwritten.
    pub fn create(path: &Path, about: &About<'_>) -> Result<Self, Error> {
        let path = shown(path);
        Self::new(&path, about).map_err(|error| Error::Hdf5 { path, error })
    }

    fn new(path: &str, about: &About<'_>) -> Result<Self> {
        let file = if about.overwrite {
            File::create(path)
        } else {
            File::create_excl(path)
        }?;
        attribute(&file, "NX_class", "NXroot")?;
        attribute(&file, "default", "entry")?;
        let creator = format!("{} {}", about.program, about.version);
        attribute(&file, "creator", &creator)?;
        attribute(&file, "file_time", &iso::text(about.start))?;
        let version = file.new_attr::<u32>().create("pollux_version")?;
        let numbered = about.run.is_some();
        version.write_scalar(if numbered { &VERSION } else { &WITHOUT_RUN })?;

        let entry = group(&file, "entry", "NXentry")?;
        attribute(&entry, "default", "hits")?;
        if let Some(run) = about.run {
            let number = entry.new_attr::<u32>().create("run_number")?;
            number.write_scalar(&run)?;
        }
        text_set(&entry, "title", "L0 events of the RICH")?;
        text_set(&entry, "start_time", &iso::text(about.start))?;
        let program = text_set(&entry, "program_name", about.program)?;
        attribute(&program, "version", about.version)?;
        let note = group(&entry, "configuration", "NXnote")?;
        text_set(&note, "type", "application/toml")?;
        text_set(&note, "data", about.configuration)?;
        detector(&entry)?;

        let events = EventColumns::create(&entry, numbered)?;
        let hits = HitColumns::create(&entry)?;
        let rings = RingColumns::create(&entry)?;
        // As NXevent_data has them, in addition to the hits.
        entry.link_hard("events/timestamp", "hits/event_time_zero")?;
        entry.link_hard("events/hit_index", "hits/event_index")?;
        let written = entry.group("events")?.new_attr::<u64>();
        let written = written.create(EVENTS_WRITTEN)?;
        written.write_scalar(&0_u64)?;
        // A killed run leaves a readable file.
        file.flush()?;
        Ok(Self {
            path: path.into(),
            file,
            entry,
            events,
            hits,
            rings,
            written,
            next_event: 0,
            next_hit: 0,
            next_ring: 0,
        })
    }

    /// Adds an event to the buffered ones.
    pub fn push(&mut self, facts: &Facts, hits: &[Hit], rings: &[Ring]) {
        let Self { events, .. } = self;
        let flags = [
            (flag::ACCEPTED, facts.accepted),
            (flag::COMPLETE, facts.complete),
            (flag::LATE, facts.late),
            (flag::MONITORED, facts.monitored),
            (flag::TRUNCATED, facts.truncated),
            (flag::DISPUTED, facts.disputed),
        ];
        let set = flags.into_iter().filter(|&(_, holds)| holds);
        events.flags.push(set.fold(0, |all, (bit, _)| all | bit));
        events.timestamp.push(facts.timestamp);
        if let Some(burst) = &mut events.burst {
            burst.push(facts.burst.unwrap_or(0));
        }
        events.sources.push(facts.sources);
        events.rules.push(facts.rules);
        events.rule_set.push(facts.rule_set);
        events.hits.push(hits.len() as u16);
        events.rings.push(rings.len() as u8);
        events.hit_index.push(self.next_hit);
        events.ring_index.push(self.next_ring);
        self.next_event += 1;
        self.next_hit += hits.len() as u64;
        self.next_ring += rings.len() as u64;
        for hit in hits {
            self.hits.tube.push(hit.pm);
            self.hits.time.push(f32::from(hit.fine) * FINE_NS);
        }
        for ring in rings {
            self.rings.push(ring);
        }
    }

    /// Writes the buffered events, so that the file holds them if the process ends here.
    ///
    /// # Errors
    /// A disk that fails: the file keeps the events of the flushes before, and takes no more.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.write().map_err(|error| self.failed(error))
    }

    /// The number of events is written last: it covers what is on the disk, and nothing else. The
    /// columns are not a measure: the library extends one at once, its chunks may fail later, and items
    /// without a chunk read as zeros. Nor can they be shortened then: the library has removed sound
    /// chunks of a column of which a chunk had failed.
    fn write(&mut self) -> Result<()> {
        self.columns().try_for_each(Flush::flush)?;
        self.file.flush()?;
        self.written.write_scalar(&self.next_event)?;
        self.file.flush()
    }

    fn columns(&mut self) -> impl Iterator<Item = &mut dyn Flush> {
        let columns = self.hits.all().into_iter().chain(self.rings.all());
        columns.chain(self.events.all())
    }

    fn failed(&self, error: hdf5_metno::Error) -> Error {
        Error::Hdf5 {
            path: self.path.clone(),
            error,
        }
    }

    /// Completes the file with the summary.
    ///
    /// # Errors
    /// A disk that fails.
    pub fn finish(mut self, ending: &Ending<'_>) -> Result<(), Error> {
        self.flush()?;
        let path = self.path.clone();
        self.end(ending)
            .map_err(|error| Error::Hdf5 { path, error })
    }

    fn end(self, ending: &Ending<'_>) -> Result<()> {
        rules(&self.entry, ending.rules)?;
        let loss = group(&self.entry, "loss", "NXcollection")?;
        let places: Vec<_> = ending.ledger.places().collect();
        let names: Vec<_> = places.iter().map(|(name, _)| text(name)).collect();
        texts(&loss, "place", &names)?;
        let causes: Vec<Cause> = Cause::all().collect();
        let names: Vec<_> = causes.iter().map(|cause| text(cause.name())).collect();
        texts(&loss, "cause", &names)?;
        let dropped = places.iter().flat_map(|(_, balance)| {
            let causes = causes.iter();
            causes.map(|&cause| balance.dropped_for(cause))
        });
        let dropped: Vec<u64> = dropped.collect();
        let set = loss
            .new_dataset::<u64>()
            .shape((places.len(), causes.len()))
            .create("dropped")?;
        set.as_writer().write_raw(&dropped)?;
        describe(&set, "", "Lost frames by place and cause")?;
        let column = |name: &str, what: &str, values: Vec<u64>| {
            let set = loss.new_dataset_builder().with_data(&values).create(name)?;
            describe(&set, "", what)
        };
        let of = |value: fn(&pollux_pmd::Balance) -> u64| {
            places.iter().map(|(_, balance)| value(balance)).collect()
        };
        column(
            "from_wire",
            "Frames that reached each place from outside",
            of(|b| b.from_wire),
        )?;
        column(
            "delivered",
            "Frames that reached their consumer there",
            of(|b| b.delivered),
        )?;
        let of = |value: fn(&StreamLoss) -> u64| ending.streams.iter().map(value).collect();
        column("stream_frames", "Frames of each stream", of(|s| s.frames))?;
        column(
            "stream_missing",
            "Frames that never came",
            of(|s| s.missing),
        )?;
        column(
            "stream_duplicates",
            "Frames that came twice",
            of(|s| s.duplicates),
        )?;
        column(
            "stream_reordered",
            "Frames out of order",
            of(|s| s.reordered),
        )?;
        column("stream_late", "Frames that came too late", of(|s| s.late))?;
        column(
            "events_lost",
            "Events that were not recorded",
            vec![ending.lost],
        )?;
        self.file.flush()?;
        // Last: it marks the file as complete.
        text_set(&self.entry, "end_time", &iso::text(ending.end))?;
        self.file.flush()?;
        self.file.close()
    }
}

/// Positions of the photomultipliers.
fn detector(entry: &Group) -> Result<()> {
    let instrument = group(entry, "instrument", "NXinstrument")?;
    let rich = group(&instrument, "rich", "NXdetector")?;
    let ids: Vec<u16> = (0..PMS as u16).collect();
    let disks: Vec<u8> = ids.iter().map(|&pm| disk_of(pm)).collect();
    let set = rich
        .new_dataset_builder()
        .with_data(&ids)
        .create("detector_number")?;
    describe(&set, "", "Photomultipliers")?;
    let set = rich
        .new_dataset_builder()
        .with_data(&disks)
        .create("disk")?;
    describe(&set, "", "0 Jura, 1 Saleve")?;
    for (axis, name) in ["x_pixel_offset", "y_pixel_offset"].into_iter().enumerate() {
        let offsets: Vec<f32> = POSITIONS.iter().map(|position| position[axis]).collect();
        let set = rich
            .new_dataset_builder()
            .with_data(&offsets)
            .create(name)?;
        describe(&set, "mm", "From the centre of the disk")?;
    }
    Ok(())
}

/// Meaning of the bits of an event's rules.
fn rules(entry: &Group, rules: &[Rule]) -> Result<()> {
    let group = group(entry, "rules", "NXcollection")?;
    let sets: Vec<_> = rules.iter().map(|rule| rule.rule_set).collect();
    let bits: Vec<_> = rules.iter().map(|rule| rule.bit).collect();
    let names: Vec<_> = rules.iter().map(|rule| text(&rule.name)).collect();
    let criteria: Vec<_> = rules.iter().map(|rule| text(&rule.criteria)).collect();
    let set = group.new_dataset_builder().with_data(&sets);
    describe(&set.create("rule_set")?, "", "The set that the rule is of")?;
    let set = group.new_dataset_builder().with_data(&bits);
    describe(&set.create("bit")?, "", "Its bit in the rules of an event")?;
    texts(&group, "name", &names)?;
    texts(&group, "asks", &criteria)
}

fn texts(group: &Group, name: &str, values: &[VarLenUnicode]) -> Result<()> {
    group
        .new_dataset_builder()
        .with_data(values)
        .create(name)
        .map(drop)
}
