//! Ends of sources and of their receiver.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pollux_images::formats::{Header, Layout};
use pollux_images::stack::StackLayout;
use zerocopy::IntoBytes as _;

use super::receiver::{LONG, Receiver, patient};
use super::stranger::Stranger;
use super::{lines, whole};
use crate::capture::{Capture, detector};
use crate::json;

/// The keys of a source that has left are no keys any more, also to the next one; and what it wrote at the very end
/// is in none of the images of that one.
#[test]
fn keys_end_with_their_source() {
    let capture = Capture::new(detector(1));
    let config = patient(&capture.write("[rdma]\nstacks = 2\n"), 1);
    let receiver = Receiver::start(&capture, &config, "s", 1);
    let old = Stranger::connect(&capture, receiver.address()).keys();
    let mut stranger = Stranger::connect(&capture, receiver.address());
    let new = stranger.keys();
    assert_eq!((old.len(), new.len()), (2, 2));
    for old in &old {
        assert!(new.iter().all(|new| new.key != old.key), "{old:?} {new:?}");
        // The same place, so it is the key that matters.
        assert!(new.iter().any(|new| new.address == old.address));
    }
    let layout = Layout::jungfrau(1, 2).unwrap();
    let stack = StackLayout::new(&layout, 1);
    let pixels = stack.pixel_bytes() as u64;
    let header = |number: u64, packet: u32| {
        let mut header = Header::new(layout.detector());
        header.frame_number = number.into();
        header.packet_number = packet.into();
        header
    };
    stranger.put_as(old[0].at(pixels), header(1, 0).as_bytes());
    let second = pixels + stack.stride() as u64;
    stranger.put_as(new[0].at(second), header(1, 1).as_bytes());
    stranger.announce(0);
    let run = receiver.report();
    assert_eq!(run["ledger"]["dropped"]["access"], 1, "{run}");
    assert_eq!(lines(&run)["delivered"], 1);
    assert_eq!(run["rdma"]["sources"], 2);
}

/// A receiver that is stopped tells its source what it has taken, and the source ends with its report.
#[test]
fn a_source_ends_when_its_receiver_is_stopped() {
    let emulator =
        std::path::Path::new(env!("CARGO_BIN_EXE_image-stream")).with_file_name("pollux-emulator");
    if !emulator.exists() {
        println!("skipped: no pollux-emulator beside image-stream: cargo build -p pollux-emulator");
        return;
    }
    let capture = Capture::new(detector(1));
    let config = patient(&capture.write(&whole(&capture, 512, "images.raw")), 2);
    let receiver = Receiver::start(&capture, &config, "s", 1 << 20);
    let path = |name| capture.path(name).display().to_string();
    let source = Command::new(emulator)
        .arg("images")
        .arg(format!("unix:{},peer={}", path("s"), path("r")))
        .args([
            "--interfaces",
            "2",
            "--frames",
            "0",
            "--rate",
            "200",
            "--stack",
            "2",
        ])
        .args(["--rdma", &receiver.address().to_string()])
        .args(["--report", &path("source.json")])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = || std::fs::metadata(capture.path("images.raw")).map_or(0, |file| file.len());
    let from = Instant::now();
    while bytes() < 3 * 2 * 512 * 1024 * 2 {
        assert!(from.elapsed() < LONG, "no images");
        std::thread::sleep(Duration::from_millis(2));
    }
    receiver.interrupt();
    let run = receiver.report();
    let output = source.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the receiver ended before the run"), "{text}");
    let sent = json(&capture.path("source.json"));
    assert_eq!(sent["end"], "gone");
    let count = |of: &str| run["rdma"][of].as_u64().unwrap();
    let taken = sent["detector"]["stacks"]["taken"].as_u64().unwrap();
    // The stack that was being written is none that the source has announced.
    let known = count("stacks") - count("unannounced")..=count("stacks");
    assert!(taken >= 3 && known.contains(&taken), "{taken}: {run}");
}
