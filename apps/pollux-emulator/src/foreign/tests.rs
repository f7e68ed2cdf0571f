#![allow(clippy::unwrap_used, clippy::float_cmp)] // numbers are read as they are written
use super::*;
use crate::config::EmulatorConfig;
use crate::truth::Truth;
use pollux_na62::physics::model::TruthEvent;

const PAGE: &str = include_str!("../../../../docs/formats/truth.md");

/// The worked example of the page.
fn example() -> &'static str {
    let (_, rest) = PAGE.split_once("```json\n").unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_example_of_the_page_is_read() {
    assert!(ForeignTruth::is_meant(example()));
    let truth = ForeignTruth::parse(example()).unwrap();
    assert_eq!(truth.events(), 3);
    let [ring] = truth.rings(0, 1_000_000).unwrap() else {
        unreachable!("one ring")
    };
    assert_eq!(
        (ring.disk, ring.x, ring.y, ring.r),
        (0, 12.5, -40.0, 178.25)
    );
    // Half of the slot.
    assert_eq!((ring.hits, ring.time, ring.particle), (13, 128.0, 0));
    assert_eq!(truth.rings(0, 1_000_120), Some(&[][..]));
    let rings = truth.rings(1, 1_000_007).unwrap();
    let particles: Vec<_> = rings.iter().map(|ring| ring.particle).collect();
    assert_eq!(particles, [0, 0, 1]);
    assert_eq!((rings[2].momentum, rings[2].mass), (18.4, 0.10566));
    assert_eq!(truth.rings(0, 1_000_007), None);
    assert_eq!(truth.rings(1, 1_000_120), None);
}

#[test]
fn what_is_written_is_read_back() {
    let config = EmulatorConfig {
        events: 300,
        ..EmulatorConfig::default()
    };
    let (truth, mut event) = (Truth::of(&config).unwrap(), TruthEvent::default());
    let mut text = header();
    for n in 0..300 {
        truth.event(n, &mut event);
        write_event(truth.timeline().moment(n), &event.rings, &mut text);
    }
    let read = ForeignTruth::parse(&text).unwrap();
    assert_eq!(read.events(), 300);
    for n in 0..300 {
        truth.event(n, &mut event);
        let rings = read.rings(0, truth.timeline().timestamp(n)).unwrap();
        assert_eq!(rings.len(), event.rings.len());
        for (read, made) in rings.iter().zip(&event.rings) {
            assert!((read.time - made.time).abs() < 1e-4);
            let time = made.time;
            assert_eq!(TrueRing { time, ..*read }, *made);
        }
    }
}

#[test]
fn mistakes_are_named_with_their_line() {
    let error = |lines: &str| {
        let text = format!("{}{lines}", header());
        ForeignTruth::parse(&text).unwrap_err().to_string()
    };
    let ring = |what: &str| format!("{{\"timestamp\":7,\"rings\":[{{{what}}}]}}\n");
    let whole = "\"disk\":0,\"x_mm\":0,\"y_mm\":0,\"r_mm\":150,\"hits\":9,\"time_ns\":1";
    assert!(ForeignTruth::parse(&format!("{}{}", header(), ring(whole))).is_ok());
    for (lines, named) in [
        ("{\"timestamp\":7}".into(), "line 2: missing field `rings`"),
        ("{\"rings\":[]}".into(), "line 2: missing field `timestamp`"),
        ("{\"timestamp\":-7,\"rings\":[]}".into(), "line 2: invalid value"),
        ("\n\nnonsense".into(), "line 4: expected"),
        ("{\"timestamp\":7,\"rings\":[],\"t\":1}".into(), "unknown field `t`"),
        (ring(&whole.replace(":0,\"x", ":2,\"x")), "line 2: ring 0: disk = 2: must be 0 or 1"),
        (ring(&whole.replace("150", "-1")), "ring 0: r_mm = -1: must be from 0 to 1000"),
        (ring(&whole.replace("_ns\":1", "_ns\":51")), "time_ns = 51: must be from -25 to 50"),
        (ring(&whole.replace(":9", ":9.5")), "line 2: invalid type"),
        (ring(&whole.replace("x_mm\":0", "x_mm\":1e39")), "line 2: "),
        (
            ring(whole) + &ring(whole),
            "line 3: spill 0, timestamp 7: must be above those of the event before, spill 0, timestamp 7",
        ),
        (
            "{\"spill\":2,\"timestamp\":7,\"rings\":[]}\n{\"spill\":1,\"timestamp\":8,\"rings\":[]}".into(),
            "line 3: spill 1, timestamp 8",
        ),
    ] {
        let said = error(&lines);
        assert!(said.contains(named), "{lines}: {said}");
    }
    for text in [
        "",
        "{}",
        "{\"format\":\"other\",\"version\":1}",
        "{\"format\":\"pollux-truth\",\"version\":2}",
    ] {
        let said = ForeignTruth::parse(text).unwrap_err().to_string();
        assert!(said.starts_with("line 1: not the first line"), "{said}");
    }
}

#[test]
fn spills_are_counted_from_the_first() {
    let line = |spill, timestamp| {
        format!("{{\"spill\":{spill},\"timestamp\":{timestamp},\"rings\":[]}}\n")
    };
    let lines = line(7, 5) + &line(7, 6) + &line(9, 5);
    let truth = ForeignTruth::parse(&(header() + &lines)).unwrap();
    let has = |spill, timestamp| truth.rings(spill, timestamp).is_some();
    assert_eq!(
        [has(0, 5), has(0, 6), has(1, 5), has(1, 6), has(2, 5)],
        [true, true, true, false, false]
    );
}

/// Every key that the emulator has is in the table, with its default.
#[test]
fn the_keys_of_the_emulator_are_on_the_page() {
    let config = toml::Table::try_from(EmulatorConfig::default()).unwrap();
    let row = |key: &str| {
        let start = format!("| `{key}` | ");
        PAGE.lines()
            .find_map(|line| line.strip_prefix(&start).map(str::to_owned))
    };
    let plain = |value: &toml::Value| match value {
        toml::Value::Float(value) => value.to_string(),
        toml::Value::Array(values) => {
            let values: Vec<_> = values
                .iter()
                .map(|value| value.as_float().unwrap().to_string())
                .collect();
            format!("[{}]", values.join(", "))
        }
        toml::Value::Table(_) => "{ poisson = 1.5 }".into(),
        other => other.to_string(),
    };
    let mut checked = 0;
    for (key, value) in &config {
        let rows: Vec<(String, &toml::Value)> = match (key.as_str(), value) {
            ("addresses" | "faults", _) => continue,
            (table, toml::Value::Table(values)) => values
                .iter()
                .map(|(key, value)| (format!("{table}.{key}"), value))
                .collect(),
            _ => vec![(key.clone(), value)],
        };
        for (key, value) in rows {
            let row = row(&key).unwrap_or_else(|| unreachable!("no row of `{key}`"));
            assert!(
                row.starts_with(&format!("{} | ", plain(value))),
                "{key}: {row}"
            );
            checked += 1;
        }
    }
    assert!(checked >= 24, "{checked}");
}
