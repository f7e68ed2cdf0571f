//! Files of runs: what is there stays there, and every run has a report, however it is ended.

use std::fs;
use std::path::Path;

use crate::common::capture::{boards, record, spills};
use crate::common::small_disk::SmallDisk;
use crate::common::{Folder, Run, number, pcap_port, run, start};
use serde_json::Value;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A short run over a capture, with further arguments.
fn over(capture: &str, arguments: &[&str]) -> Run {
    run(&[&["--port", capture], arguments].concat())
}

#[test]
fn no_run_overwrites_another_unless_it_is_told_to() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(320), &capture);
    let port = pcap_port(&capture);
    for option in ["--events-out", "--report"] {
        let path = folder.write("out", "an earlier run");
        for check in [&["--check"][..], &[]] {
            let ended = over(&port, &[&[option, &path], check].concat());
            let ended = ended.expect(2);
            ended.expect_message(&[option, &path, "out-{n}", "--force"]);
        }
        assert_eq!(fs::read(&path).unwrap(), b"an earlier run");
        over(&port, &[option, &path, "--force"]).expect(0);
        assert_ne!(fs::read(&path).unwrap(), b"an earlier run");
    }
}

#[test]
fn a_run_that_is_repeated_has_the_next_number() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(320), &capture);
    let port = pcap_port(&capture);
    let (report, events) = (folder.arg("run-{n}.json"), folder.arg("run-{n}.events"));
    for n in 1..=3 {
        over(&port, &["--report", &report, "--events-out", &events]).expect(0);
        let report = json(&folder.path(&format!("run-000{n}.json")));
        let len = fs::metadata(folder.path(&format!("run-000{n}.events")))
            .unwrap()
            .len();
        assert_eq!(len, 64 * (1 + number(&report["events"], "built")));
    }
    // One of the two is enough for a number not to be used again.
    fs::remove_file(folder.path("run-0003.json")).unwrap();
    over(&port, &["--report", &report]).expect(0);
    assert!(folder.path("run-0003.json").exists());
    over(&port, &["--report", &report, "--events-out", &events]).expect(0);
    assert!(folder.path("run-0004.json").exists());
}

/// A second signal, or a third from a shell that passes signals on, does not lose the report.
#[test]
fn two_signals_leave_a_whole_report() {
    for round in 0..20 {
        let folder = Folder::new();
        let path = folder.path("report.json");
        let shown = folder.arg("report.json");
        let mut running = start(&[
            "--events",
            "50000000",
            "--metrics",
            "127.0.0.1:0",
            "--report",
            &shown,
        ]);
        running.wait_for_message("metrics at http://");
        assert!(!path.exists(), "a report before the end");
        running.signal("INT");
        std::thread::sleep(std::time::Duration::from_millis(round % 5));
        running.signal(if round % 2 == 0 { "INT" } else { "TERM" });
        let ended = running.wait().expect(0);
        assert!(ended.stdout.contains("ledger"), "{}", ended.stdout);
        assert_eq!(json(&path)["end"], "stopped");
        let left: Vec<_> = fs::read_dir(folder.path("")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

/// The run number is in the report and in the event file; without it, the file is as it was.
#[test]
fn a_run_with_a_number_says_so() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(3200), &capture);
    let port = pcap_port(&capture);
    let plain = folder.arg("plain.events");
    let ended = over(&port, &["--events-out", &plain]).expect(0);
    assert!(ended.report().get("run").is_none());
    let (report, events) = (folder.arg("{run}.json"), folder.arg("r{run}.events"));
    let arguments = [
        "--run",
        "1234567",
        "--report",
        &report,
        "--events-out",
        &events,
    ];
    let ended = over(&port, &arguments).expect(0);
    assert!(
        ended.stdout.contains("run        1234567: 1 bursts"),
        "{}",
        ended.stdout
    );
    let report = json(&folder.path("1234567.json"));
    assert_eq!(
        (&report["run"], &report["bursts"]),
        (&1_234_567.into(), &1.into())
    );
    let (plain, numbered) = (
        fs::read(plain).unwrap(),
        fs::read(folder.path("r1234567.events")).unwrap(),
    );
    assert_eq!(
        plain[8..24],
        [1, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(
        numbered[8..24],
        [2, 0, 0, 0, 64, 0, 0, 0, 0x87, 0xd6, 0x12, 0, 0, 0, 0, 0]
    );
    assert!(plain[24..64] == numbered[24..64]);
    // In version 2, and there alone, records say their burst.
    let (plain, _) = plain[64..].as_chunks::<64>();
    let (numbered, _) = numbered[64..].as_chunks::<64>();
    assert_eq!(plain.len(), numbered.len());
    for (plain, numbered) in plain.iter().zip(numbered) {
        let mut expected = *plain;
        assert_eq!((expected[5], expected[63] & 0x7f), (0, 0));
        expected[5] = 1;
        assert_eq!(expected, *numbered);
    }
    over(&port, &["--report", &folder.arg("{run}.json")])
        .expect(2)
        .expect_message(&["{run}", "--run"]);
}

/// An event is identified by its burst and its time stamp, whether the boards are silent between
/// bursts for a moment or for longer than their clocks are remembered.
#[test]
fn events_of_a_run_with_a_number_say_their_burst() {
    for gap_ms in [0, 3, 1500] {
        let folder = Folder::new();
        let capture = folder.path("boards.pcapng");
        record(&spills(3200, gap_ms), &capture);
        let port = pcap_port(&capture);
        for (stages, config) in [("build", "[trigger]\n"), ("merge", MERGE)] {
            let config = folder.write("trigger.toml", config);
            let name = folder.arg(&format!("{stages}-{{burst}}.events"));
            let given = ["--config", &config, "--run", "5", "--events-out", &name];
            let ended = over(&port, &given).expect(0);
            let report = ended.report();
            let bursts = number(report, "bursts");
            let expected = 3200_u64.div_ceil(5 * 100);
            assert_eq!(bursts, expected, "{stages} {gap_ms}");
            let mut events = 0;
            for burst in 1..=bursts {
                let file = fs::read(folder.path(&format!("{stages}-{burst:05}.events")));
                let file = file.unwrap();
                assert_eq!((&file[..8], file[8]), (&b"PXEVENTS"[..], 2));
                let (records, rest) = file[64..].as_chunks::<64>();
                assert!(rest.is_empty() && !records.is_empty());
                let stamp =
                    |record: &[u8; 64]| u64::from_le_bytes(record[8..16].try_into().unwrap());
                let of_burst = |record: &[u8; 64]| {
                    u64::from(record[5]) | u64::from(record[63] >> 1 & 0x3f) << 8
                };
                assert!(records.iter().all(|record| of_burst(record) == burst));
                let rises = |pair: &[[u8; 64]]| stamp(&pair[0]) < stamp(&pair[1]);
                assert!(records.windows(2).all(rises), "{stages} {gap_ms} {burst}");
                events += records.len() as u64;
            }
            assert_eq!(
                events,
                number(&report["events"], "built"),
                "{stages} {gap_ms}"
            );
            assert_eq!(events, number(&report["recording"], "written"));
        }
    }
    let folder = Folder::new();
    let name = folder.arg("{burst}.events");
    run(&["--events-out", &name])
        .expect(2)
        .expect_message(&["{burst}", "--run"]);
    run(&["--run", "1", "--report", &name])
        .expect(2)
        .expect_message(&["--report", "{burst} is for the files of"]);
}

const MERGE: &str = "[trigger]\n[[stage]]\nname = \"decompress\"\n[[stage]]\nname = \"merge\"\n\
                     [[stage]]\nname = \"rings\"\n[[stage]]\nname = \"decide\"\n";

/// A port may stand without `--port`; the report is printed as JSON, or written beside the text.
#[test]
fn json_is_printed_or_written() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(320), &capture);
    let (port, file) = (pcap_port(&capture), folder.arg("run.json"));
    let printed = run(&[&*port, "--json"]).expect(0);
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    let shown = run(&[&*port, "--json", &file]).expect(0);
    assert!(shown.stdout.contains("ledger"), "{}", shown.stdout);
    let written = json(Path::new(&file));
    for report in [&printed, &written] {
        assert_eq!(number(&report["events"], "built"), 320);
    }
    run(&[&*port, "--json", &file]).expect(2);
    // Not the demonstration, with its report in a file of the port's name.
    run(&["--json", &port])
        .expect(2)
        .expect_message(&["is a port, not a file"]);
    run(&["nosuch:port"]).expect_usage(&["no driver `nosuch`"]);
}

/// By any name, and with --force.
#[test]
fn no_run_overwrites_what_it_reads() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(320), &capture);
    let hard = folder.path("hard.pcapng");
    fs::hard_link(&capture, &hard).unwrap();
    let (port, hard) = (pcap_port(&capture), hard.display().to_string());
    let whole = fs::read(&capture).unwrap();
    let config = folder.write("trigger.toml", "[trigger]\nbudget_us = 500\n");
    for option in ["--events-out", "--report", "--json"] {
        let ended = over(&port, &[option, &hard, "--force"]);
        ended.expect_usage(&[option, "would overwrite port pcap:rx="]);
        let ended = over(&port, &["--config", &config, option, &config, "--force"]);
        ended.expect_usage(&[option, "would overwrite --config"]);
    }
    let output = format!("ejfat:10.0.0.2:19522,port=pcap:tx={hard}");
    over(&port, &["--output", &output]).expect_usage(&["would overwrite", "which is read"]);
    let both = format!("{port},tx={hard}");
    over(&both, &[]).expect_usage(&["which is read"]);
    assert!(fs::read(&capture).unwrap() == whole);
    assert!(fs::read_to_string(config).unwrap().contains("budget_us"));
}

/// Answers that a capture has no room for are not sent, and fail the run.
#[test]
fn a_full_disk_loses_answers_and_fails_the_run() {
    // Their answers take more than a capture buffers.
    const EVENTS: u64 = 80_000;
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(EVENTS), &capture);
    // Full when a part of the answers is written: at the end, or in the middle of the run.
    for (size, copy) in [("8k", "end"), ("100k", "middle")] {
        let Some(disk) = SmallDisk::new(&folder, size) else {
            return;
        };
        let port = format!("{},tx={}", pcap_port(&capture), disk.arg("answers"));
        let ended = disk
            .run(&["--port", &port], "answers", &folder.path(copy))
            .expect(1)
            .expect_message(&["answers: writing failed at byte", "No space left"]);
        let report = ended.report();
        let (answers, port) = (&report["answers"], &report["ports"][0]);
        let written = crate::common::capture::read(&folder.path(copy));
        assert_eq!(number(answers, "packets"), written.len() as u64);
        assert_eq!(number(port, "tx_packets"), written.len() as u64);
        assert!(
            number(port, "tx_errors") > 0 && !written.is_empty(),
            "{port}"
        );
        let (sent, refused) = (number(answers, "sent"), number(answers, "refused"));
        assert!(sent > 0 && refused > 0, "{answers}");
        assert_eq!(sent + refused, EVENTS);
        let lost = format!("{refused} lost, as the port could not send them");
        assert!(ended.stdout.contains(&lost), "{}", ended.stdout);
    }
}

/// A file that can be written in part keeps the records that it has accepted, and they are counted.
#[test]
fn a_full_disk_keeps_the_records_that_fit() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(20_000), &capture);
    let Some(disk) = SmallDisk::new(&folder, "300k") else {
        return;
    };
    let path = disk.arg("run.events");
    let arguments = ["--port", &pcap_port(&capture), "--events-out", &path];
    let ended = disk
        .run(&arguments, "run.events", &folder.path("copy"))
        .expect(1)
        .expect_message(&["run.events is incomplete", "No space left"]);
    let report = &ended.report()["recording"];
    let len = fs::metadata(folder.path("copy")).unwrap().len();
    assert_eq!(len, 64 * (1 + number(report, "written")));
    assert!(len > 280 << 10);
    assert_eq!(number(report, "written") + number(report, "lost"), 20_000);
}
