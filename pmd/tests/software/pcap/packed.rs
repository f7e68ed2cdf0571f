//! Compressed captures: files of any compressor are read unchanged, and damaged or truncated files
//! are reported.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use pollux_pmd::{Cause, PortError};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use super::maker::Maker;
use super::support::{Frame, bytes_of, play, pool, replay};

const FRAMES: u8 = 40;

/// A pcap and a pcapng file with the same frames.
fn captures() -> [Vec<u8>; 2] {
    let mut classic = Maker::pcap(false, 0xa1b2_3c4d, 1);
    let mut pcapng = Maker {
        big: false,
        out: Vec::new(),
    };
    pcapng.section().interface(1, Some(9));
    for n in 0..FRAMES {
        let frame = bytes_of(60 + 7 * usize::from(n), n);
        classic.record(0, n.into(), frame.len() as u32, &frame);
        pcapng.packet(0, n.into(), &frame);
    }
    [classic.out, pcapng.out]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// Compressed by a tool; `None` if it is not installed.
fn packed_by(tool: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x");
    fs::write(&path, bytes).unwrap();
    let mut words = tool.split_whitespace();
    let output = Command::new(words.next()?).args(words).arg(&path).output();
    let Ok(output) = output else {
        println!("skipped: no {tool}");
        return None;
    };
    assert!(output.status.success(), "{tool}");
    Some(output.stdout)
}

/// The frames of a file with these bytes. Its name does not show the format.
fn frames_of(dir: &Path, bytes: &[u8]) -> Vec<Frame> {
    let path = dir.join("capture");
    fs::write(&path, bytes).unwrap();
    let got = play(&path).unwrap();
    assert!(got.stopped.is_ok(), "{:?}", got.stopped);
    got.frames()
}

#[test]
fn what_was_packed_is_read_by_what_it_is() {
    let dir = TempDir::new().unwrap();
    for capture in captures() {
        let plain = frames_of(dir.path(), &capture);
        assert_eq!(plain.len(), usize::from(FRAMES));
        let (front, back) = capture.split_at(capture.len() / 2);
        // A skippable frame (RFC 8878 section 3.1.2).
        let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0], &b"abc"[..]].concat();
        let mut packed = vec![
            gzip(&capture),
            zstd(&capture),
            [gzip(front), gzip(back)].concat(),
            [zstd(front), skipped, zstd(back)].concat(),
        ];
        for tool in [
            "gzip -9c",
            "zstd -qc",
            "zstd -19 -qc --check",
            "zstd --long=27 -qc",
        ] {
            packed.extend(packed_by(tool, &capture));
        }
        for (n, packed) in packed.iter().enumerate() {
            assert!(frames_of(dir.path(), packed) == plain, "of packed file {n}");
        }
    }
}

#[test]
fn packed_files_are_shared_out_and_read_in_rounds() {
    let dir = TempDir::new().unwrap();
    let pool = pool(64);
    let path = dir.path().join("capture");
    for packed in [gzip(&captures()[0]), zstd(&captures()[0])] {
        fs::write(&path, packed).unwrap();
        let spec = format!("pcap:rx={},loop=3", path.display());
        let frames = replay::<8>(&spec, 2, &pool).unwrap().frames();
        assert_eq!(frames.len(), 3 * usize::from(FRAMES));
        for (n, frame) in frames.iter().enumerate() {
            let n = n % usize::from(FRAMES);
            assert_eq!(frame.bytes, bytes_of(60 + 7 * n, n as u8));
        }
        assert!(frames.is_sorted_by_key(|frame| frame.time));
    }
}

#[test]
fn a_packed_file_that_ends_early_says_so_wherever_it_ends() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("cut");
    let capture = &captures()[1];
    let all = frames_of(dir.path(), capture);
    for packed in [gzip(capture), zstd(capture)] {
        for end in (0..packed.len()).step_by(7) {
            fs::write(&path, &packed[..end]).unwrap();
            match play(&path) {
                Err(error) => {
                    let text = error.to_string();
                    assert!(matches!(error, PortError::Device { .. }), "{text}");
                    let what = if end < 4 {
                        "is not a capture"
                    } else {
                        "is truncated: its"
                    };
                    // Two bytes suffice to detect gzip.
                    assert!(
                        text.contains(what) || end == 2 || end == 3,
                        "at {end}: {text}"
                    );
                }
                Ok(got) => {
                    let frames = got.frames();
                    assert_eq!(frames[..], all[..frames.len()], "at {end}");
                    assert_eq!(got.balance.dropped_for(Cause::DeviceError), 1, "at {end}");
                    let text = got.stopped.unwrap_err().to_string();
                    assert!(text.contains("is truncated: its"), "at {end}: {text}");
                }
            }
        }
    }
}

#[test]
fn damage_in_packed_data_is_found() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("damaged");
    let capture = &captures()[0];
    let all = frames_of(dir.path(), capture);
    let checked = packed_by("zstd -qc --check", capture).unwrap_or_else(|| zstd(capture));
    for packed in [gzip(capture), checked] {
        // Behind the header, of which gzip's has times and names without a meaning for the decoder.
        for at in (12..packed.len()).step_by(11) {
            let mut packed = packed.clone();
            packed[at] ^= 0x10;
            fs::write(&path, &packed).unwrap();
            match play(&path) {
                Err(error) => assert!(matches!(error, PortError::Device { .. }), "{error}"),
                Ok(got) if got.stopped.is_ok() => assert!(got.frames() == all, "at {at}"),
                Ok(got) => {
                    assert_eq!(got.balance.dropped_for(Cause::DeviceError), 1, "at {at}");
                }
            }
        }
        // Bytes behind a whole file do not belong to it.
        fs::write(&path, [&packed[..], b"something else"].concat()).unwrap();
        let got = play(&path).unwrap();
        assert!(got.frames() == all);
        let text = got.stopped.unwrap_err().to_string();
        assert!(text.contains("cannot be unpacked"), "{text}");
    }
    fs::write(&path, gzip(b"no capture at all, though it is long enough")).unwrap();
    let text = play(&path).map(drop).unwrap_err().to_string();
    assert!(text.contains("is not a capture"), "{text}");
}
