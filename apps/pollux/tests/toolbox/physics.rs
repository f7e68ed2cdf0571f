//! `pollux physics`.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{pollux, run, text};

fn rows(args: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("physics.json");
    let args = [&["--events", "60", "--json", path.to_str().unwrap()], args].concat();
    let output = run("physics", &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    report["rows"].as_array().unwrap().clone()
}

#[test]
fn rows_hold_what_was_found() {
    let all = rows(&["--seed", "3"]);
    assert_eq!(all.len(), 48);
    let keys = [
        "rings",
        "noise",
        "pileup",
        "events",
        "efficiency",
        "fake_rate",
        "radius_resolution_mm",
        "radius_bound_mm",
    ];
    for row in &all {
        assert_eq!(row.as_object().unwrap().len(), keys.len());
        assert!(keys.iter().all(|key| row[key].is_number()), "{row}");
        assert_eq!(row["events"], 60);
    }
    let efficiency = |rings: u64| {
        let row = all
            .iter()
            .find(|row| row["rings"] == rings && row["noise"] == 0.2);
        row.unwrap()["efficiency"].as_f64().unwrap()
    };
    assert!(efficiency(1) >= 0.9 && efficiency(2) >= 0.85);
    // The seed is all that it depends on.
    assert_eq!(rows(&["--seed", "3"]), all);
    assert_ne!(rows(&["--seed", "4"]), all);
}

/// With more events than anybody waits for.
#[test]
fn a_signal_ends_the_study_with_the_rows_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let (json, docs) = (
        folder.path().join("rows.json"),
        folder.path().to_str().unwrap(),
    );
    let path = json.to_str().unwrap();
    let mut study = pollux("physics");
    study.args(["--events", "10000000", "--json", path, "--docs", docs]);
    let mut study = study
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It exists when signals are handled.
    while !json.exists() {
        assert!(study.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    let pid = study.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = study.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(
        message.contains("not written, as a signal ended the study"),
        "{message}"
    );
    let report: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert_eq!(report["rows"].as_array().unwrap().len(), 0);
    assert!(!folder.path().join("physics.md").exists());
}

#[test]
fn the_page_and_its_plots_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let output = run("physics", &["--events", "16", "--docs", path]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let page = read("physics.md");
    for plot in [
        "physics-rings.svg",
        "physics-noise.svg",
        "physics-pileup.svg",
    ] {
        assert!(page.contains(plot));
        let svg = read(plot);
        assert!(svg.ends_with("</svg>\n") && svg.matches("<polyline").count() == 4);
    }
    // A folder that there is not is told before the work.
    let output = run("physics", &["--events", "16", "--docs", "/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--docs /nowhere: No such file"));
    assert!(output.stdout.is_empty());
    let output = run("physics", &["--events", "0"]);
    assert_eq!(output.status.code(), Some(2));
}
