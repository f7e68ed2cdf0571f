//! Recordings: what is in them, and what becomes of a run whose disk fails or hangs.

use std::fs::File;
use std::process::Command;

use crate::common::{Folder, number, run};

/// A pipe without a reader takes 64 KiB and then blocks its writer, as a disk that hangs does.
#[test]
fn a_disk_that_hangs_holds_up_neither_the_run_nor_its_end() {
    let folder = Folder::new();
    let (path, shown) = (folder.path("pipe"), folder.arg("pipe"));
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    // Opened for both, it does not wait for the other end.
    let pipe = File::options().read(true).write(true).open(&path).unwrap();
    let ended = run(&["--events", "50000", "--events-out", &shown]).expect(1);
    let hangs = format!("--events-out {shown} is incomplete: the disk has taken nothing for 10 s");
    let ended = ended.expect_message(&[&hangs]);
    let report = ended.report();
    assert_eq!(report["end"], "complete");
    assert_eq!(number(&report["events"], "built"), 50_000);
    assert_eq!(number(&report["recording"], "written"), 0);
    assert_eq!(number(&report["recording"], "lost"), 50_000);
    assert_eq!(report["recording"]["files"], serde_json::json!([shown]));
    drop(pipe);
}

#[cfg(not(feature = "hdf5"))]
#[test]
fn a_program_that_cannot_record_says_so() {
    println!("skipped: recordings are not built in (--features hdf5)");
    run(&["--record", "run.h5"]).expect_usage(&["--record", "--features hdf5"]);
    assert!(!std::path::Path::new("run.h5").exists());
}

#[cfg(feature = "hdf5")]
mod built_in {
    use std::path::{Path, PathBuf};

    use crate::common::capture::{boards, record, spills};
    use crate::common::small_disk::SmallDisk;
    use crate::common::{Folder, number, pcap_port, run, start};
    use pollux_recording::{Event, Events, Recording};
    use serde_json::Value;

    fn events(path: &Path) -> Vec<Event> {
        let mut file = Events::open(path).unwrap();
        assert_eq!(file.warning(), None);
        file.read(0..usize::MAX).unwrap()
    }

    /// Events say their burst, and each burst has a file, where its number is in the name.
    #[test]
    fn bursts_have_recordings_of_their_own() {
        let folder = Folder::new();
        let capture = folder.path("boards.pcapng");
        record(&spills(3200, 3), &capture);
        let port = pcap_port(&capture);
        let name = folder.arg("r{run}-{burst}.h5");
        let given = ["--port", &port, "--run", "5", "--record", &name];
        let ended = run(&given).expect(0);
        let report = ended.report();
        let bursts = number(report, "bursts");
        assert_eq!(number(&report["record"], "lost"), 0);
        let mut written = 0;
        for burst in 1..=bursts {
            let events = events(&folder.path(&format!("r0005-{burst:05}.h5")));
            let is_of = |event: &Event| u64::from(event.facts.burst.unwrap()) == burst;
            assert!(!events.is_empty() && events.iter().all(is_of), "{burst}");
            let rises = |pair: &[Event]| pair[0].facts.timestamp < pair[1].facts.timestamp;
            assert!(events.windows(2).all(rises), "{burst}");
            written += events.len() as u64;
        }
        assert_eq!(number(&report["record"], "written"), written);
        assert!(!folder.path(&format!("r0005-{:05}.h5", bursts + 1)).exists());
        run(&given)
            .expect(2)
            .expect_message(&["r0005-00001.h5", "--force"]);
        // What is in the place of a burst's file ends the recording, not the run.
        let name = folder.arg("w{burst}.h5");
        std::fs::create_dir(folder.path("w00002.h5")).unwrap();
        let ended = run(&["--port", &port, "--run", "5", "--record", &name]).expect(1);
        let ended = ended.expect_message(&["w00002.h5", "the run continues"]);
        let record = &ended.report()["record"];
        let first = events(&folder.path("w00001.h5")).len() as u64;
        assert_eq!(number(record, "written"), first);
        assert_eq!(number(record, "lost"), written - first);
    }

    /// Of a capture nothing is lost, however slow the disk.
    #[test]
    fn a_recording_has_the_events_that_were_accepted() {
        const EVENTS: usize = 20_000;
        let folder = Folder::new();
        let capture = folder.path("boards.pcapng");
        record(&boards(EVENTS as u64), &capture);
        let text = "[trigger]\nbudget_us = 500\n[[stage]]\nname = \"decompress\"\n[[stage]]\nname = \"build\"\n\
                    [[stage]]\nname = \"rings\"\n[[stage]]\nname = \"decide\"\ndownscale = 10\n\
                    [[stage.rule]]\nname = \"pair\"\nmin_rings = 2\n";
        let config = folder.write("trigger.toml", text);
        let (records, recording) = (folder.arg("run.events"), folder.arg("run.h5"));
        let ended = run(&[
            "--port",
            &pcap_port(&capture),
            "--config",
            &config,
            "--events-out",
            &records,
            "--record",
            &recording,
        ]);
        let ended = ended.expect(0);
        let report = ended.report();
        let accepted = number(&report["events"], "accepted");
        assert!(accepted > 0 && number(&report["events"], "rejected") > 0);
        let monitored = number(&report["rules"][0], "monitored");
        assert!(monitored > 0);
        assert_eq!(number(&report["record"], "written"), accepted + monitored);
        assert_eq!(number(&report["record"], "lost"), 0);

        let mut decided = events(&folder.path("run.events"));
        assert_eq!(decided.len(), EVENTS);
        decided.retain(|event| event.facts.accepted || event.facts.monitored);
        let recorded = events(&folder.path("run.h5"));
        assert_eq!(recorded.len() as u64, accepted + monitored);
        for (event, record) in recorded.iter().zip(&decided) {
            assert_eq!(event.facts, record.facts);
            let hits = event.hits.as_ref().unwrap();
            assert_eq!(
                (hits.len(), event.hit_count),
                (record.hit_count, record.hit_count)
            );
            assert!(hits.iter().all(|hit| hit.pm < 1952));
            assert_eq!(event.rings.len(), record.rings.len());
            for (ring, rounded) in event.rings.iter().zip(&record.rings) {
                let apart = (ring.x - rounded.x).abs() + (ring.r - rounded.r).abs();
                // Six photomultipliers may lie on one circle as exactly as can be said.
                assert!(
                    apart <= 0.25 && ring.disk == rounded.disk && ring.chi2 >= 0.0,
                    "{ring:?} {rounded:?}"
                );
            }
        }
        let file = Recording::open(&folder.path("run.h5")).unwrap();
        assert_eq!(file.configuration().unwrap(), text);
    }

    /// With a budget that no decision can keep.
    #[test]
    fn a_recorded_event_says_whether_its_decision_was_late() {
        let folder = Folder::new();
        let (records, recording) = (folder.arg("run.events"), folder.arg("run.h5"));
        let files = ["--events-out", &records, "--record", &recording, "--force"];
        let mut late = Vec::new();
        for budget in ["1", "60000000"] {
            let config = folder.write("trigger.toml", format!("[trigger]\nbudget_us = {budget}"));
            let arguments = ["--events", "2000", "--config", &config];
            run(&[&arguments[..], &files].concat()).expect(0).report();
            let mut decided = events(&folder.path("run.events"));
            decided.retain(|event| event.facts.accepted);
            let recorded = events(&folder.path("run.h5"));
            assert!(
                recorded
                    .iter()
                    .map(|event| event.facts)
                    .eq(decided.iter().map(|event| event.facts))
            );
            late.push(recorded.iter().filter(|event| event.facts.late).count());
            assert!(recorded.len() > 100);
        }
        assert!(late[0] > 100 && late[1] == 0, "{late:?}");
    }

    /// One file follows the other; together they have all events, each of them is complete, and the
    /// number of the run is in each.
    #[test]
    fn a_recording_is_divided_into_files() {
        let folder = Folder::new();
        let capture = folder.path("boards.pcapng");
        record(&boards(60_000), &capture);
        let port = pcap_port(&capture);
        let divided = |name: &str, further: &[&str]| {
            let path = folder.arg(name);
            let size = [
                "--port",
                &port,
                "--run",
                "5",
                "--file-size",
                "500k",
                "--record",
                &path,
            ];
            run(&[&size[..], further].concat())
        };
        let ended = divided("run.h5", &[]).expect(0);
        let written = number(&ended.report()["record"], "written");
        assert_eq!(number(&ended.report()["record"], "lost"), 0);
        let parts = |name: &str| -> Vec<_> {
            let part = |n: u32| folder.path(&format!("{name}_{n:05}.h5"));
            (1..100).map(part).filter(|part| part.exists()).collect()
        };
        let (files, mut read) = (parts("run"), Vec::new());
        let named = |report: &Value| -> Vec<PathBuf> {
            serde_json::from_value(report["files"].clone()).unwrap()
        };
        assert_eq!(named(&ended.report()["record"]), files);
        let text = format!("{} files, {} to ", files.len(), files[0].display());
        assert!(ended.stdout.contains(&text), "{}", ended.stdout);
        assert!(
            files.len() > 2 && !folder.path("run.h5").exists(),
            "{files:?}"
        );
        for file in &files {
            let these = events(file);
            assert!(!these.is_empty());
            read.extend(these);
            assert_eq!(Events::open(file).unwrap().run().unwrap(), Some(5));
        }
        assert_eq!(read.len() as u64, written);
        // As one file has them.
        let whole = folder.arg("whole.h5");
        let (events_out, args) = (folder.arg("run-{n}.events"), ["--port", &port]);
        let ended = run(&[
            &args[..],
            &["--record", &whole, "--events-out", &events_out],
        ]
        .concat());
        let ended = ended.expect(0);
        let report = ended.report();
        assert_eq!(named(&report["record"]), [folder.path("whole.h5")]);
        let numbered = [folder.path("run-0001.events")];
        assert_eq!(named(&report["recording"]), numbered);
        let whole = folder.path("whole.h5");
        assert!(read.iter().all(|event| event.facts.burst == Some(1)));
        // But for the number of the burst, which is of runs with a number.
        let unnumbered = |event: &Event| {
            let mut event = event.clone();
            event.facts.burst = None;
            event
        };
        let unnumbered: Vec<_> = read.iter().map(unnumbered).collect();
        assert!(unnumbered == events(&whole));
        assert_eq!(Events::open(&whole).unwrap().run().unwrap(), None);
        // The files of another run are not written over, nor is one that stands in the way.
        divided("run.h5", &[])
            .expect(2)
            .expect_message(&["run_00001.h5", "--force"]);
        let ended = divided("ring.h5", &["--ring", "2"]).expect(0);
        let last = parts("ring");
        assert_eq!(last.len(), 2);
        assert_eq!(named(&ended.report()["record"]), last);
        // How many events each has depends on the disk.
        let left: Vec<_> = last.iter().flat_map(|file| events(file)).collect();
        assert!(read.ends_with(&left) && left.len() < read.len());
        std::fs::create_dir(folder.path("in-the-way_00003.h5")).unwrap();
        let ended = divided("in-the-way.h5", &[]).expect(1);
        let ended = ended.expect_message(&["in-the-way_00003.h5", "the run continues"]);
        let report = &ended.report()["record"];
        let kept = events(&parts("in-the-way")[0]).len() + events(&parts("in-the-way")[1]).len();
        assert_eq!(number(report, "written"), kept as u64);
        // The one in the way is none of its files.
        assert_eq!(named(report), parts("in-the-way")[..2]);
        assert_eq!(number(report, "lost"), written - kept as u64);
        for wrong in [&["--ring", "2"][..], &["--file-seconds", "1"]] {
            run(&[&["--port", &port], wrong].concat()).expect(2);
        }
    }

    #[test]
    fn a_signal_completes_the_file() {
        for signal in ["INT", "TERM"] {
            let folder = Folder::new();
            let path = folder.path("run.h5");
            let arguments = ["--events", "50000000", "--http", "127.0.0.1:0", "--record"];
            let mut running = start(&[&arguments[..], &[path.to_str().unwrap()]].concat());
            let address = running.address("the run page is at http://");
            running.wait_until("events are accepted", |_| {
                let page = crate::common::ask(&address, "/run.json").unwrap_or_default();
                let body = page.split("\r\n\r\n").nth(1).unwrap_or_default();
                let run: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
                run["events"]["accepted"].as_u64().unwrap_or(0) > 10_000
            });
            running.signal(signal);
            let ended = running.wait().expect(0);
            let report = ended.report();
            let (written, lost) = (
                number(&report["record"], "written"),
                number(&report["record"], "lost"),
            );
            assert!(written > 0);
            assert_eq!(written + lost, number(&report["events"], "accepted"));
            assert_eq!(events(&path).len() as u64, written);
        }
    }

    /// The file has the events that the report says were written, as a good disk has them.
    #[test]
    fn a_full_disk_is_named_and_the_run_goes_on() {
        let folder = Folder::new();
        let capture = folder.path("boards.pcapng");
        record(&boards(20_000), &capture);
        let port = pcap_port(&capture);
        let Some(disk) = SmallDisk::new(&folder, "3m") else {
            return;
        };
        let arguments = ["--port", &port, "--record", &disk.arg("run.h5")];
        let ended = disk
            .run(&arguments, "run.h5", &folder.path("copy.h5"))
            .expect(1)
            .expect_message(&["--record", "run.h5", "No space left", "the run continues"]);
        let report = ended.report();
        assert_eq!(report["end"], "exhausted");
        assert!(number(&report["record"], "lost") > 0);
        let written = number(&report["record"], "written");
        let recorded = written + number(&report["record"], "lost");
        assert_eq!(recorded, number(&report["events"], "accepted"));
        let whole = folder.arg("whole.h5");
        run(&["--port", &port, "--record", &whole]).expect(0);
        let whole = events(&folder.path("whole.h5"));
        let mut file = Events::open(&folder.path("copy.h5")).unwrap();
        assert!(file.warning().unwrap().contains("was not completed"));
        let kept = file.read(0..usize::MAX).unwrap();
        assert!(written > 0);
        assert_eq!(kept.len() as u64, written);
        assert!(kept == whole[..kept.len()], "events are not those decided");
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named() {
        for (path, named) in [("/nowhere/run.h5", "No such file"), ("/", "directory")] {
            let ended = run(&["--events", "1000", "--record", path]).expect(1);
            let ended = ended.expect_message(&["--record", path, named]);
            assert_eq!(ended.stdout, "");
        }
    }
}
