//! Runs of some length: how they end, where they run, paced replays.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::capture::{boards, packets, pcap, record};
use crate::common::{Folder, Running, TRIGGER, alone, cpus, number, pcap_port, run, start};
use crate::demonstration::assert_demonstration;
use pollux_emulator::config::EmulatorConfig;

/// A demonstration that can be watched, and does not end by itself while a test lasts.
const ENDLESS: [&str; 4] = ["--events", "50000000", "--metrics", "127.0.0.1:0"];

/// The sum of the samples of a page of metrics whose names begin so.
fn sum(page: &str, name: &str) -> u64 {
    let samples = page.lines().filter(|line| line.starts_with(name));
    samples
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

/// Waits until a run that serves its metrics has built so many complete events; how many, and the
/// page that says so.
#[track_caller]
fn watch_until(running: &mut Running, events: u64) -> (u64, String) {
    let mut seen = (0, String::new());
    running.wait_until("the events are built", |running| {
        let page = running.metrics().unwrap_or_default();
        seen = (
            sum(&page, "pollux_l0_events_total{outcome=\"complete\"}"),
            page,
        );
        seen.0 >= events
    });
    seen
}

#[test]
fn a_signal_ends_the_demonstration_in_order() {
    let _alone = alone();
    for signal in ["INT", "TERM"] {
        let mut running = start(&ENDLESS);
        watch_until(&mut running, 1001);
        running.signal(signal);
        let ended = running.wait().expect(0);
        let report = assert_demonstration(&ended);
        assert_eq!(report["end"], "stopped");
        assert_eq!(report["emulator"]["complete"], false);
        assert!(
            number(&report["events"], "built") > 1000,
            "{}",
            report["events"]
        );
        assert!(ended.stdout.contains("ledger"), "{}", ended.stdout);
    }
}

/// A capture of ten seconds.
fn long_capture(folder: &Folder) -> (String, u64) {
    let config = EmulatorConfig {
        rate: 1000,
        ..boards(10_000)
    };
    let capture = folder.path("long.pcapng");
    let sent = record(&config, &capture);
    (pcap_port(&capture) + ",pace=recorded", sent.frames_sent)
}

#[test]
fn a_signal_ends_a_paced_replay_in_order() {
    let folder = Folder::new();
    let (port, frames) = long_capture(&folder);
    for signal in ["INT", "TERM"] {
        let out = folder.arg("events");
        let metrics = ["--metrics", "127.0.0.1:0"];
        let args = ["--port", &port, "--force", "--events-out", &out];
        let mut running = start(&[&args[..], &metrics].concat());
        watch_until(&mut running, 1);
        running.signal(signal);
        let ended = running.wait().expect(0);
        let report = ended.report();
        assert_eq!(report["end"], "stopped");
        let from_wire = number(&report["ledger"], "from_wire");
        assert!(
            from_wire > 0 && from_wire < frames,
            "{from_wire} of {frames}"
        );
        // What is left in the file was never on the wire; what was read has been decided.
        let built = number(&report["events"], "built");
        assert!(built > 0);
        assert_eq!(
            fs::metadata(folder.path("events")).unwrap().len(),
            64 * (1 + built)
        );
    }
}

/// While nothing comes, workers go on with what is there, and what they have done departs.
#[test]
fn no_decision_waits_for_the_next_frame_of_a_paced_replay() {
    let folder = Folder::new();
    let events = 24;
    let config = EmulatorConfig {
        events_per_frame: 24,
        ..boards(2 * events)
    };
    let (mut packets, _) = packets(&config);
    let (first, rest) = packets.split_at_mut(4);
    for packet in &mut *rest {
        packet.time += 3_600_000_000_000;
    }
    assert!(first.iter().all(|packet| packet.time < rest[0].time));
    let port = pcap_port(folder.write("boards.pcap", pcap(&packets))) + ",pace=recorded";
    for workers in ["0", "1", "2"] {
        let args = ["--port", &port, "--workers", workers];
        let mut running = start(&[&args[..], &["--metrics", "127.0.0.1:0"]].concat());
        running.wait_until("the events are decided", |running| {
            let page = running.metrics().unwrap_or_default();
            sum(&page, "pollux_l0_decisions_total") == events
        });
        running.signal("INT");
        let ended = running.wait().expect(0);
        assert_eq!(number(&ended.report()["events"], "built"), events);
    }
}

#[test]
fn a_run_is_bounded_by_time_and_by_events() {
    let _alone = alone();
    let ended = run(&["--events", "50000000", "--duration", "0.5"]).expect(0);
    let report = assert_demonstration(&ended);
    assert_eq!(report["end"], "stopped");
    assert!(report["duration_s"].as_f64().unwrap() >= 0.5);
    assert_eq!(report["emulator"]["complete"], false);

    let folder = Folder::new();
    let (port, frames) = long_capture(&folder);
    let ended = run(&["--port", &port, "--duration", "0.3"]).expect(0);
    assert_eq!(ended.report()["end"], "stopped");
    assert!(number(&ended.report()["ledger"], "from_wire") < frames);

    // As fast as possible, up to a number of events: no fewer; more only as far as the rounds of
    // the loop go.
    let (port, _) = port.split_once(',').unwrap();
    let ended = run(&["--port", port, "--events", "1000"]).expect(0);
    let report = ended.report();
    assert_eq!(report["end"], "enough");
    let built = number(&report["events"], "built");
    assert!((1000..1100).contains(&built), "{built}");
}

#[test]
fn a_second_run_at_the_recorded_pace_finds_the_same() {
    let folder = Folder::new();
    let config = boards(20_000); // a fifth of a second
    let capture = folder.path("boards.pcapng");
    record(&config, &capture);
    let events = |pace: &str| {
        let out = folder.arg("events");
        run(&[
            "--port",
            &(pcap_port(&capture) + pace),
            "--force",
            "--events-out",
            &out,
        ])
        .expect(0);
        fs::read(out).unwrap()
    };
    assert!(events("") == events(",pace=recorded"));
}

/// What the kernel says about the threads of a process: name, allowed CPUs, present CPU.
fn threads(id: u32) -> Vec<(String, String, usize)> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let of = |task: &Path| {
        let read = |name| fs::read_to_string(task.join(name)).ok();
        let (status, stat) = (read("status")?, read("stat")?);
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"))?;
        // proc_pid_stat(5): field 39; the name in field 2 may have blanks.
        let behind_name = stat.rsplit_once(") ")?.1;
        let cpu = behind_name.split(' ').nth(39 - 3)?.parse().ok()?;
        Some((read("comm")?.trim().to_owned(), allowed.to_owned(), cpu))
    };
    tasks.filter_map(|task| of(&task.ok()?.path())).collect()
}

#[test]
fn loops_stay_on_their_cores() {
    if cpus() < 2 {
        println!("skipped: one CPU only");
        return;
    }
    let _alone = alone();
    for (cores, trigger_cpu, emulator_cpu) in [("0,1", 0, 1), ("1,0", 1, 0)] {
        let mut running = start(&[&ENDLESS[..], &["--cores", cores]].concat());
        let mut seen: BTreeMap<String, BTreeSet<(String, usize)>> = BTreeMap::new();
        // A new thread is where it belongs when its first act, the pinning, is done.
        let placed = |(name, allowed, _): &(String, String, usize)| {
            [("trigger", trigger_cpu), ("emulator", emulator_cpu)]
                .iter()
                .any(|(role, cpu)| name == role && *allowed == cpu.to_string())
        };
        while threads(running.id())
            .iter()
            .filter(|thread| placed(thread))
            .count()
            < 2
        {
            assert!(running.is_alive(), "{}", running.stderr());
        }
        for _ in 0..50 {
            for (name, allowed, cpu) in threads(running.id()) {
                seen.entry(name).or_default().insert((allowed, cpu));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        running.signal("INT");
        let ended = running.wait().expect(0);
        for (name, cpu) in [("trigger", trigger_cpu), ("emulator", emulator_cpu)] {
            let only = BTreeSet::from([(cpu.to_string(), cpu)]);
            assert_eq!(seen[name], only, "{name} with --cores {cores}");
        }
        let report = assert_demonstration(&ended);
        assert_eq!(report["cores"][0]["cpu"], trigger_cpu);
        assert_eq!(report["cores"][1]["cpu"], emulator_cpu);
        // The main thread keeps house elsewhere than on the trigger's core.
        let name = Path::new(TRIGGER).file_name().unwrap().to_str().unwrap();
        assert!(
            seen[name]
                .iter()
                .any(|(allowed, _)| *allowed == emulator_cpu.to_string())
        );
    }
}

#[test]
fn a_core_that_is_not_isolated_is_warned_about_with_the_remedy() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(32), &capture);
    let port = pcap_port(&capture);
    let ended = run(&["--port", &port, "--cores", "0"]).expect(0);
    if ended.report()["cores"][0]["isolated"] == true {
        println!("skipped: cpu 0 is isolated");
        return;
    }
    ended.expect_message(&["cpu 0 (trigger) is not isolated", "isolcpus=0", "--cores"]);
    let quiet = run(&["--port", &port, "--cores", "0", "--quiet"]).expect(0);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_run() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(40_000), &capture);
    // A disk that is full when the first megabyte is to be written, in the middle of the run.
    let ended = run(&["--port", &pcap_port(&capture), "--events-out", "/dev/full"]);
    let named = [
        "no more events are recorded",
        "--events-out /dev/full is incomplete",
        "No space left",
    ];
    let ended = ended.expect(1).expect_message(&named);
    let report = ended.report();
    assert_eq!(report["end"], "exhausted");
    assert_eq!(number(&report["events"], "built"), 40_000);
    assert_eq!(number(&report["recording"], "written"), 0);
    assert_eq!(number(&report["recording"], "lost"), 40_000);
    assert!(
        ended.stdout.contains("0 events written, 40000 lost"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_report_that_cannot_be_written_fails_before_the_run_or_behind_the_report_on_stdout() {
    let folder = Folder::new();
    let capture = folder.path("boards.pcapng");
    record(&boards(320), &capture);
    let nowhere = folder.arg("no/such/folder/report.json");
    let directory = folder.arg("");
    for (path, what, ran) in [
        ("/dev/full", "No space left", true),
        (&nowhere, "No such file or directory", false),
        (&directory, "Is a directory", false),
    ] {
        let ended = run(&["--port", &pcap_port(&capture), "--report", path]).expect(1);
        let ended = ended.expect_message(&["--report", path, what]);
        assert_eq!(
            ended.stdout.contains("320 complete"),
            ran,
            "{}",
            ended.stdout
        );
    }
    let ended = run(&["--port", &pcap_port(&capture), "--events-out", &nowhere]).expect(1);
    let ended = ended.expect_message(&["--events-out", &nowhere, "No such file or directory"]);
    assert_eq!(ended.stdout, "");
}

#[test]
fn answers_go_into_a_capture_too() {
    use pollux_emulator::check::DecisionCheck;
    use pollux_emulator::truth::Truth;

    let (folder, config) = (Folder::new(), boards(2000));
    let capture = folder.path("boards.pcapng");
    record(&config, &capture);
    let port = format!(
        "{},tx={}",
        pcap_port(&capture),
        folder.arg("answers.pcapng")
    );
    let ended = run(&["--port", &port]).expect(0);
    let report = ended.report();
    assert_eq!(number(&report["answers"], "sent"), 2000);
    let answers = crate::common::capture::read(&folder.path("answers.pcapng"));
    assert_eq!(answers.len() as u64, number(&report["answers"], "packets"));
    assert_eq!(
        answers.len() as u64,
        number(&report["ports"][0], "tx_packets")
    );
    let mut check = DecisionCheck::new(Truth::of(&config).unwrap().timeline());
    (0..2000).for_each(|_| check.expect(false));
    for packet in &answers {
        assert_eq!(packet.bytes[36..38], 30_100_u16.to_be_bytes());
        check.packet(&packet.bytes[42..]).unwrap();
    }
    let counts = check.finish(2000);
    assert_eq!(
        (counts.decided, counts.missing, counts.repeated),
        (2000, 0, 0)
    );
    assert_eq!(counts.accepted, number(&report["events"], "accepted"));
}

/// The metrics of a run can be read while it lasts, and are those of its report at its end.
#[test]
fn a_run_can_be_watched() {
    let _alone = alone();
    let mut running = start(&ENDLESS);
    let (first, _) = watch_until(&mut running, 1);
    let (last, page) = watch_until(&mut running, first + 1);
    running.signal("INT");
    let ended = running.wait().expect(0);
    assert!(last <= number(&ended.report()["events"], "complete"));
    assert!(sum(&page, "pollux_l0_latency_seconds_count{stage=\"total\"}") > 0);
    assert!(sum(&page, "pollux_stream_frames_total{stream=\"3\"}") > 0);
}
