//! `pollux physics`.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{pollux, run, text};

fn report(args: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("physics.json");
    let json = ["--json", path.to_str().unwrap()];
    let few = ["--events", "60"];
    let few = if args.contains(&"--events") {
        &[]
    } else {
        &few[..]
    };
    let args = [&json, few, args].concat();
    let output = run("physics", &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn rows<'a>(report: &'a Value, of: &str) -> &'a [Value] {
    report[of].as_array().unwrap()
}

#[test]
fn rows_hold_what_was_found() {
    let report_3 = report(&["--seed", "3"]);
    let all = rows(&report_3, "rows");
    assert_eq!(all.len(), 48);
    let keys = [
        "rings",
        "noise",
        "pileup",
        "shared",
        "events",
        "findable",
        "fitted",
        "efficiency",
        "efficiency_all",
        "efficiency_7",
        "fake_rate",
        "fake_rate_7",
        "clone_rate",
        "purity_efficiency",
        "purity_fake_rate",
        "purity_clone_rate",
        "over_limit",
        "radius_resolution_mm",
        "radius_bound_mm",
    ];
    let errors = keys[7..18].iter().map(|key| match *key {
        "radius_resolution_mm" => "radius_resolution_error_mm".to_owned(),
        key => format!("{key}_error"),
    });
    let errors: Vec<_> = errors.collect();
    for row in all.iter().chain(rows(&report_3, "shared")) {
        assert_eq!(row.as_object().unwrap().len(), keys.len() + errors.len());
        assert!(keys.iter().all(|key| row[key].is_number()), "{row}");
        assert!(
            errors.iter().all(|key| row[key].as_f64().unwrap() > 0.0),
            "{row}"
        );
        assert_eq!(row["events"], 60);
        // Weak rings are found less often, and those of many hits more often.
        let of = |key: &str| row[key].as_f64().unwrap();
        assert!(of("efficiency_all") <= of("efficiency") + 0.02, "{row}");
        assert!(of("efficiency_7") >= of("efficiency") - 0.02, "{row}");
    }
    assert_eq!(rows(&report_3, "shared").len(), 4);
    assert_eq!(report_3["schema"], 1);
    assert_eq!(report_3["inputs"]["model"]["photons"], 100.0);
    assert_eq!(report_3["inputs"]["finder"]["min_hits"], 5);
    let efficiency = |rings: u64| {
        let row = all
            .iter()
            .find(|row| row["rings"] == rings && row["noise"] == 0.2);
        row.unwrap()["efficiency"].as_f64().unwrap()
    };
    assert!(efficiency(1) >= 0.9 && efficiency(2) >= 0.85);
    // The seed is all that it depends on.
    assert_eq!(report(&["--seed", "3"]), report_3);
    assert_ne!(report(&["--seed", "4"])["rows"], report_3["rows"]);
}

#[test]
fn rings_grow_with_momentum_and_pions_come_apart_from_muons() {
    let report = report(&["--events", "400"]);
    let momentum = rows(&report, "momentum");
    assert_eq!(momentum.len(), 27);
    for particle in ["muon", "pion", "electron"] {
        let rows: Vec<_> = momentum
            .iter()
            .filter(|row| row["particle"] == particle)
            .collect();
        assert_eq!(rows.len(), 9);
        let of = |row: &Value, key: &str| row[key].as_f64().unwrap();
        for pair in rows.windows(2) {
            assert!(of(pair[0], "momentum") < of(pair[1], "momentum"));
            assert!(of(pair[0], "radius_mm") < of(pair[1], "radius_mm"));
        }
        for row in rows {
            assert!(
                (of(row, "fitted_mm") - of(row, "radius_mm")).abs() < 3.0,
                "{row}"
            );
            assert!(of(row, "efficiency_all") <= of(row, "efficiency"), "{row}");
            assert!(of(row, "efficiency_all_error") > 0.0);
        }
    }
    // 14 hits on a ring at beta = 1; at 15 GeV/c, 43 mm between muons and pions.
    let electrons = momentum
        .iter()
        .find(|row| row["particle"] == "electron")
        .unwrap();
    assert!((electrons["hits"].as_f64().unwrap() - 14.0).abs() < 1.0);
    let separation = rows(&report, "separation");
    assert_eq!(separation.len(), 9);
    let sigmas: Vec<_> = separation
        .iter()
        .map(|row| row["sigmas"].as_f64().unwrap())
        .collect();
    assert!(sigmas[0] > 6.0 && sigmas[0] > 2.0 * sigmas[8], "{sigmas:?}");
    let last = &separation[8];
    assert!(last["muons_as_pions"].as_f64().unwrap() < 0.3);
    assert!(last["pions_kept"].as_f64().unwrap() > 0.7);
}

/// With more events than the test could wait for.
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
    while !crate::support::is_under_way(&json) {
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
    for (plot, curves) in [("physics-momentum.svg", 4), ("physics-separation.svg", 2)] {
        assert!(page.contains(plot));
        assert_eq!(read(plot).matches("<polyline").count(), curves);
    }
    // All inputs that are needed to reproduce it.
    for input in [
        "seed, events",
        "1; 16 a row",
        "JINST 13 (2018) P07012",
        "light cones",
        "dead channels",
        "0.65 muons",
        "even from 15 to 35 GeV/c",
        "0.3 ns (Gaussian)",
        "`min_hits_largest` = 7",
    ] {
        assert!(page.contains(input), "{input}");
    }
    // A missing folder is reported before the work.
    let output = run("physics", &["--events", "16", "--docs", "/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--docs /nowhere: No such file"));
    assert!(output.stdout.is_empty());
    let output = run("physics", &["--events", "0"]);
    assert_eq!(output.status.code(), Some(2));
}
