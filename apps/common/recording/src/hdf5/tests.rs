//! Recordings are read back, by this crate and by plain HDF5.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use hdf5_metno::types::VarLenUnicode;
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::Ring;
use pollux_pmd::{Cause, Ledger, Tally};
use tempfile::TempDir;

use crate::{About, Ending, Error, Event, Events, Facts, Recording, Rule, StreamLoss, Writer};

const ABOUT: About<'_> = About {
    run: None,
    overwrite: true,
    program: "a test",
    version: "1.2.3",
    configuration: "[trigger]\nbudget_us = 1000\n",
    start: UNIX_EPOCH,
};

fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    (folder, path)
}

fn event(n: u16) -> Event {
    let hit = |i: u16| Hit {
        pm: (n + i) % 1952,
        fine: i % 256,
    };
    let ring = |i: u16| Ring {
        disk: (i % 2) as u8,
        x: -12.5 + f32::from(n),
        y: f32::from(i),
        r: 180.25,
        hits: 14,
        chi2: 21.5,
        time: 3.0,
        time_spread: 2.0,
        ..Ring::default()
    };
    let hits: Vec<_> = (0..n % 40).map(hit).collect();
    Event {
        facts: Facts {
            timestamp: (1 << 40) + u64::from(n),
            burst: None,
            sources: 0b1011,
            accepted: n.is_multiple_of(3),
            complete: n.is_multiple_of(2),
            late: n % 7 == 2,
            monitored: n % 3 == 1,
            truncated: n % 4 == 1,
            disputed: n % 7 == 1,
            rules: n.is_multiple_of(3).into(),
            rule_set: n / 100,
        },
        hit_count: hits.len(),
        hits: Some(hits),
        rings: (0..n % 5).map(ring).collect(),
    }
}

fn write(path: &Path, events: u16) -> Writer {
    let mut writer = Writer::create(path, &ABOUT).unwrap();
    for n in 0..events {
        let Event {
            facts, hits, rings, ..
        } = event(n);
        writer.push(&facts, &hits.unwrap(), &rings);
    }
    writer
}

#[test]
fn events_of_a_run_with_a_number_say_their_burst() {
    let (_folder, path) = file();
    let about = About {
        run: Some(7),
        ..ABOUT
    };
    let mut writer = Writer::create(&path, &about).unwrap();
    let of_burst = |n: u16| {
        let mut event = event(n);
        event.facts.burst = Some(1 + n / 10);
        event
    };
    for n in 0..100 {
        let Event {
            facts, hits, rings, ..
        } = of_burst(n);
        writer.push(&facts, &hits.unwrap(), &rings);
    }
    writer.flush().unwrap();
    drop(writer);
    let mut events = Events::open(&path).unwrap();
    assert_eq!(events.run().unwrap(), Some(7));
    let expected: Vec<_> = (0..100).map(of_burst).collect();
    assert_eq!(events.read(0..100).unwrap(), expected);
    let file = hdf5_metno::File::open(&path).unwrap();
    let bursts = file.dataset("entry/events/burst").unwrap();
    assert_eq!(
        bursts.read_raw::<u16>().unwrap()[..12],
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]
    );
}

fn complete(path: &Path, events: u16) {
    let (mut tally, mut ledger) = (Tally::new(), Ledger::new());
    tally.count_from_wire(10, 640);
    tally.count_delivered(7);
    tally.count_dropped(Cause::Late, 3);
    ledger.add("receive", tally.view());
    let streams = [StreamLoss {
        frames: 7,
        missing: 2,
        ..StreamLoss::default()
    }];
    let ending = Ending {
        end: UNIX_EPOCH + Duration::from_secs(61),
        ledger: &ledger,
        streams: &streams,
        rules: &[Rule {
            rule_set: 3,
            bit: 1,
            name: "pair".into(),
            criteria: "rings: 2 or more".into(),
        }],
        lost: 5,
    };
    write(path, events).finish(&ending).unwrap();
}

#[test]
fn events_come_back() {
    let (_folder, path) = file();
    complete(&path, 1000);
    let mut events = Events::open(&path).unwrap();
    assert_eq!((events.len(), events.warning()), (1000, None));
    let expected: Vec<_> = (0..1000).map(event).collect();
    assert_eq!(events.read(0..usize::MAX).unwrap(), expected);
    for at in [0, 1, 39, 500, 999] {
        assert_eq!(events.read(at..at + 1).unwrap(), expected[at..=at]);
    }
    assert_eq!(events.read(1000..1001).unwrap(), []);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.configuration().unwrap(), ABOUT.configuration);
    assert_eq!(recording.start().unwrap(), "1970-01-01T00:00:00Z");
}

#[test]
fn a_recording_without_events_is_one() {
    let (_folder, path) = file();
    complete(&path, 0);
    let mut events = Events::open(&path).unwrap();
    assert!(events.is_empty() && events.read(0..10).unwrap().is_empty());
}

/// As in docs/formats/recording.md.
#[test]
fn the_layout_is_as_documented() {
    let (_folder, path) = file();
    complete(&path, 100);
    let file = hdf5_metno::File::open(&path).unwrap();
    let text = |of: &hdf5_metno::Location, name: &str| -> String {
        let value: VarLenUnicode = of.attr(name).unwrap().read_scalar().unwrap();
        value.as_str().into()
    };
    assert_eq!(text(&file, "NX_class"), "NXroot");
    assert_eq!(text(&file, "creator"), "a test 1.2.3");
    for (name, class) in [
        ("entry", "NXentry"),
        ("entry/configuration", "NXnote"),
        ("entry/events", "NXcollection"),
        ("entry/hits", "NXevent_data"),
        ("entry/rings", "NXcollection"),
        ("entry/rules", "NXcollection"),
        ("entry/loss", "NXcollection"),
        ("entry/instrument", "NXinstrument"),
        ("entry/instrument/rich", "NXdetector"),
    ] {
        assert_eq!(text(&file.group(name).unwrap(), "NX_class"), class);
    }
    for (name, units, size) in [
        ("entry/hits/event_time_zero", "25 ns", 100),
        ("entry/events/timestamp", "25 ns", 100),
        ("entry/hits/event_time_offset", "ns", 1750),
        ("entry/rings/r", "mm", 200),
        ("entry/rings/chi2", "mm2", 200),
        ("entry/instrument/rich/x_pixel_offset", "mm", 1952),
    ] {
        let set = file.dataset(name).unwrap();
        assert_eq!(
            (text(&set, "units").as_str(), set.size()),
            (units, size),
            "{name}"
        );
    }
    let numbers = |name: &str| file.dataset(name).unwrap().read_raw::<u64>().unwrap();
    assert_eq!(numbers("entry/rules/rule_set"), [3]);
    let criteria = file.dataset("entry/rules/asks").unwrap();
    let criteria = criteria.read_raw::<VarLenUnicode>().unwrap();
    assert_eq!(criteria[0].as_str(), "rings: 2 or more");
    assert_eq!(numbers("entry/loss/from_wire"), [10]);
    let dropped = numbers("entry/loss/dropped");
    let late = Cause::all().position(|cause| cause == Cause::Late);
    assert_eq!(
        (dropped.iter().sum::<u64>(), dropped[late.unwrap()]),
        (3, 3)
    );
    assert_eq!(numbers("entry/loss/stream_missing"), [2]);
    assert_eq!(numbers("entry/loss/events_lost"), [5]);
    assert_eq!(numbers("entry/hits/event_index")[..4], [0, 0, 1, 3]);
    let end: VarLenUnicode = file
        .dataset("entry/end_time")
        .unwrap()
        .read_scalar()
        .unwrap();
    assert_eq!(end.as_str(), "1970-01-01T00:01:01Z");
}

#[test]
fn what_was_flushed_is_there_without_an_end() {
    let (_folder, path) = file();
    let copy = path.with_extension("copy");
    let mut writer = write(&path, 50);
    writer.flush().unwrap();
    // The state that a killed writer leaves; the library locks the file of a live writer.
    std::fs::copy(&path, &copy).unwrap();
    let mut events = Events::open(&copy).unwrap();
    assert!(events.warning().unwrap().contains("was not completed"));
    assert_eq!(events.read(0..100).unwrap().len(), 50);
}

/// Columns may be longer where the disk has failed: the library extends them before it writes.
#[test]
fn only_confirmed_events_are_read() {
    let (_folder, path) = file();
    complete(&path, 100);
    let file = hdf5_metno::File::open_rw(&path).unwrap();
    let events = file.group("entry/events").unwrap();
    let written = events.attr("events_written").unwrap();
    assert_eq!(written.read_scalar::<u64>().unwrap(), 100);
    written.write_scalar(&60_u64).unwrap();
    drop(written);
    file.close().unwrap();
    let read = |path: &Path| Events::open(path).unwrap().read(0..usize::MAX).unwrap();
    assert_eq!(read(&path), (0..60).map(event).collect::<Vec<_>>());
    // Files of earlier programs lack it.
    let file = hdf5_metno::File::open_rw(&path).unwrap();
    let events = file.group("entry/events").unwrap();
    events.delete_attr("events_written").unwrap();
    file.close().unwrap();
    assert_eq!(read(&path).len(), 100);
}

#[test]
fn what_is_no_recording_is_named() {
    let (_folder, path) = file();
    let failure = |path: &Path| Events::open(path).err().unwrap();
    hdf5_metno::File::create(&path).unwrap().close().unwrap();
    assert!(matches!(failure(&path), Error::Foreign { .. }));
    complete(&path, 100);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(
        matches!(failure(&path), Error::Hdf5 { .. }),
        "{}",
        failure(&path)
    );
    for (version, known) in [
        (0_u32, false),
        (1, true),
        (2, true),
        (3, true),
        (4, true),
        (5, false),
    ] {
        std::fs::write(&path, &whole).unwrap();
        let file = hdf5_metno::File::open_rw(&path).unwrap();
        let attribute = file.attr("pollux_version").unwrap();
        attribute.write_scalar(&version).unwrap();
        file.close().unwrap();
        match Events::open(&path) {
            Ok(mut events) => assert!(known && events.read(0..100).is_ok()),
            Err(error) => assert!(!known && matches!(error, Error::Version { .. }), "{error}"),
        }
    }
    std::fs::write(&path, &whole[..20]).unwrap();
    assert!(matches!(failure(&path), Error::Hdf5 { .. }));
    let change = |name: &str, n: usize, value: u64| {
        std::fs::write(&path, &whole).unwrap();
        let file = hdf5_metno::File::open_rw(&path).unwrap();
        let set = file.dataset(name).unwrap();
        set.write_slice(&[value], n..n + 1).unwrap();
        file.close().unwrap();
        let mut events = Events::open(&path).unwrap();
        events.read(0..100).unwrap_err().to_string()
    };
    let failure = change("entry/events/hit_index", 7, u64::MAX);
    assert!(failure.contains("do not follow each other"), "{failure}");
    std::fs::write(&path, &whole).unwrap();
    let file = hdf5_metno::File::open_rw(&path).unwrap();
    file.dataset("entry/hits/event_id")
        .unwrap()
        .resize((10,))
        .unwrap();
    file.close().unwrap();
    let failure = Events::open(&path)
        .unwrap()
        .read(0..100)
        .unwrap_err()
        .to_string();
    assert!(failure.contains("are not there"), "{failure}");
    let file = hdf5_metno::File::open_rw(&path).unwrap();
    file.group("entry/rings").unwrap().unlink("x").unwrap();
    file.close().unwrap();
    assert!(Events::open(&path).unwrap().read(0..1).is_err());
}
