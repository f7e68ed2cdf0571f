//! `pollux capture`: what is in the files, read by others, and what they say was lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption as Option_;
use pcap_file::pcapng::{Block, PcapNgReader};
use pollux_pmd_testkit::netns::{Cable, Namespace};
use serde_json::{Value, json};

use crate::support::{
    Capture, Folder, Running, datagram, packets, pollux, refused, reported, run, text,
};

/// A capture in nanoseconds, with stamps to the nanosecond.
fn recording(frames: &[(u64, Vec<u8>)]) -> Capture {
    let header: [u32; 6] = [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, 1 << 18, 1];
    let mut bytes = header.map(u32::to_le_bytes).concat();
    for (ns, frame) in frames {
        let len = frame.len() as u32;
        let (s, ns) = ((ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32);
        bytes.extend([s, ns, len, len].map(u32::to_le_bytes).concat());
        bytes.extend(frame);
    }
    Capture::of_bytes(&bytes)
}

/// `n` datagrams of different lengths to ports 9000 to 9003, an odd number of nanoseconds apart.
fn frames(n: u64) -> Vec<(u64, Vec<u8>)> {
    let frame = |i: u64| {
        datagram(
            7,
            9000 + (i % 4) as u16,
            &vec![i as u8; 10 + (i * 37 % 1400) as usize],
        )
    };
    (0..n)
        .map(|i| (1_700_000_000_000_000_007 + i * 1_000_003, frame(i)))
        .collect()
}

/// What the statistics of a file say; there is one block of them, at its end.
#[derive(Debug, Default, PartialEq)]
struct Statistics {
    received: u64,
    interface_drops: u64,
    accepted: u64,
    system_drops: u64,
    written: u64,
    comment: String,
}

fn statistics(path: &Path) -> Statistics {
    let mut reader = PcapNgReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut found = None;
    while let Some(block) = reader.next_block() {
        assert!(found.is_none(), "statistics are at the end");
        if let Block::InterfaceStatistics(block) = block.unwrap() {
            let mut statistics = Statistics::default();
            for option in block.options {
                match option {
                    Option_::IsbIfRecv(n) => statistics.received = n,
                    Option_::IsbIfDrop(n) => statistics.interface_drops = n,
                    Option_::IsbFilterAccept(n) => statistics.accepted = n,
                    Option_::IsbOsDrop(n) => statistics.system_drops = n,
                    Option_::IsbUsrDeliv(n) => statistics.written = n,
                    Option_::Comment(text) => statistics.comment = text.into_owned(),
                    _ => {}
                }
            }
            found = Some(statistics);
        }
    }
    found.expect("statistics")
}

/// What tshark says of each frame; none where it is not installed.
fn tshark(path: &Path, field: &str) -> Option<Vec<String>> {
    let output = Command::new("tshark")
        .args(["-T", "fields", "-e", field, "-r"])
        .arg(path)
        .output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            println!("skipped: tshark is not installed");
            return None;
        }
        output => output.unwrap(),
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout).lines().map(str::to_owned).collect())
}

/// A capture that ends as it should.
fn capture(port: &str, output: &Path, more: &[&str]) -> Value {
    let report = reported(
        "capture",
        &[&[port, "-o", output.to_str().unwrap()], more].concat(),
        0,
    );
    assert_eq!(report["written"], report["ledger"]["delivered"]);
    report
}

#[test]
fn frames_and_stamps_are_those_of_the_wire() {
    let (folder, sent) = (Folder::new(), frames(500));
    let path = folder.path("run.pcapng");
    let report = capture(&recording(&sent).spec(), &path, &[]);
    assert_eq!(packets(&path), sent);
    assert_eq!(report["files"], json!([path]));
    let statistics = statistics(&path);
    let counts = (statistics.received, statistics.accepted, statistics.written);
    assert_eq!(counts, (500, 500, 500));
    assert_eq!(
        (statistics.interface_drops, statistics.system_drops),
        (0, 0)
    );

    if let Some(times) = tshark(&path, "frame.time_epoch") {
        let ours = sent
            .iter()
            .map(|(ns, _)| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000));
        assert_eq!(times, ours.collect::<Vec<_>>());
    }
    let Ok(capinfos) = Command::new("capinfos").arg("-M").arg(&path).output() else {
        println!("skipped: capinfos is not installed");
        return;
    };
    let summary = text(&capinfos.stdout);
    let last = |name: &str| {
        summary
            .lines()
            .rev()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap()
    };
    assert!(
        last("Number of packets").ends_with("500") && summary.contains("nanoseconds (9)"),
        "{summary}"
    );
    assert!(
        last("Number of stat entries").ends_with('1') && summary.contains("pollux"),
        "{summary}"
    );
}

#[test]
fn a_filter_keeps_ports_and_a_length_cuts_frames() {
    let (folder, sent) = (Folder::new(), frames(400));
    let path = folder.path("run.pcapng");
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 46]].concat();
    let source = recording(&[&sent[..], &[(2_000_000_000_000_000_000, arp)]].concat());
    let more = [
        "--filter",
        "udp.dst=9003",
        "--filter",
        "udp.dst=9000-9001,7",
        "--snap-len",
        "60",
    ];
    let report = capture(&source.spec(), &path, &more);
    let wanted = sent
        .iter()
        .filter(|(_, frame)| frame[37] != 42)
        .map(|(ns, frame)| {
            let kept = &frame[..frame.len().min(60)];
            (*ns, kept.to_vec())
        });
    assert_eq!(packets(&path), wanted.collect::<Vec<_>>());
    assert_eq!(report["filtered"], 101);
    assert_eq!(
        report["ledger"]["dropped"],
        json!({"demux-miss": 100, "not-for-us": 1})
    );
    let statistics = statistics(&path);
    assert_eq!(
        (statistics.received, statistics.accepted, statistics.written),
        (401, 300, 300)
    );
    assert!(
        statistics.comment.contains("left out by the filter: 101"),
        "{}",
        statistics.comment
    );
    if let Some(lengths) = tshark(&path, "frame.len") {
        assert_eq!(
            lengths[1],
            sent[1].1.len().to_string(),
            "the length on the wire stays"
        );
    }
}

#[test]
fn files_follow_each_other_and_the_last_stay() {
    let (folder, sent) = (Folder::new(), frames(1000));
    let path = folder.path("run.pcapng");
    let source = recording(&sent);
    let all = capture(&source.spec(), &path, &["--file-size", "100k"]);
    let files: Vec<PathBuf> = serde_json::from_value(all["files"].clone()).unwrap();
    assert!(
        files.len() > 5 && files[0].ends_with("run_00001.pcapng"),
        "{files:?}"
    );
    assert!(!path.exists());
    let mut frames = Vec::new();
    for file in &files {
        assert!(fs::metadata(file).unwrap().len() <= 100_500);
        frames.extend(packets(file));
        // Since the beginning of the capture.
        assert_eq!(statistics(file).written, frames.len() as u64);
    }
    assert_eq!(frames, sent);

    let some = capture(
        &source.spec(),
        &folder.path("ring.pcapng"),
        &["--file-size", "100k", "--ring", "2"],
    );
    let kept: Vec<PathBuf> = serde_json::from_value(some["files"].clone()).unwrap();
    assert_eq!(kept.len(), 2);
    let there = fs::read_dir(path.parent().unwrap()).unwrap();
    let named = |entry: io::Result<fs::DirEntry>| {
        entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("ring_")
    };
    assert_eq!(there.map(named).filter(|&ring| ring).count(), 2);
    let last: Vec<_> = kept.iter().flat_map(|file| packets(file)).collect();
    assert!(sent.ends_with(&last));
}

#[test]
fn a_file_that_is_old_is_followed_by_another() {
    let folder = Folder::new();
    let frame = datagram(1, 9000, &[1; 20]);
    let source = recording(&[0, 300, 600].map(|ms| (ms * 1_000_000, frame.clone())));
    let spec = format!("{},pace=recorded", source.spec());
    let report = capture(&spec, &folder.path("run"), &["--file-seconds", "0.1"]);
    let files: Vec<PathBuf> = serde_json::from_value(report["files"].clone()).unwrap();
    assert_eq!(
        files
            .iter()
            .map(|file| packets(file).len())
            .collect::<Vec<_>>(),
        [1, 1, 1]
    );
}

#[test]
fn what_finds_no_room_in_front_of_the_disk_is_counted_in_the_file() {
    let folder = Folder::new();
    let path = folder.path("flood.pcapng");
    let more = ["--duration", "0.3", "--buffer", "64"];
    let report = capture("null", &path, &more);
    let statistics = statistics(&path);
    let lost = report["lost_before_disk"].as_u64().unwrap();
    assert!(lost > 0, "{report:#}");
    assert_eq!(report["ledger"]["dropped"]["ring-full"], lost);
    assert_eq!(statistics.accepted - statistics.written, lost);
    assert_eq!(
        statistics.received,
        report["ports"][0]["rx_packets"].as_u64().unwrap()
    );
    assert!(
        statistics
            .comment
            .ends_with(&format!("lost in front of the disk: {lost}"))
    );
    assert_eq!(packets(&path).len() as u64, statistics.written);
}

#[test]
fn a_number_of_frames_is_kept_to() {
    let folder = Folder::new();
    let path = folder.path("some.pcapng");
    let report = capture("null", &path, &["--count", "1000"]);
    assert_eq!(
        (&report["written"], packets(&path).len()),
        (&json!(1000), 1000)
    );
}

#[test]
fn an_interrupted_capture_is_a_whole_file() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let folder = Folder::new();
    let path = folder.path("run.pcapng");
    let line = format!("capture null -o {} --quiet", path.display());
    let mut running = Running::start(&namespace, &line);
    running.wait_for_ports();
    running.interrupt();
    let report = running.report(0);
    assert_eq!(report["ledger"]["balanced"], true);
    assert_eq!(
        statistics(&path).written,
        report["written"].as_u64().unwrap()
    );
    assert_eq!(
        packets(&path).len() as u64,
        report["written"].as_u64().unwrap()
    );
}

#[test]
fn frames_of_the_kernel_are_captured_by_two_loops() {
    let Some(cable) = Cable::bare(1500) else {
        return;
    };
    let folder = Folder::new();
    let path = folder.path("run.pcapng");
    let two = pollux_pmd::lcore::allowed_cpus()
        .iter()
        .take(2)
        .map(ToString::to_string)
        .collect::<Vec<_>>();
    let line = format!(
        "capture af_packet:va,ring=8192 -o {} --count 4000 --cores {}",
        path.display(),
        two.join(",")
    );
    let mut running = Running::start(&cable.a, &line);
    running.wait_for_ports();
    let generate = "generate af_packet:vb --rate 20k --count 4000 --flows 16 --size 60-1500";
    let sent = Running::start(&cable.b, generate).report(0);
    let report = running.report(0);
    assert_eq!(
        (&sent["sent"], &report["written"]),
        (&json!(4000), &json!(4000))
    );
    let captured = packets(&path);
    assert_eq!(captured.len(), 4000);
    let bytes: usize = captured.iter().map(|(_, frame)| frame.len()).sum();
    assert_eq!(sent["sent_bytes"], bytes);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let age = |ns: u64| now.as_nanos() as i128 - i128::from(ns);
    assert!(
        captured
            .iter()
            .all(|(ns, _)| (0..60_000_000_000).contains(&age(*ns)))
    );
}

#[test]
fn a_disk_that_is_full_ends_the_run_with_a_report() {
    let folder = Folder::new();
    let (disk, copy, report) = (
        folder.path("disk"),
        folder.path("copy"),
        folder.path("report"),
    );
    fs::create_dir(&disk).unwrap();
    // A disk of 300 KiB in a mount namespace, which goes with its last process.
    let script = "mount -t tmpfs -o size=300k tmpfs \"$1\" || exit 77
                  \"$0\" capture null -q --seconds 10 -o \"$1/run.pcapng\" --report \"$3\"
                  status=$?; cp \"$1/run.pcapng\" \"$2\"; exit $status";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_pollux")])
        .args([&disk, &copy, &report])
        .output();
    let Ok(output) = output else {
        println!("skipped: no `unshare` program");
        return;
    };
    let message = text(&output.stderr);
    if !report.exists() {
        println!("skipped: a disk in a namespace needs root: {message}");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("run.pcapng: writing failed") && message.contains("complete up to there"),
        "{message}"
    );
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(report["ledger"]["balanced"], true);
    assert_eq!(report["ledger"]["dropped"]["disk"], report["lost_by_disk"]);
    assert!(report["lost_by_disk"].as_u64().unwrap() > 0);
    // What fits stays: the disk is full but for a part of a block.
    assert!(report["written_bytes"].as_u64().unwrap() > 0);
    assert!(fs::metadata(&copy).unwrap().len() > 280 << 10);
    assert!(text(&output.stdout).contains(" by the disk"));
    assert_eq!(
        packets(&copy).len() as u64,
        report["written"].as_u64().unwrap()
    );
}

#[test]
fn a_file_that_cannot_be_written_is_refused_at_once() {
    let refused = |output: &str| refused("capture", &["null", "-o", output], 1);
    assert!(refused("/dev/full").contains("cannot write /dev/full: No space left"));
    assert!(
        refused("/nowhere/run.pcapng").contains("cannot write /nowhere/run.pcapng: No such file")
    );
}

#[test]
fn a_next_file_that_cannot_be_written_ends_the_run() {
    let folder = Folder::new();
    // A folder stands where the second file would be.
    fs::create_dir(folder.path("run_00002.pcapng")).unwrap();
    let output = pollux("capture")
        .args(["null", "--file-size", "100k", "-q", "--seconds", "10", "-o"])
        .arg(folder.path("run.pcapng"))
        .output()
        .unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("cannot write") && message.contains("run_00002.pcapng"),
        "{message}"
    );
    assert_eq!(
        statistics(&folder.path("run_00001.pcapng")).written as usize,
        packets(&folder.path("run_00001.pcapng")).len()
    );
}

#[test]
fn a_damaged_source_is_told_after_what_it_had() {
    let folder = Folder::new();
    let whole = recording(&frames(10));
    let bytes = fs::read(&whole.path).unwrap();
    let cut = Capture::of_bytes(&bytes[..bytes.len() - 1]);
    let path = folder.path("run.pcapng");
    let report = reported("capture", &[&cut.spec(), "-o", path.to_str().unwrap()], 1);
    assert_eq!((&report["written"], packets(&path).len()), (&json!(9), 9));
    assert_eq!(statistics(&path).interface_drops, 1);
}

#[test]
fn mistakes_are_told() {
    let folder = Folder::new();
    let path = folder.path("run.pcapng");
    let path = path.to_str().unwrap();
    let wrong = |args: &[&str]| refused("capture", args, 2);
    assert!(wrong(&["null"]).contains("--output"));
    assert!(wrong(&["nul", "-o", path]).contains("no driver `nul`"));
    assert!(wrong(&["null", "-o", path, "--ring", "3"]).contains("--ring needs --file-size"));
    assert!(wrong(&["null", "-o", path, "--filter", "udp.src=3"]).contains("udp.dst=PORTS"));
    assert!(wrong(&["null", "-o", path, "--file-size", "10"]).contains("from 10000"));
    assert!(wrong(&["null", "-o", path, "--snap-len", "0"]).contains("--snap-len"));
    assert!(wrong(&["null", "-o", path, "--buffer", "1"]).contains("--buffer"));
    assert!(!Path::new(path).exists());
    let source = recording(&frames(3));
    let message = wrong(&[&source.spec(), "-o", source.path.to_str().unwrap()]);
    assert!(message.contains("the file that"), "{message}");
    assert!(!fs::read(&source.path).unwrap().is_empty());
    let sink = wrong(&[&folder.sink("x"), "-o", path]);
    assert!(sink.contains("receive queues"), "{sink}");
    assert!(run("capture", &["--help"]).status.success());
}
