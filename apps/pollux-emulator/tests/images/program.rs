//! The sub-command: captures, sockets, files, exit statuses.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use pollux_mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::{PortConfig, Registry, StartedPort};
use serde_json::Value;

use crate::frames::{Parsed, parse, parse_payload};

/// No wait in these tests is longer.
const PATIENCE: Duration = Duration::from_secs(30);

fn command(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux-emulator"));
    command.arg("images").args(args.split_whitespace());
    command
}

/// Runs with status 0.
fn succeed(args: &str) -> Output {
    let output = command(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args}: {stderr}");
    output
}

/// Runs with another status; the error output.
fn fail(args: &str, status: i32) -> String {
    let output = command(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{args}: {stderr}");
    stderr
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Packets of a capture with their times in ns; `None` where a checksum is wrong.
fn read_capture(path: &Path) -> Vec<(u64, Option<Parsed>)> {
    let pool = Mempool::new(PoolConfig {
        buffers: 512,
        data_room: 9000,
        ..PoolConfig::default()
    })
    .unwrap();
    let config = PortConfig::new(pool.clone()).tx_queues(0);
    let port = Registry::builtin().open(&format!("pcap:rx={}", path.display()));
    let started = port.unwrap().configure(config).unwrap().start().unwrap();
    let StartedPort { port, mut rx, tx } = started;
    let (mut cache, mut burst) = (pool.cache(64).unwrap(), Burst::<32>::new());
    let mut packets = Vec::new();
    while !rx[0].state().is_final() {
        rx[0].rx(&mut cache, &mut burst);
        let packet = |mbuf: &pollux_mempool::Mbuf| parse(mbuf.data()).ok();
        packets.extend(
            burst
                .iter()
                .map(|mbuf| (mbuf.wire_time().unwrap().0, packet(mbuf))),
        );
        cache.free_burst(&mut burst);
    }
    port.stop(rx, tx).unwrap();
    packets
}

#[test]
fn equal_seeds_write_equal_captures() {
    let dir = tempfile::tempdir().unwrap();
    let capture = |name: &str, seed| {
        let path = dir.path().join(name);
        let faults = "--lost 0.02 --late 0.02 --duplicated 0.02 --reordered 0.02 --corrupted 0.02";
        let path = path.display();
        succeed(&format!(
            "--port pcap:tx={path} --frames 5 --stack 2 --seed {seed} {faults}"
        ));
        fs::read(dir.path().join(name)).unwrap()
    };
    let first = capture("a", 7);
    assert!(first.len() > 5_000_000);
    assert!(first == capture("b", 7), "two runs, two captures");
    assert!(first != capture("c", 8), "the seed means nothing");
}

/// A capture with its truth and calibration, converted in 64-bit arithmetic from the files alone.
#[test]
fn files_are_enough_to_convert_the_images() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (capture, truth, report, calibration) =
        (path("c"), path("t.json"), path("r.json"), path("cal/x"));
    succeed(&format!(
        "pcap:tx={} --frames 6 --rate 100 --stack 2 --dark-every 3 --modules 2 --interfaces 2 --peaks 20 \
         --background 0 --truth {} --report {} --calibration-out {}",
        capture.display(),
        truth.display(),
        report.display(),
        calibration.display()
    ));
    let (truth, report) = (json(&truth), json(&report));
    assert_eq!(report["schema"], 1);
    assert_eq!(report["config"], truth["config"]);
    assert_eq!(report["detector"]["complete"], true);
    assert_eq!(report["detector"]["dark_frames"], 2);
    assert_eq!(report["ports"][0]["tx_packets"], 6 * 256);
    assert_eq!(truth["order"]["images"], 2);

    // Frame 1: not 2 modulo 3, so that it shows image 1. Its packets carry the time at which they are
    // due: those of four senders at once.
    let mut image = vec![0_u16; 2 * 512 * 1024];
    let packets = read_capture(&capture);
    assert_eq!(packets.len(), 6 * 256);
    for (at, packet) in &packets {
        let packet = packet.as_ref().unwrap();
        let due = (packet.frame - 1) * 10_000_000 + u64::from(packet.packet) * 6644;
        assert_eq!(*at, 1_767_225_600_000_000_000 + due);
        if packet.frame == 1 {
            let place = usize::from(packet.ports.1 - 50_001) * 64 + packet.packet as usize;
            let pixels = packet.pixels.as_chunks().0.iter();
            let out = image[place * 4096..][..4096].iter_mut();
            out.zip(pixels)
                .for_each(|(out, bytes)| *out = u16::from_le_bytes(*bytes));
        }
    }
    let read = |name: String| fs::read(calibration.join(name)).unwrap();
    let (mut sum, mut good) = (0.0, 0);
    for module in 0..2 {
        let map = |what: &str, gain: usize| -> Vec<f64> {
            let bytes = read(format!("mod{module}_{what}G{gain}.bin"));
            let values = bytes.as_chunks().0.iter();
            values
                .map(|bytes| f64::from(f32::from_le_bytes(*bytes)))
                .collect()
        };
        let [pedestals, gains] = ["pede", "gain"].map(|what| [0, 1, 2].map(|gain| map(what, gain)));
        let mask = read(format!("mod{module}_mask.bin"));
        let raw = &image[module * 512 * 1024..][..512 * 1024];
        for (pixel, raw) in raw
            .iter()
            .enumerate()
            .filter(|(pixel, _)| mask[*pixel] == 0)
        {
            let gain = [0, 1, 9, 2][usize::from(raw >> 14)];
            let photons = (f64::from(raw & 0x3fff) - pedestals[gain][pixel]) / gains[gain][pixel];
            // Noise of G0 is 0.03 photons.
            sum += if photons < 0.3 { 0.0 } else { photons };
            good += 1;
        }
    }
    assert_eq!(good, 2 * (512 * 1024 - 100));
    let peaks = truth["images"][1]["peaks"].as_array().unwrap();
    let expected: u64 = peaks
        .iter()
        .map(|peak| peak["photons"].as_u64().unwrap())
        .sum();
    assert!(peaks.len() == 20 && expected > 2000);
    // Noise of G1 and G2, and photons in bad pixels, one in 5000.
    assert!(
        (sum / expected as f64 - 1.0).abs() < 0.02,
        "{sum} {expected}"
    );
}

#[test]
fn the_report_lists_what_is_missing_in_the_capture() {
    let dir = tempfile::tempdir().unwrap();
    let [path, report] = ["c", "r.json"].map(|name| dir.path().join(name));
    succeed(&format!(
        "--port pcap:tx={} --frames 30 --stack 1 --modules 2 --lost 0.01 --corrupted 0.005 --report {}",
        path.display(),
        report.display()
    ));
    let (packets, report) = (read_capture(&path), json(&report));
    let detector = &report["detector"];
    let number = |value: &Value| value.as_u64().unwrap();
    let mut expected: Vec<_> = (1..=30_u64)
        .flat_map(|frame| {
            (0..2_u64).flat_map(move |module| (0..128).map(move |n| (frame, module, n)))
        })
        .collect();
    let list = detector["fault_list"].as_array().unwrap();
    for fault in list {
        assert!(fault["fault"] == "lost" || fault["fault"] == "corrupted");
        let key = ["frame", "module", "packet"].map(|key| number(&fault[key]));
        expected.retain(|packet| *packet != key.into());
    }
    let mut found: Vec<_> = packets
        .iter()
        .filter_map(|(_, packet)| packet.as_ref())
        .map(|packet| (packet.frame, u64::from(packet.module), packet.packet.into()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    let faults = &detector["faults"];
    assert_eq!(
        number(&faults["lost"]) + number(&faults["corrupted"]),
        list.len() as u64
    );
    let corrupted = packets
        .iter()
        .filter(|(_, packet)| packet.is_none())
        .count();
    assert_eq!(number(&faults["corrupted"]), corrupted as u64);
    assert!(list.len() > 50 && corrupted > 10);
}

#[test]
fn recorded_frames_are_sent_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    // Two files: one with three module frames, one with one, for two images of two modules.
    let module = 160_000 * 2;
    let bytes: Vec<u8> = (0..4 * module).map(|n| (n * 7 + n / 251) as u8).collect();
    fs::write(path("a.raw"), &bytes[..3 * module]).unwrap();
    fs::write(path("b.raw"), &bytes[3 * module..]).unwrap();
    let moench = "--detector moench --modules 2";
    succeed(&format!(
        "--port pcap:tx={} {moench} --frames 3 --raw {} {}",
        path("c").display(),
        path("a.raw").display(),
        path("b.raw").display()
    ));
    let packets = read_capture(&path("c"));
    assert_eq!(packets.len(), 3 * 2 * 50);
    for (_, packet) in packets {
        let packet = packet.unwrap();
        let place = (packet.frame % 2) as usize * 2 + usize::from(packet.module);
        let at = place * module + packet.packet as usize * 6400;
        assert!(packet.pixels == bytes[at..at + 6400]);
    }

    let wrong = |files: &str| format!("null --frames 1 {moench} --raw {files}");
    let (a, b) = (
        path("a.raw").display().to_string(),
        path("b.raw").display().to_string(),
    );
    assert!(fail(&wrong(&a), 2).contains("3 module frames for images of 2 modules"));
    fs::write(path("short"), [0; 100]).unwrap();
    let short = path("short").display().to_string();
    assert!(
        fail(&wrong(&format!("{b} {short}")), 2).contains("short: 100 B, which is not a multiple")
    );
    assert!(fail(&wrong("/nowhere.raw"), 1).contains("/nowhere.raw"));
    assert!(fail(&format!("{} --peaks 3", wrong(&b)), 2).contains("cannot be used with"));
}

#[test]
fn bad_usage_is_status_2_and_opens_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("not-made.pcapng");
    let port = format!("--port pcap:tx={}", capture.display());
    assert!(fail("", 2).contains("<PORT>"));
    assert!(fail("--port loopback --udp 1.2.3.4:5", 2).contains("cannot be used with"));
    for (option, message) in [
        ("--modules 0", "modules = 0: must be 1 to 64"),
        ("--interfaces 3", "interfaces = 3: must be 1 or 2"),
        (
            "--detector eiger --interfaces 2",
            "interfaces = 2: must be 1 or 2 for JUNGFRAU",
        ),
        ("--detector pilatus", "jungfrau, eiger, moench"),
        ("--header-version 3", "header_version = 3"),
        (
            "--dark-every 1",
            "dark_every = 1: must be 0 (no dark frames), or at least 2",
        ),
        ("--stack 0", "stack = 0"),
        ("--stack 65536 --modules 64", "at most 64 GiB"),
        ("--rate 1e9", "a number a second"),
        ("--first-frame 281474976710655", "below 2^48"),
        ("--lost 0.6 --late 0.6", "the sum of all faults"),
        ("--peak-sigma 0", "peak_sigma = 0: must be 0.3 to 50 pixels"),
        ("--background -1", "background = -1"),
        ("--bad-pixels 524288", "fewer than a module has pixels"),
        ("--dst-port 65530 --modules 8", "below 65536"),
        ("--dst-ip 224.0.0.1", "the address of one host"),
        ("--cores 9999", "cpu 9999"),
        ("--rdma 127.0.0.1:0", "1 or more"),
    ] {
        let stderr = fail(&format!("{port} {option}"), 2);
        assert!(stderr.contains(message), "{option}: {stderr}");
    }
    assert!(fail("--port pcap:txx=x", 2).contains("no option `txx`"));
    assert!(!capture.exists(), "the capture was opened");
    let report = format!("{port} --frames 1 --report /nowhere/r.json");
    assert!(fail(&report, 1).contains("--report /nowhere/r"));
    assert!(!capture.exists(), "reported before the port was opened");
    // The readout boards' command line and this one do not mix.
    let mut both = Command::new(env!("CARGO_BIN_EXE_pollux-emulator"));
    let both = both
        .args(["--port", "null", "images", "null"])
        .output()
        .unwrap();
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn nothing_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let truth = dir.path().join("t.json");
    let args = format!(
        "null --frames 1 --stack 1 --truth {} --calibration-out {}",
        truth.display(),
        dir.path().display()
    );
    succeed(&args);
    assert_eq!(
        fs::read(dir.path().join("mod0_pedeG2.bin")).unwrap().len(),
        512 * 1024 * 4
    );
    assert!(fail(&args, 2).contains("--truth"));
    fs::remove_file(&truth).unwrap();
    assert!(fail(&args, 1).contains("--calibration-out"));
    succeed(&format!("{args} --force"));
}

#[test]
fn check_prints_the_plan() {
    let text =
        String::from_utf8(succeed("--check --modules 8 --interfaces 2 --dark-every 2").stdout)
            .unwrap();
    assert!(text.contains("8 modules with 2 UDP interfaces"), "{text}");
    assert!(
        text.contains("images of 4096 x 1024 pixels, 8388608 B, in 1024 packets of 8240 B"),
        "{text}"
    );
    assert!(
        text.contains("stack of 20 images, 10 of them dark"),
        "{text}"
    );
    let help = String::from_utf8(succeed("--help").stdout).unwrap();
    assert!(help.contains("Exit status") && help.contains("--calibration-out"));
}

/// Plain sockets, a signal at the end, and corruption that every receiver sees.
#[test]
fn a_signal_ends_a_run_through_sockets_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("r.json");
    // Port numbers of this test alone, below those that the system gives to clients.
    let receiver = UdpSocket::bind("127.0.0.1:31700").unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let args = format!(
        "--udp 127.0.0.1:31700 --src-ip 127.0.0.1 --src-port 31600 --detector eiger --frames 0 \
         --rate 100 --corrupted 0.1 --report {}",
        report.display()
    );
    let mut child = command(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut bytes, mut corrupted) = ([0; 9000], 0);
    for _ in 0..200 {
        let (len, from) = receiver.recv_from(&mut bytes).unwrap();
        assert_eq!((len, from.port()), (48 + 4096, 31_600));
        let packet = parse_payload(&bytes[..len], (from.port(), 31_700));
        corrupted += usize::from(packet.detector != 1);
    }
    assert!((5..50).contains(&corrupted), "{corrupted}");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let report = json(&report);
    assert_eq!(report["detector"]["complete"], false);
    assert_eq!(report["detector"]["packets_unsent"], 0);
    let frames = report["detector"]["frames"].as_u64().unwrap();
    assert_eq!(report["detector"]["packets_sent"], frames * 64);
}

#[test]
fn the_duration_bounds_a_run() {
    let output = succeed("null --frames 0 --rate max --stack 1 --duration 0.3 --json");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ledger"]["balanced"], true);
    let detector = &report["detector"];
    assert!(detector["frames"].as_u64().unwrap() > 0 && detector["complete"] == false);
    assert_eq!(detector["images"]["complete"], detector["frames"]);
    assert!(detector["gb_s"].as_f64().unwrap() > 0.0);
}
