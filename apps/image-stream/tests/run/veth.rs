//! A detector at the other end of a veth pair. Needs root and ip(8).

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::source::ImagesReport;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_pmd::net::MacAddr;
use pollux_pmd_testkit::netns::{Cable, MAC_A, PATIENCE};
use serde_json::Value;

use crate::capture::{Capture, detector, report, send};
use crate::json;

/// Larger than a packet of JUNGFRAU.
const MTU: u32 = 9000;
/// After the last packet, until all of them are in the receiver's rings.
const REST: Duration = Duration::from_millis(500);
/// Images of several loops: the rings have room for all of their packets.
const FRAMES: u64 = 4;

/// The program at the end `va` of a cable.
struct Run {
    child: Child,
    /// Kept open: it prints its progress here.
    errors: BufReader<ChildStderr>,
    report: PathBuf,
}

impl Run {
    /// Starts it, and waits until it receives: until the first line of its progress.
    fn start(cable: &Cable, config: &Path, folder: &Path, more: &[&str]) -> Self {
        let report = report(folder);
        let mut command = Command::new("ip");
        let program = env!("CARGO_BIN_EXE_image-stream");
        command.args(["netns", "exec", cable.a.name(), program, "--force"]);
        command.args(["--config".as_ref(), config, "--report".as_ref(), &*report]);
        command.args(more).env_remove("RUST_LOG");
        let output = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = output.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (mut line, mut all) = (String::new(), String::new());
        while !line.contains("images") {
            line.clear();
            let read = errors.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended before it received: {all}");
            all += &line;
        }
        Self {
            child,
            errors,
            report,
        }
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }

    /// Waits for its end; its report.
    fn report(mut self) -> Value {
        let from = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if from.elapsed() > PATIENCE {
                // Its report says what it lacks.
                self.interrupt();
            }
            assert!(from.elapsed() < 2 * PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut rest = String::new();
        self.errors.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        json(&self.report)
    }
}

/// Sends the frames of a detector from the other end.
fn emulate(cable: &Cable, config: &ImagesConfig) -> ImagesReport {
    let mut config = config.clone();
    config.addresses.dst_mac = Some(MacAddr(MAC_A));
    let synthesis = Synthesis::new(&config).unwrap();
    cable.b.within(|| send(&config, &synthesis, "af_packet:vb"))
}

/// Two loops share the packets of each image, by the kernel's fan-out of flows or by receive packet
/// steering; the images are bit for bit those of one loop. The rings have room for all packets, so that a busy machine loses none.
#[test]
fn two_receive_loops_give_the_images_of_one() {
    let Some(cable) = Cable::bare(MTU) else {
        return;
    };
    // Eight flows: both loops have some, but for one run in a hundred.
    let mut emulated = detector(FRAMES);
    emulated.modules = 4;
    let capture = Capture::new(emulated.clone());
    let images = |run: &str| {
        let file = capture.path(&format!("{run}.raw"));
        let receiver = format!(
            "timeout_us = 60000000\n[memory]\nbuffers = 8192\nring = 4096\nimages = 16\n\
             [[receiver]]\nfile = \"{}\"\ntransfer = {{ name = \"all\", buffers = 8 }}\n",
            file.display()
        );
        (capture.write(&receiver), file)
    };
    let mut found = Vec::new();
    let steered = "af_packet:va,rps=2";
    for (name, port, loops) in [
        ("one", "af_packet:va", "1"),
        ("fan-out", "af_packet:va", "2"),
        ("steered", steered, "2"),
    ] {
        let (config, file) = images(name);
        let count = FRAMES.to_string();
        let options = ["--port", port, "--images", &count];
        let loops = ["--rx-loops", loops, "--queues", loops];
        let run = Run::start(
            &cable,
            &config,
            capture.folder.path(),
            &[options, loops].concat(),
        );
        let sent = emulate(&cable, &emulated);
        assert!(sent.complete, "{sent:?}");
        let run = run.report();
        assert_eq!(run["end"], "enough", "{run}");
        assert_eq!(run["frames"]["complete"], FRAMES, "{run}");
        assert_eq!(run["packets"]["placed"], FRAMES * 4 * 128);
        assert_eq!(run["ledger"]["balanced"], true);
        assert_eq!(run["receivers"][0]["images"], FRAMES, "{run}");
        found.push(std::fs::read(file).unwrap());
    }
    assert_eq!(found[0].len(), FRAMES as usize * 4 * 512 * 1024 * 2);
    for (run, images) in found.iter().enumerate() {
        assert!(
            found[0] == *images,
            "run {run} made other images than the first"
        );
    }
}

/// As fast as the link takes it. Packets for which the rings have no room are counted by the kernel; the
/// images that lack them wait, and cost others their buffers. Each packet that was sent is in an image
/// or under its cause, images lack those packets and no others, and without a loss before the port all
/// are complete.
#[test]
fn at_the_highest_rate_each_packet_is_placed_or_counted() {
    let Some(cable) = Cable::bare(MTU) else {
        return;
    };
    let emulated = ImagesConfig {
        rate: 0.0,
        ..detector(200)
    };
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("run.toml");
    let text = "[detector]\ntimeout_us = 1000000\n\
                [memory]\nbuffers = 8192\nring = 2048\nimages = 64\n";
    std::fs::write(&config, text).unwrap();
    let run = Run::start(&cable, &config, folder.path(), &["--port", "af_packet:va"]);
    let sent = emulate(&cable, &emulated).packets_sent;
    std::thread::sleep(REST);
    run.interrupt();
    let run = run.report();

    let number = |of: &str, name: &str| run[of][name].as_u64().unwrap();
    let ledger = &run["ledger"];
    assert_eq!(ledger["balanced"], true, "{run}");
    assert_eq!(ledger["from_wire"], sent, "{run}");
    let drops = ledger["dropped"].as_object().unwrap();
    let dropped: u64 = drops.values().filter_map(Value::as_u64).sum();
    let causes = ["kernel-drop", "late", "no-frame-buffer"];
    assert!(
        drops.keys().all(|cause| causes.contains(&&**cause)),
        "lost otherwise: {run}"
    );
    assert_eq!(number("packets", "placed") + dropped, sent, "{run}");
    // Frames of which no packet came are skipped numbers, or before the first and behind the last.
    let lacking = dropped - number("packets", "missing");
    assert_eq!(lacking % 128, 0, "{run}");
    let frames = number("frames", "received") + number("frames", "empty");
    assert_eq!(frames * 128 + lacking, sent, "{run}");
    assert_eq!(number("images", "built"), frames, "{run}");
    assert_eq!(number("images", "overrun"), 0, "{run}");
    if !drops.contains_key("kernel-drop") {
        assert_eq!(run["frames"]["complete"], 200, "{run}");
    }
    println!("of {sent} packets {drops:?} were lost");
}
