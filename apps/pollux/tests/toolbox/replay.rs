//! `pollux replay`.

use std::time::Instant;

use pollux_pmd_testkit::frames::naive_checksum;
use pollux_pmd_testkit::netns::Cable;
use serde_json::Value;

use crate::support::{
    Capture, Folder, Packet, Running, datagram, packets, refused, reported, run, text,
};

/// Numbered frames, one a second.
fn recording(frames: u32) -> Capture {
    let frame = |n| (n, datagram(n, 9000, &[n as u8; 30]));
    Capture::new(&(0..frames).map(frame).collect::<Vec<_>>())
}

/// Replays into a file; what is in it, and the report.
fn replayed(capture: &Capture, options: &[&str]) -> (Vec<Packet>, Value) {
    let folder = Folder::new();
    let sink = folder.sink("out.pcapng");
    let path = capture.path.to_str().unwrap();
    let report = reported("replay", &[&[path, &sink], options].concat(), 0);
    let out = packets(&folder.path("out.pcapng"));
    assert!(out.is_sorted_by_key(|packet| packet.0));
    let count = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(out.len() as u64, count("sent"));
    assert_eq!(
        count("sent"),
        count("read") - count("lost") + count("duplicated")
    );
    let dropped = &report["ledger"]["dropped"]["impaired"];
    assert_eq!(dropped.as_u64().unwrap_or(0), count("lost"));
    (out, report)
}

/// Number of a frame: its source address.
fn number(packet: &Packet) -> u32 {
    u32::from_be_bytes(packet.1[26..30].try_into().unwrap())
}

#[test]
fn nothing_is_changed_unless_asked() {
    let capture = recording(500);
    let (out, report) = replayed(&capture, &[]);
    for (n, packet) in (0..).zip(&out) {
        assert_eq!(
            *packet,
            (
                u64::from(n) * 1_000_000_000,
                datagram(n, 9000, &[n as u8; 30])
            )
        );
    }
    assert_eq!(
        (out.len(), &report["read"], &report["rounds"]),
        (500, &500.into(), &1.into())
    );
    assert!(report["behind_ns"].is_null(), "a file does not wait");
}

#[test]
fn a_file_has_the_times_of_its_speed_and_rounds() {
    let (out, _) = replayed(&recording(4), &["--speed", "2.5", "--loop", "2"]);
    let times: Vec<_> = out.iter().map(|packet| packet.0 / 1_000_000).collect();
    assert_eq!(times, [0, 400, 800, 1200, 1600, 2000, 2400, 2800]);
    assert_eq!(
        out.iter().map(number).collect::<Vec<_>>(),
        [0, 1, 2, 3, 0, 1, 2, 3]
    );
    let (out, _) = replayed(&recording(3), &["--speed", "max"]);
    assert_eq!(out[2].0, 2_000_000_000, "stays as it was");
}

/// Frames at 1.44 times the rate of a link of 1 kbit/s; every second one supports marks.
#[test]
fn a_bottleneck_delays_marks_and_loses() {
    let frame = |n: u32| {
        let mut frame = datagram(n, 9000, &[n as u8; 30]);
        frame[15] = if n.is_multiple_of(2) { 2 } else { 0 };
        frame[24..26].fill(0);
        let sum = naive_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        (n, frame)
    };
    let capture = Capture::new(&(0..200).map(frame).collect::<Vec<_>>());
    let folder = Folder::new();
    let sink = folder.sink("out.pcapng");
    let path = capture.path.to_str().unwrap();
    let link = ["--speed", "2.5", "--bottleneck", "0.001:200:400"];
    let report = reported("replay", &[&[path, &sink][..], &link].concat(), 0);
    let out = packets(&folder.path("out.pcapng"));
    let count = |key: &str| report[key].as_u64().unwrap();
    assert_eq!((count("read"), count("sent")), (200, out.len() as u64));
    assert_eq!(
        (count("sent") + count("congested"), count("lost")),
        (200, 0)
    );
    assert_eq!(report["ledger"]["dropped"]["impaired"], count("congested"));
    // 72 B take 576 ms, and come each 400 ms: once the queue is full 3 of 10 are lost.
    assert!(out.is_sorted_by_key(number));
    let pause = 8 * out[0].1.len() as u64 * 1_000_000;
    assert!(out.windows(2).all(|two| two[1].0 - two[0].0 >= pause - 1));
    assert!((30..80).contains(&count("congested")), "{report}");
    let marks = out.iter().filter(|packet| packet.1[15] & 3 == 3).count() as u64;
    assert!(marks == count("marked") && marks > 40, "{report}");
    for packet in &out {
        assert_eq!(naive_checksum(&packet.1[14..34]), 0);
        let is_able = number(packet).is_multiple_of(2);
        assert!(packet.1[15] == 0 && !is_able || packet.1[15] >= 2 && is_able);
    }
}

#[test]
fn each_fault_is_done_as_often_as_it_is_counted() {
    let capture = recording(2000);
    let numbers = |options: &[&str]| {
        let (out, report) = replayed(&capture, options);
        (out.iter().map(number).collect::<Vec<_>>(), report)
    };
    let (out, report) = numbers(&["--loss", "0.1"]);
    assert!(out.is_sorted() && (100..300).contains(&report["lost"].as_u64().unwrap()));

    let (out, report) = numbers(&["--duplicate", "0.1"]);
    let twice = out.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(report["duplicated"], twice);
    assert!(out.is_sorted() && twice > 100);

    let (out, report) = numbers(&["--reorder", "0.05:7"]);
    let behind = |place: usize| {
        out[..place]
            .iter()
            .filter(|&&other| other > out[place])
            .count()
    };
    let moved: Vec<_> = (0..out.len()).map(behind).filter(|&by| by > 0).collect();
    assert_eq!(report["reordered"], moved.len());
    assert!(moved.len() > 40 && moved[..moved.len() - 1].iter().all(|&by| by == 7));

    let (packets, report) = replayed(&capture, &["--delay", "100ms-3s:0.1"]);
    let late = |packet: &&Packet| packet.0 > u64::from(number(packet)) * 1_000_000_000;
    let delayed: Vec<_> = packets.iter().filter(late).collect();
    assert_eq!(report["delayed"], delayed.len());
    assert!(delayed.len() > 100);
    for packet in delayed {
        let by = packet.0 - u64::from(number(packet)) * 1_000_000_000;
        assert!((100_000_000..=3_000_000_000).contains(&by), "{by}");
    }
    let (_, report) = replayed(&capture, &["--delay", "5ms", "--loss", "0.5"]);
    let sum = report["delayed"].as_u64().unwrap() + report["lost"].as_u64().unwrap();
    assert_eq!(sum, 2000);

    let (packets, report) = replayed(&capture, &["--corrupt", "0.1"]);
    let wrong = |packet: &&Packet| packet.1[42..] != [number(packet) as u8; 30];
    let corrupted = packets.iter().filter(wrong).count();
    assert_eq!(report["corrupted"], corrupted);
    assert!(corrupted > 100);
    for packet in &packets {
        let n = number(packet);
        let right = datagram(n, 9000, &[n as u8; 30]);
        assert_eq!(packet.1[..42], right[..42], "headers are left alone");
        let changed = packet.1.iter().zip(&right).filter(|(a, b)| a != b).count();
        assert!(changed <= 1);
    }
}

#[test]
fn equal_seeds_make_equal_faults() {
    let capture = recording(500);
    let faults = [
        "--loss",
        "0.1",
        "--duplicate",
        "0.1",
        "--reorder",
        "0.1:3",
        "--corrupt",
        "0.1",
        "--delay",
        "1ms-5s:0.1",
        "--seed",
    ];
    let with = |seed| replayed(&capture, &[&faults[..], &[seed]].concat()).0;
    assert!(with("5") == with("5"));
    assert!(with("5") != with("6"));
}

#[test]
fn a_port_that_does_not_wait_sends_when_frames_are_due() {
    // Four seconds, forty times as fast.
    let capture = recording(5);
    let path = capture.path.to_str().unwrap();
    let since = Instant::now();
    let report = reported("replay", &[path, "null:size=0", "--speed", "40"], 0);
    assert!(since.elapsed().as_secs_f64() > 0.0999);
    assert_eq!(
        (&report["sent"], &report["behind_ns"]["count"]),
        (&5.into(), &5.into())
    );
    let since = Instant::now();
    let all = ["--loop", "1000", "--speed", "max"];
    let report = reported("replay", &[&[path, "null:size=0"], &all[..]].concat(), 0);
    assert!(since.elapsed().as_secs() < 10);
    assert_eq!(report["sent"], 5000);
    // Stopped on the way: what waits is aborted.
    let report = reported("replay", &[path, "null:size=0", "--seconds", "0.1"], 0);
    assert_eq!(report["sent"], 1);
    assert_eq!(report["unsent"], 4);
    assert_eq!(report["ledger"]["dropped"]["aborted"], 4);
    assert_eq!(report["ledger"]["from_wire"], 5);
}

#[test]
fn more_than_the_pool_holds_cannot_be_held_back() {
    let frames: Vec<_> = (0..6000).map(|n| datagram(n, 9000, &[0; 20])).collect();
    let capture = Capture::of_frames(&frames);
    let folder = Folder::new();
    let path = capture.path.to_str().unwrap();
    let args = [
        path,
        &folder.sink("out"),
        "--delay",
        "1s",
        "--buffers",
        "4096",
    ];
    let report = reported("replay", &args, 1);
    assert_eq!(report["sent"], 0);
    let message = refused("replay", &args, 1);
    assert!(message.contains("--buffers 4096"), "{message}");
    let enough = [&args[..5], &["8192"]].concat();
    assert_eq!(reported("replay", &enough, 0)["delayed"], 6000);
}

/// More frames at one time than there are buffers, into a file and into a port that waits.
#[test]
fn frames_without_stamps_need_no_buffer_each() {
    let frames: Vec<_> = (0..6000).map(|n| datagram(n, 9000, &[0; 20])).collect();
    let capture = Capture::of_frames(&frames);
    let path = capture.path.to_str().unwrap();
    let few = ["--buffers", "4096", "--seconds", "60"];
    let (out, report) = replayed(&capture, &[&few[..], &["--loop", "3"]].concat());
    let numbers: Vec<_> = out.iter().map(number).collect();
    let thrice: Vec<_> = (0..3).flat_map(|_| 0..6000).collect();
    assert_eq!(numbers, thrice);
    assert_eq!(
        (&report["sent"], &report["unsent"]),
        (&18_000.into(), &0.into())
    );

    let faults = [
        "--loss",
        "0.1",
        "--duplicate",
        "0.1",
        "--reorder",
        "0.1:3",
        "--corrupt",
        "0.1",
    ];
    let faulty = [&few[..], &faults[..]].concat();
    let (out, _) = replayed(&capture, &faulty);
    let late = out
        .windows(2)
        .filter(|pair| number(&pair[0]) > number(&pair[1]));
    assert!(late.count() > 100);
    // Each round of one frame is as long as the frame: no time at all.
    let one = Capture::of_frames(&frames[..1]);
    let again = ["--loop", "5000"];
    assert_eq!(replayed(&one, &[&few[..], &again].concat()).1["sent"], 5000);

    // Delayed frames keep their buffers, and the others wait for these.
    for options in [&["--loop", "3"][..], &faults, &["--delay", "1-5ms:0.9"]] {
        let args = [&[path, "null:size=0"], &few[..], options].concat();
        let report = reported("replay", &args, 0);
        let count = |key: &str| report[key].as_u64().unwrap();
        let all = count("read") - count("lost") + count("duplicated");
        assert_eq!((count("sent"), count("unsent")), (all, 0), "{options:?}");
        assert!(count("read") >= 6000, "{options:?}");
    }
}

#[test]
fn a_replay_reaches_the_other_end_of_a_cable() {
    let Some(cable) = Cable::bare(1500) else {
        return;
    };
    let folder = Folder::new();
    let sink = folder.sink("flows.pcapng");
    let flows = [
        &*sink, "--count", "3000", "--rate", "20k", "--flows", "3", "--seed", "9",
    ];
    reported("generate", &flows, 0);
    let verify = "verify af_packet:vb --ring 8192 --seed 9 --idle 3";
    let mut verify = Running::start(&cable.b, verify);
    verify.wait_for_ports();
    let path = folder.path("flows.pcapng");
    let faults = "--loss 0.02 --duplicate 0.02 --corrupt 0.02 --reorder 0.02:3 --seed 4";
    let replay = format!("replay {} af_packet:va {faults}", path.display());
    let sent = Running::start(&cable.a, &replay).report(0);
    let came = verify.report(1);
    assert_eq!(sent["read"], 3000);
    for (ours, theirs) in [("duplicated", "duplicate"), ("corrupted", "corrupt")] {
        assert_eq!(sent[ours], came[theirs], "{ours}: {sent:#} {came:#}");
        assert!(sent[ours].as_u64().unwrap() > 20);
    }
    let count = |report: &Value, key: &str| report[key].as_u64().unwrap();
    let missing = count(&sent, "lost") + count(&sent, "corrupted");
    assert_eq!(count(&came, "missing"), missing);
    let received = 3000 - missing + count(&sent, "duplicated");
    assert_eq!(count(&came, "received"), received);
}

#[test]
fn what_cannot_be_is_refused() {
    let capture = recording(1);
    let path = capture.path.to_str().unwrap();
    let says = |args: &[&str], status, what: &str| {
        let message = refused("replay", args, status);
        assert!(message.contains(what), "{args:?}: {message}");
    };
    says(&[], 2, "<FILE>");
    says(&[path], 2, "<PORT>");
    says(&[path, "nul"], 2, "no driver `nul`");
    says(&["a,b.pcap", "null"], 2, "no comma");
    says(&["/nowhere.pcap", "null"], 1, "No such file");
    says(&[path, "null", "--speed", "0"], 2, "--speed");
    says(&[path, "null", "--loss", "1.5"], 2, "probability");
    says(&[path, "null", "--reorder", "0.1:0"], 2, "distance");
    says(
        &[path, "null", "--delay", "5 parsecs"],
        2,
        "a time like 250ms",
    );
    says(
        &[path, "null", "--delay", "2ms-1ms"],
        2,
        "the shortest is above the longest",
    );
    says(
        &[path, "null", "--loss", "0.6", "--corrupt", "0.6"],
        2,
        "add up to 1.2",
    );
    says(&[path, "null", "--cores", "0,1"], 2, "--cores");
    says(&[path, "null", "--buffers", "1"], 2, "--buffers");
    says(&[path, &capture.spec()], 2, "1 transmit queues");
    let help = text(&run("replay", &["--help"]).stdout);
    for part in [
        "Examples:",
        "--reorder <P[:DISTANCE]>",
        "impaired",
        "Port specs:",
    ] {
        assert!(help.contains(part), "no {part}");
    }
}

#[test]
fn no_recording_is_overwritten_while_it_is_read() {
    let capture = recording(10);
    let (path, folder) = (capture.path.to_str().unwrap(), Folder::new());
    let whole = std::fs::read(path).unwrap();
    let hard = folder.path("hard.pcapng");
    std::fs::hard_link(path, &hard).unwrap();
    let (sink, port) = (folder.sink("hard.pcapng"), format!("pcap:rx={path}"));
    let json = format!("--json={}", hard.display());
    let toml = folder.path("play.toml");
    std::fs::write(&toml, "ip = '10.0.0.1'\nmac = '02:00:00:00:00:01'\n").unwrap();
    let config = toml.display().to_string();
    for (command, args) in [
        ("replay", &[path, &sink][..]),
        ("replay", &[path, "null", &json, "--force"]),
        ("streams", &[&port, &json, "--force"]),
        ("verify", &[&port, &json, "--force"]),
        ("bench", &["--tx", "null", "--rx", &port, &json, "--force"]),
        ("rdma", &["bench", &port, "null", &json, "--force"]),
        (
            "rdma",
            &[
                "play", "--port", &port, "--config", &config, &json, "--force",
            ],
        ),
    ] {
        let message = refused(command, args, 2);
        assert!(message.contains("which is read"), "{command}: {message}");
    }
    let both = format!("{port},tx={}", hard.display());
    let message = refused("forward", &[&both, "--seconds", "1"], 2);
    assert!(message.contains("which is read"), "{message}");
    assert_eq!(std::fs::read(path).unwrap(), whole);
}
