//! `pollux events`, over files of both kinds.

use std::fs;

use pollux_na62::l0::L0Record;
use pollux_na62::rich::find::{MAX_RINGS, Ring};
use pollux_recording::record_header;
use serde_json::Value;

use crate::support::{Folder, refused, run, text};

const EVENTS: u16 = 300;

fn ring(n: u16) -> Ring {
    Ring {
        disk: (n % 2) as u8,
        x: -12.5,
        y: 3.0,
        r: f32::from(100 + n % 100),
        hits: 14,
        chi2: 21.5,
        time: 128.0,
        time_spread: 3.0,
        ..Ring::default()
    }
}

/// Every third event is accepted, every seventh late; event n has n % 3 rings.
fn record(n: u16) -> L0Record {
    let mut rings = [Ring::default(); MAX_RINGS];
    rings[..2].fill(ring(n));
    L0Record {
        timestamp: 4000 + u64::from(n),
        hits: n % 40,
        sources: 0xf,
        ring_count: (n % 3) as u8,
        accepted: n.is_multiple_of(3),
        late: n.is_multiple_of(7),
        complete: true,
        rules: n.is_multiple_of(3).into(),
        rings,
        ..L0Record::default()
    }
}

fn event_file(folder: &Folder) -> String {
    let records = (0..EVENTS).flat_map(|n| record(n).to_event(n.into()).to_bytes());
    let bytes: Vec<u8> = record_header(None).into_iter().chain(records).collect();
    write(folder, "run.events", &bytes)
}

fn write(folder: &Folder, name: &str, bytes: &[u8]) -> String {
    let path = folder.path(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().into()
}

/// What a command that succeeds prints.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let output = run("events", args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

#[track_caller]
fn objects(args: &[&str]) -> Vec<Value> {
    let lines = printed(&[args, &["--json"]].concat());
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Lists, prints and draws; events are those of [`record`].
#[track_caller]
fn assert_shown(file: &str, folder: &Folder) {
    let listed = printed(&[file]);
    assert_eq!(listed.lines().count(), usize::from(EVENTS) + 2, "{listed}");
    assert!(listed.ends_with("300 of 300 events\n"), "{listed}");
    let line = listed.lines().nth(1 + 7).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!(
        words,
        ["7", "4007", "rejected", "f", "7", "1", "107.0", "late"]
    );

    let some = objects(&[file, "--only", "accepted", "--from", "10", "--count", "5"]);
    let numbers: Vec<_> = some
        .iter()
        .map(|event| event["event"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [12, 15, 18, 21, 24]);
    let all = objects(&[file]);
    assert_eq!(all.len(), usize::from(EVENTS));
    for (n, event) in (0..EVENTS).zip(&all) {
        let expected = record(n);
        assert_eq!(event["timestamp"], expected.timestamp);
        assert_eq!(
            (&event["accepted"], &event["late"]),
            (&expected.accepted.into(), &expected.late.into())
        );
        assert_eq!(event["hit_count"], expected.hits);
        let rings = event["rings"].as_array().unwrap();
        assert_eq!(rings.len(), usize::from(expected.ring_count));
        assert!(
            rings
                .iter()
                .all(|ring| ring["r"] == f64::from(100 + n % 100) && ring["x"] == -12.5)
        );
    }

    let svg = folder.path("event.svg");
    let args = [file, "--event", "8", "--svg", svg.to_str().unwrap()];
    let event = printed(&args);
    assert!(event.starts_with("event      8, rejected\n"), "{event}");
    let svg = fs::read_to_string(svg).unwrap();
    assert!(svg.contains("<title>Event 8 at slot 4008: rejected, 8 hits, 2 rings</title>"));
    assert_eq!(svg.matches(r#"r="108""#).count(), 2);

    // 180 mm: of a muon at 28 GeV/c, and of nothing at 1 MeV/c.
    let likely =
        |momentum| objects(&[file, "--event", "80", "--momentum", momentum])[0]["rings"][0].clone();
    assert_eq!(likely("28")["particle"], "muon");
    assert!(likely("28")["pull"].as_f64().unwrap().abs() < 0.5);
    assert!(likely("0.001").get("particle").is_none());
    // At 60 GeV/c every particle's ring is larger, by many standard deviations.
    let far = likely("60");
    assert!(
        far.get("particle").is_none() && far["nearest"].is_string(),
        "{far}"
    );
    let pull = far["pull"].as_f64().unwrap();
    assert!(pull < -5.0, "{pull}");
    let text = printed(&[file, "--event", "80", "--momentum", "60"]);
    let nearest = far["nearest"].as_str().unwrap();
    let says = format!("none fits; nearest: {nearest} ({pull:+.1})");
    assert!(text.contains(&says), "no {says} in {text}");
    assert!(
        objects(&[file, "--event", "80"])[0]["rings"][0]
            .get("particle")
            .is_none()
    );
    let message = refused("events", &[file, "--event", "1", "--momentum", "0"], 2);
    assert!(message.contains("must be a number above 0"), "{message}");
    refused("events", &[file, "--momentum", "20"], 2);

    let message = refused("events", &[file, "--event", "300"], 2);
    assert!(
        message.contains("there are 300 events, numbered from 0"),
        "{message}"
    );
    let message = refused(
        "events",
        &[file, "--event", "1", "--svg", "/nowhere/e.svg"],
        1,
    );
    assert!(message.contains("--svg /nowhere/e.svg"), "{message}");
    // A reader of only the first lines gets them.
    assert_eq!(printed(&[file, "--count", "0"]).lines().count(), 2);
}

#[test]
fn an_event_file_is_listed_printed_and_drawn() {
    let folder = Folder::new();
    let file = event_file(&folder);
    assert_shown(&file, &folder);
    let object = &objects(&[&file, "--event", "8"])[0];
    assert!(
        object.get("hits").is_none() && object["rings"][0].get("chi2").is_none(),
        "{object}"
    );
}

#[test]
fn what_is_no_file_of_events_is_named() {
    let folder = Folder::new();
    let whole = fs::read(event_file(&folder)).unwrap();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("text", b"not what it should be\n"),
        ("short", &whole[..40]),
    ] {
        let file = write(&folder, name, bytes);
        let message = refused("events", &[&file], 1);
        assert!(
            message.contains(&file) && message.contains("is not a file of events"),
            "{message}"
        );
    }
    let message = refused("events", &["/nowhere/run.h5"], 1);
    assert!(
        message.contains("/nowhere/run.h5: No such file"),
        "{message}"
    );
    let message = refused("events", &[folder.path(".").to_str().unwrap()], 1);
    assert!(message.contains("directory"), "{message}");

    let mut other = whole.clone();
    other[8] = 9;
    let message = refused("events", &[&write(&folder, "other", &other)], 1);
    assert!(message.contains("version 9"), "{message}");

    // What there is of a file whose writer was stopped is shown, with a warning.
    let file = write(&folder, "cut", &whole[..whole.len() - 10]);
    let output = run("events", &[&file]);
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("ends within record 299: 54 bytes"));
    assert!(text(&output.stdout).ends_with("299 of 299 events\n"));
    if cfg!(not(feature = "hdf5")) {
        println!("skipped in part: recordings are not built in (--features hdf5)");
        let file = write(&folder, "run.h5", b"\x89HDF\r\n\x1a\n and so on");
        let message = refused("events", &[&file], 1);
        assert!(message.contains("--features hdf5"), "{message}");
    }
}

#[test]
fn the_number_of_a_run_is_told() {
    let folder = Folder::new();
    let record = |n: u16| L0Record {
        burst: 300 * n,
        ..record(n)
    };
    let records = (1..=3).flat_map(|n| record(n).to_event(n.into()).to_bytes());
    let bytes: Vec<u8> = record_header(Some(7)).into_iter().chain(records).collect();
    let file = write(&folder, "run.events", &bytes);
    assert!(printed(&[&file]).ends_with("3 of 3 events of run 7\n"));
    assert!(printed(&[&file, "--event", "1"]).starts_with("run        7\nevent      1"));
    assert!(printed(&[&file, "--event", "1"]).contains(" ns, burst 600\n"));
    for (event, n) in objects(&[&file]).iter().zip(1..) {
        assert_eq!(
            (&event["run"], &event["burst"]),
            (&7.into(), &(300 * n).into())
        );
    }
}

#[cfg(feature = "hdf5")]
mod recordings {
    use std::time::UNIX_EPOCH;

    use pollux_na62::rich::Hit;
    use pollux_pmd::Ledger;
    use pollux_recording::{About, Ending, Facts, Writer};

    use super::*;

    const ABOUT: About<'_> = About {
        run: None,
        overwrite: true,
        program: "a test",
        version: "1",
        configuration: "",
        start: UNIX_EPOCH,
    };

    fn recording(folder: &Folder, events: u16) -> String {
        let (written, path) = (folder.path("written.h5"), folder.path("run.h5"));
        let mut writer = Writer::create(&written, &ABOUT).unwrap();
        for n in 0..events {
            let record = record(n);
            let facts = Facts {
                timestamp: record.timestamp,
                burst: None,
                sources: record.sources,
                accepted: record.accepted,
                complete: record.complete,
                late: record.late,
                monitored: record.monitored,
                truncated: record.truncated,
                disputed: record.disputed,
                rules: record.rules,
                rule_set: record.rule_set,
            };
            let hits: Vec<_> = (0..record.hits).map(|pm| Hit { pm, fine: 256 }).collect();
            writer.push(&facts, &hits, record.rings());
        }
        let ending = Ending {
            end: UNIX_EPOCH,
            ledger: &Ledger::new(),
            streams: &[],
            rules: &[],
            lost: 0,
        };
        writer.finish(&ending).unwrap();
        // The lock on what was written lives on in a program that another test starts just now.
        fs::copy(written, &path).unwrap();
        path.to_str().unwrap().into()
    }

    #[test]
    fn a_recording_is_listed_printed_and_drawn() {
        let folder = Folder::new();
        let file = recording(&folder, EVENTS);
        assert_shown(&file, &folder);
        let object = &objects(&[&file, "--event", "8"])[0];
        assert_eq!(object["hits"].as_array().unwrap().len(), 8);
        assert_eq!(object["hits"][7], serde_json::json!([7, 25.0]));
        let ring = &object["rings"][0];
        assert_eq!((&ring["chi2"], &ring["time"]), (&21.5.into(), &12.5.into()));
        let event = printed(&[&file, "--event", "8"]);
        assert!(event.contains("       7     7 "), "{event}");
    }

    #[test]
    fn bad_recordings_are_named() {
        let folder = Folder::new();
        let path = folder.path("now.h5");
        let writer = Writer::create(&path, &ABOUT).unwrap();
        let message = refused("events", &[path.to_str().unwrap()], 1);
        assert!(message.contains("now.h5: it is being written"), "{message}");
        drop(writer);

        let file = recording(&folder, 0);
        assert!(printed(&[&file]).ends_with("0 of 0 events\n"));
        assert_eq!(objects(&[&file]), Vec::<Value>::new());

        let file = recording(&folder, EVENTS);
        let whole = fs::read(&file).unwrap();
        for cut in [9, 100, whole.len() / 2, whole.len() - 1] {
            let file = write(&folder, "cut.h5", &whole[..cut]);
            let message = refused("events", &[&file], 1);
            assert!(message.contains(&file), "{message}");
        }
        // Another layout: what is looked for has another name of the same length.
        let without = |name: &[u8]| {
            let mut bytes = whole.clone();
            let places = (0..whole.len()).filter(|&at| whole[at..].starts_with(name));
            places.for_each(|at| bytes[at] = b'Z');
            refused("events", &[&write(&folder, "other.h5", &bytes)], 1)
        };
        let message = without(b"pollux_version\0");
        assert!(message.contains("is not a file of events"), "{message}");
        for group in [
            &b"entry\0"[..],
            b"events\0",
            b"hits\0",
            b"rings\0",
            b"flags\0",
        ] {
            let message = without(group);
            assert!(message.contains("other.h5"), "{message}");
        }
    }
}

/// The option with a file writes the lines that it prints without, beside the text; and it goes on
/// working in front of the file that is read.
#[test]
fn json_goes_to_a_file_as_to_the_terminal() {
    let folder = Folder::new();
    let events = event_file(&folder);
    for selection in [
        &["--only", "accepted", "--count", "20"][..],
        &["--event", "7"],
    ] {
        let list = |json: &[&str]| printed(&[&[&*events], selection, json].concat());
        let lines = list(&["--json"]);
        assert_eq!(
            lines.lines().count(),
            if selection.len() > 2 { 20 } else { 1 }
        );
        let path = folder.path("lines.json");
        let path = path.to_str().unwrap();
        assert_eq!(list(&["--json", path]), list(&[]));
        assert_eq!(fs::read_to_string(path).unwrap(), lines);
        let again = [&[&*events], selection, &["--json", path]].concat();
        assert!(refused("events", &again, 2).contains("--force"));
        assert_eq!(list(&["--force", "--json", path]), list(&[]));
        let in_front = [&["--json", &*events], selection].concat();
        assert_eq!(printed(&in_front), lines);
        fs::remove_file(path).unwrap();
    }
    let none = refused("events", &["--json"], 2);
    assert!(none.contains("no file is given"), "{none}");
    let same = [&*events, "--event", "1", "--json", "x", "--svg", "x"];
    assert!(refused("events", &same, 2).contains("name the same file"));
    let nowhere = [&*events, "--json", "/nowhere/x"];
    assert!(refused("events", &nowhere, 1).contains("--json /nowhere/x"));
}

#[test]
fn the_file_that_is_read_is_not_overwritten() {
    let folder = Folder::new();
    let path = event_file(&folder);
    let whole = fs::read(&path).unwrap();
    for written in [&format!("--json={path}"), &format!("--svg={path}")] {
        let message = refused("events", &[&path, written, "--event", "3", "--force"], 2);
        assert!(message.contains("would overwrite FILE"), "{message}");
    }
    assert_eq!(fs::read(&path).unwrap(), whole);
}
