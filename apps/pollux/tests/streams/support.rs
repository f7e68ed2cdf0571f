//! Runs the program, and makes captures for it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) fn pollux() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pollux"));
    command.arg("streams").env_remove("RUST_LOG");
    command
}

/// The port spec of a capture.
pub(crate) fn file(path: &Path) -> String {
    format!("pcap:rx={}", path.display())
}

pub(crate) fn run(args: &[&str]) -> Output {
    pollux().args(args).output().unwrap()
}

/// The report of a run that ends as it should.
pub(crate) fn report(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let report = json_of(&output);
    assert_eq!(report["balanced"], true);
    report
}

pub(crate) fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

/// The message of a run that ends with this status.
pub(crate) fn refused(args: &[&str], status: i32) -> String {
    let output = run(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{message}");
    message
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
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
