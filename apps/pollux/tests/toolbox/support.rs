//! Runs the program, and makes captures for it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

use pcap_file::pcapng::{Block, PcapNgReader};
use pollux_na62::l0::L0Record;
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd_testkit::netns::Namespace;
use pollux_recording::record_header;
use serde_json::Value;
use tempfile::TempDir;

/// What a program has written.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn pollux(command: &str) -> Command {
    let mut pollux = Command::new(env!("CARGO_BIN_EXE_pollux"));
    pollux.args(command.split(' ')).env_remove("RUST_LOG");
    pollux
}

/// The port spec of a capture.
pub(crate) fn file(path: &Path) -> String {
    format!("pcap:rx={}", path.display())
}

pub(crate) fn run(command: &str, args: &[&str]) -> Output {
    pollux(command).args(args).output().unwrap()
}

/// What `--report` of a run writes, which ends with this status.
#[track_caller]
pub(crate) fn reported(command: &str, args: &[&str], status: i32) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let args = [args, &["--quiet", "--report", path.to_str().unwrap()]].concat();
    let output = run(command, &args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {message}");
    let report: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(
        (&report["schema"], &report["command"]),
        (&1.into(), &command.into())
    );
    assert_eq!(report["ledger"]["balanced"], true);
    report
}

pub(crate) fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

/// The message of a run that ends with this status.
#[track_caller]
pub(crate) fn refused(command: &str, args: &[&str], status: i32) -> String {
    let output = run(command, args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {message}");
    message
}

pub(crate) fn datagram(src: u32, dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let end = |ip, port| UdpEndpoint {
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        socket: SocketAddrV4::new(ip, port),
    };
    let mut frame = [&[0; UDP_HEADERS][..], payload].concat();
    UdpTemplate::new(
        end(Ipv4Addr::from_bits(src), 1000),
        end([10, 0, 0, 2].into(), dst_port),
    )
    .write(&mut frame, payload.len())
    .unwrap();
    frame
}

/// A file in a folder of its own.
pub(crate) struct Capture {
    folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Capture {
    /// Frames without times.
    pub(crate) fn of_frames(frames: &[Vec<u8>]) -> Self {
        let stamped: Vec<_> = frames.iter().map(|frame| (0, frame.clone())).collect();
        Self::new(&stamped)
    }

    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture.pcap");
        fs::write(&path, bytes).unwrap();
        Self { folder, path }
    }

    /// A pcap file in nanoseconds (draft-ietf-opsawg-pcap, section 4).
    pub(crate) fn new(frames: &[(u32, Vec<u8>)]) -> Self {
        let header: [u32; 6] = [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, 1 << 18, 1];
        let mut bytes = header.map(u32::to_le_bytes).concat();
        for (second, frame) in frames {
            let len = frame.len() as u32;
            bytes.extend([*second, 0, len, len].map(u32::to_le_bytes).concat());
            bytes.extend(frame);
        }
        Self::of_bytes(&bytes)
    }

    pub(crate) fn spec(&self) -> String {
        file(&self.path)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Time in nanoseconds since the Unix epoch, and the bytes.
pub(crate) type Packet = (u64, Vec<u8>);

/// The frames of a pcapng file that the program wrote.
pub(crate) fn packets(path: &Path) -> Vec<Packet> {
    let mut reader = PcapNgReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            // The library takes microseconds for granted; the stamps are in nanoseconds.
            packets.push((packet.timestamp.as_nanos() as u64, packet.data.into_owned()));
        }
    }
    packets
}

/// A folder for files that a test has written.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The port spec that writes a file here.
    pub(crate) fn sink(&self, name: &str) -> String {
        format!("pcap:tx={}", self.path(name).display())
    }
}

/// A run that goes on beside the test. It is ended with the test, whatever becomes of that.
pub(crate) struct Running {
    child: Child,
    folder: TempDir,
}

/// Whether a report is there, or the file with another name that it is until it is whole.
pub(crate) fn is_under_way(report: &Path) -> bool {
    let name = report.file_name().unwrap().to_str().unwrap();
    let names = fs::read_dir(report.parent().unwrap()).unwrap();
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .into_iter()
        .any(|found| found == name || found.starts_with(&format!(".{name}.")))
}

impl Running {
    /// Starts a sub-command inside a namespace: its line of arguments.
    pub(crate) fn start(namespace: &Namespace, line: &str) -> Self {
        Self::start_program(namespace, Path::new(env!("CARGO_BIN_EXE_pollux")), line)
    }

    /// Starts a program inside a namespace.
    pub(crate) fn start_program(namespace: &Namespace, program: &Path, line: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name| fs::File::create(folder.path().join(name)).unwrap();
        let child = Command::new("ip")
            .args(["netns", "exec", namespace.name()])
            .arg(program)
            .args(line.split_whitespace())
            .arg("--report")
            .arg(folder.path().join("report.json"))
            .env_remove("RUST_LOG")
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    /// Number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    /// Waits until its ports are open, and what is sent to them is received: the report is made ready
    /// after that, and before the loops run.
    pub(crate) fn wait_for_ports(&mut self) {
        while !is_under_way(&self.folder.path().join("report.json")) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-s", name, &id]).status();
        assert!(killed.unwrap().success());
    }

    /// Waits for its end with this status; the report.
    #[track_caller]
    pub(crate) fn report(self, status: i32) -> Value {
        self.ended(status).0
    }

    /// The same, with what it has said on standard error.
    #[track_caller]
    pub(crate) fn report_and_message(self, status: i32) -> (Value, String) {
        let (report, _, message) = self.ended(status);
        (report, message)
    }

    /// As `report`, and what it printed.
    #[track_caller]
    pub(crate) fn report_and_text(self, status: i32) -> (Value, String) {
        let (report, printed, _) = self.ended(status);
        (report, printed)
    }

    #[track_caller]
    fn ended(mut self, status: i32) -> (Value, String, String) {
        let ended = self.child.wait().unwrap();
        let message = self.stderr();
        assert_eq!(ended.code(), Some(status), "{message}");
        let report = fs::read(self.folder.path().join("report.json")).unwrap();
        let printed = fs::read_to_string(self.folder.path().join("stdout")).unwrap();
        (serde_json::from_slice(&report).unwrap(), printed, message)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// `bench` on as little as there can be.
pub(crate) const SHORT_BENCH: [&str; 9] = [
    "loopback",
    "--sizes",
    "64",
    "--rate-max",
    "2k",
    "--trial",
    "0.01",
    "--trials",
    "1",
];

/// Writes an event file with one event.
pub(crate) fn write_an_event(path: &Path) {
    let record = L0Record::default().to_event(0).to_bytes();
    fs::write(path, [&record_header(None)[..], &record].concat()).unwrap();
}
