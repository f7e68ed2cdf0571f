//! `--metrics`, of sub-commands that run for long.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::support::{Capture, Folder, datagram, packets, pollux, refused, run, text};

/// The page of metrics at an address.
fn page(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.ends_with("# EOF\n"), "{page}");
    page
}

/// The value of a sample at an address, once it is there and above `floor`.
#[track_caller]
pub(crate) fn above(address: &str, floor: f64, sample: &str) -> f64 {
    let mut shown = String::new();
    for _ in 0..3000 {
        shown = page(address);
        let line = shown.lines().find_map(|line| line.strip_prefix(sample));
        match line.map(|value| value.trim().parse().unwrap()) {
            Some(value) if value > floor => return value,
            _ => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
    panic!("no {sample} above {floor}: {shown}");
}

/// A sub-command that serves its metrics, until this is dropped.
pub(crate) struct Watched {
    child: Child,
    address: String,
}

impl Watched {
    /// Starts it, and waits until its ports are open, which is when it says where the page is.
    #[track_caller]
    pub(crate) fn start(command: &str, args: &[&str]) -> Self {
        let child = pollux(command)
            .args(args)
            .args(["--metrics", "127.0.0.1:0", "--duration", "100"])
            // So that it says which port the system chose.
            .env("RUST_LOG", "info")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, url) = line.split_once("metrics at http://")?;
            Some(url.split('/').next()?.to_owned())
        });
        // What else it says is taken, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.unwrap();
        Self { child, address }
    }

    /// The value of a sample, once it is there and above `floor`.
    #[track_caller]
    pub(crate) fn above(&self, floor: f64, sample: &str) -> f64 {
        above(&self.address, floor, sample)
    }

    /// Where its page is.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Ends it; what it has printed, which is little.
    pub(crate) fn printed(mut self) -> String {
        let mut stdout = self.child.stdout.take().unwrap();
        drop(self);
        let mut printed = String::new();
        stdout.read_to_string(&mut printed).unwrap();
        printed
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-s", "INT", &pid]).status();
        let status = self.child.wait().unwrap();
        assert!(std::thread::panicking() || status.success(), "{status}");
    }
}

#[test]
fn runs_can_be_watched() {
    let forward = Watched::start("forward", &["null", "--quiet"]);
    forward.above(0.0, "pollux_link_up{port=\"null\"}");
    let wire = "pollux_frames_from_wire_total{place=\"null queue 0\"}";
    let before = forward.above(0.0, wire);
    forward.above(before, wire);
    forward.above(0.0, "pollux_frames_sent_total{port=\"null\",queue=\"0\"}");
    forward.above(0.0, "pollux_frames_delivered_total{place=\"loop 0\"}");

    // The address is taken, so the run does not begin.
    let args = ["null", "--count", "1", "--metrics", &forward.address];
    let message = refused("forward", &args, 1);
    let named = format!("cannot serve metrics on {}", forward.address);
    assert!(message.contains(&named), "{message}");
    drop(forward);

    let trials = ["--sizes", "64", "--trial", "0.05", "--trials", "1000"];
    let rates = ["--port", "loopback", "--rate-min", "10", "--rate-max", "1k"];
    let bench = Watched::start("bench", &[&trials[..], &rates].concat());
    bench.above(
        0.0,
        "pollux_frame_latency_seconds_count{of=\"64 B at 1000 pps\"}",
    );
    drop(bench);

    let folder = Folder::new();
    let socket = folder.path("verify.sock");
    let spec = |role| format!("vhost-user:{},role={role}", socket.display());
    let verify = Watched::start("verify", &[&spec("device,server")]);
    let sent = run("generate", &[&spec("driver"), "--count", "100"]);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    verify.above(99.0, "pollux_frame_latency_seconds_count{of=\"verify\"}");
    drop(verify);

    // Senders are streams. The last frame is due only when the test is over.
    let frame = datagram(0x0a00_0001, 7502, b"payload");
    let capture = Capture::new(&[(0, frame.clone()), (0, frame.clone()), (60, frame)]);
    let spec = format!("{},pace=recorded", capture.spec());
    let streams = Watched::start("streams", &["--port", &spec]);
    let label = "{stream=\"10.0.0.1 to 7502\"}";
    let frames = streams.above(1.0, &format!("pollux_stream_frames_total{label}"));
    assert!((frames - 2.0).abs() < 0.1, "{frames}");
    streams.above(13.0, &format!("pollux_stream_bytes_total{label}"));
}

#[test]
fn sending_and_capturing_can_be_watched() {
    let sent = "pollux_frames_sent_total{port=\"null\",queue=\"0\"}";
    let generate = Watched::start("generate", &["null", "--rate", "10k", "--quiet"]);
    let before = generate.above(0.0, sent);
    generate.above(before, sent);
    drop(generate);

    // The last frame is due only when the test is over.
    let frame = datagram(0x0a00_0001, 7502, b"payload");
    let recording = Capture::new(&[(0, frame.clone()), (0, frame.clone()), (60, frame)]);
    let file = recording.path.to_str().unwrap();
    let replay = Watched::start("replay", &[file, "null", "--quiet"]);
    let frames = replay.above(1.0, sent);
    assert!((frames - 2.0).abs() < 0.1, "{frames}");
    drop(replay);

    let spec = format!("{},pace=recorded", recording.spec());
    let folder = Folder::new();
    let output = folder.path("captured.pcapng");
    let capture = Watched::start("capture", &[&spec, "-o", output.to_str().unwrap()]);
    let wire = format!("pollux_frames_from_wire_total{{place=\"{spec} queue 0\"}}");
    let frames = capture.above(1.0, &wire);
    assert!((frames - 2.0).abs() < 0.1, "{frames}");
    drop(capture);
    assert_eq!(packets(&output).len(), 2);
}

#[test]
fn another_program_looks_at_a_run() {
    let forward = Watched::start("forward", &["null", "--quiet"]);
    forward.above(0.0, "pollux_frames_sent_total{port=\"null\",queue=\"0\"}");
    let args = [&forward.address, "--count", "2", "--interval", "0.1"];
    let looked = run("live", &args);
    let (shown, said) = (text(&looked.stdout), text(&looked.stderr));
    assert!(looked.status.success(), "{said}");
    // A title, a header, and a row for each of what there is.
    let lines: Vec<_> = shown.lines().collect();
    for (title, place) in [("Frames", "loop 0"), ("Sent", "null queue 0")] {
        let at = |line: &&str| *line == title;
        assert_eq!(lines.iter().filter(|line| at(line)).count(), 2, "{shown}");
        let row = lines.iter().skip_while(|line| !at(line)).nth(2).unwrap();
        assert!(row.trim_start().starts_with(place), "{title}: {shown}");
    }
    // With a duration it ends by itself.
    let looked = run(
        "live",
        &[&forward.address, "--interval", "0.05", "--duration", "0.3"],
    );
    assert!(looked.status.success() && !looked.stdout.is_empty());
    drop(forward);

    let address = "127.0.0.1:1"; // without a server
    let message = refused("live", &[address, "--count", "1"], 1);
    let named = format!("no metrics at http://{address}/metrics (start the program with --metrics");
    assert!(message.contains(&named), "{message}");
    for address in ["127.0.0.1:99999", "", ":9464", "a b:1", "http://"] {
        let message = refused("live", &[address, "--count", "1"], 2);
        let named = format!("`{address}` is not an address");
        assert!(message.contains(&named), "{message}");
    }
    for address in ["127.0.0.1:1", "[::1]:1", "http://127.0.0.1:1/metrics"] {
        refused("live", &[address, "--count", "1"], 1);
    }
}

#[test]
fn a_terminal_is_drawn_on_and_given_back() {
    // A terminal of a test is made by script(1).
    let there = Command::new("script").arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("skipped: no `script` program: apt-get install bsdutils");
        return;
    }
    let forward = Watched::start("forward", &["null", "--quiet"]);
    for (rows, columns, seen) in [(24, 100, "Frames"), (2, 12, "Frames"), (1, 8, "http")] {
        let live = format!(
            "stty rows {rows} cols {columns}; exec {} live {} --interval 0.1",
            env!("CARGO_BIN_EXE_pollux"),
            forward.address
        );
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &live, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut out, mut shown) = (child.stdout.take().unwrap(), Vec::new());
        let mut read = |shown: &mut Vec<u8>| {
            let mut bytes = [0; 4096];
            let n = out.read(&mut bytes).unwrap();
            shown.extend(&bytes[..n]);
            n
        };
        while !text(&shown).contains(seen) {
            assert!(read(&mut shown) > 0, "{rows}x{columns}: {}", text(&shown));
        }
        child.stdin.take().unwrap().write_all(b"q").unwrap();
        while read(&mut shown) > 0 {}
        assert!(child.wait().unwrap().success());
        // The alternate screen is left (xterm's private mode 1049).
        assert!(text(&shown).contains("\x1b[?1049l"), "{}", text(&shown));
    }
    drop(forward);
}

#[test]
fn a_reader_may_stop_early() {
    let forward = Watched::start("forward", &["null", "--quiet"]);
    let commands: [(&str, &[&str]); 4] = [
        ("live", &[&forward.address, "--interval", "0.05"]),
        ("forward", &["null", "--duration", "1.5"]),
        ("ports", &["--json"]),
        ("physics", &["--events", "10"]),
    ];
    for (command, args) in commands {
        let mut child = pollux(command)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{command}");
    }
    drop(forward);
    // A failed write is reported, and the report is complete all the same.
    let folder = Folder::new();
    let report = folder.path("report.json");
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = pollux("forward")
        .args(["null", "--count", "10", "--report"])
        .arg(&report)
        .stdout(full.unwrap())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(
        message.contains("cannot write to standard output: No space left"),
        "{message}"
    );
    assert!(
        std::fs::read_to_string(&report)
            .unwrap()
            .contains("\"forwarded\": 10")
    );
}

#[test]
fn an_address_may_be_a_name() {
    let run = |address| {
        let args = [
            "null:size=0",
            "null",
            "--seconds",
            "0.05",
            "--quiet",
            "--metrics",
            address,
        ];
        crate::support::run("forward", &args)
    };
    let output = run("localhost:0");
    let message = crate::support::text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    let output = run("localhost");
    let message = crate::support::text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("localhost:8080"), "{message}");
}
