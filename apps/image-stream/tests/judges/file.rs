//! Image files, read by h5py.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use image_stream::nexus::{Compression, FileInfo, FindingsInfo, Writer};
use image_stream::{Dense, PixelType, Pixels, Sparse};
use tempfile::TempDir;

use crate::{SHAPE, bitshuffle, detector, facts, image, judge, python};

const MODULES: &str = "numpy, h5py, hdf5plugin";
/// The file of the process that is killed.
const KILLED: &str = "POLLUX_TEST_KILLED_FILE";

fn info(pixel: PixelType, compression: Compression) -> FileInfo {
    FileInfo {
        program: "a test".into(),
        version: "1.2.3".into(),
        title: "Images".into(),
        run: None,
        configuration: String::new(),
        calibration: Vec::new(),
        detector: detector(pixel),
        compression,
        findings: FindingsInfo::default(),
    }
}

/// A file, and what it must hold.
struct Reference {
    folder: TempDir,
    pixels: Vec<u8>,
    images: u64,
}

impl Reference {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            pixels: Vec::new(),
            images: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("run.h5")
    }

    fn write(&mut self, writer: &mut Writer, image: Vec<u8>, pixels: &Pixels<Vec<u8>>) {
        writer.write(&facts(self.images), pixels, None).unwrap();
        self.pixels.extend(image);
        self.images += 1;
    }

    fn judge(&self, python: &Path, options: &[&str]) -> String {
        let (pixels, told) = (
            self.folder.path().join("pixels"),
            self.folder.path().join("facts"),
        );
        fs::write(&pixels, &self.pixels).unwrap();
        let each = |value: fn(u64) -> String| {
            let values: Vec<_> = (0..self.images).map(value).collect();
            values.join(", ")
        };
        let frames = each(|n| facts(n).frame.to_string());
        let kept = each(|n| u8::from(facts(n).kept).to_string());
        let lost = each(|n| format!("[[{n}], [{}]]", 1u64 << 49));
        let json = format!(
            r#"{{"frame_number": [{frames}], "kept": [{kept}], "packets_missing": [{lost}]}}"#
        );
        fs::write(&told, json).unwrap();
        let mut judge = judge(python, "judge_file.py");
        judge.arg(self.path()).args(options);
        judge.arg("--pixels").arg(pixels).arg("--facts").arg(told);
        let done = judge.output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (out, errors) = (text(&done.stdout), text(&done.stderr));
        assert!(done.status.success(), "{out}{errors}");
        println!("{}", out.trim());
        out
    }
}

#[test]
fn raw_and_compressed_images_of_every_type_are_read() {
    let Some(python) = python(MODULES) else {
        return;
    };
    for pixel in [
        PixelType::U16,
        PixelType::I16,
        PixelType::I32,
        PixelType::F32,
    ] {
        for compression in [Compression::None, Compression::BitshuffleLz4] {
            let mut reference = Reference::new();
            let info = info(pixel, compression);
            let mut writer = Writer::create(&reference.path(), false, &info).unwrap();
            for n in 0..6 {
                let bytes = image(n, pixel);
                // One in three is written raw, as one that does not become smaller.
                let dense = if compression == Compression::None || n % 3 == 2 {
                    Dense::Raw(bytes.clone())
                } else {
                    Dense::BitshuffleLz4(bitshuffle::compressed(&bytes, pixel.bytes()))
                };
                reference.write(&mut writer, bytes, &Pixels::Dense(dense));
            }
            writer.finish(&[]).unwrap();
            reference.judge(&python, &["--images", "6"]);
        }
    }
}

/// Image `n` with one pixel in 17, and its sparse form.
fn sparse(n: u64) -> (Vec<u8>, Sparse<Vec<u8>>) {
    let mut bytes = image(n, PixelType::I16);
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (at, pixel) in bytes.chunks_mut(2).enumerate() {
        if at % SHAPE.columns == 0 {
            rows.extend((values.len() as u32 / 2).to_le_bytes());
        }
        if at as u64 % 17 == n % 17 {
            columns.extend(((at % SHAPE.columns) as u16).to_le_bytes());
            values.extend_from_slice(pixel);
        } else {
            pixel.fill(0);
        }
    }
    rows.extend((values.len() as u32 / 2).to_le_bytes());
    let sparse = Sparse {
        rows,
        columns,
        values,
    };
    (bytes, sparse)
}

#[test]
fn sparse_images_among_dense_ones_are_read() {
    let Some(python) = python(MODULES) else {
        return;
    };
    let mut reference = Reference::new();
    let info = info(PixelType::I16, Compression::BitshuffleLz4);
    let mut writer = Writer::create(&reference.path(), false, &info).unwrap();
    for n in 0..40 {
        if n % 4 == 3 {
            let bytes = image(n, PixelType::I16);
            let dense = Dense::BitshuffleLz4(bitshuffle::compressed(&bytes, 2));
            reference.write(&mut writer, bytes, &Pixels::Dense(dense));
        } else {
            let (bytes, sparse) = sparse(n);
            reference.write(&mut writer, bytes, &Pixels::Sparse(sparse));
        }
    }
    writer.finish(&[]).unwrap();
    let told = reference.judge(&python, &["--images", "40"]);
    assert!(told.contains(r#""sparse": 30"#), "{told}");
}

/// The process that is killed: it writes without end. Run alone it does nothing.
#[test]
fn a_writer_that_is_killed() {
    let Some(path) = std::env::var_os(KILLED) else {
        return;
    };
    let info = info(PixelType::I16, Compression::None);
    let mut writer = Writer::create(Path::new(&path), false, &info).unwrap();
    for n in 0.. {
        let pixels = Pixels::Dense(Dense::Raw(image(n, PixelType::I16)));
        writer.write(&facts(n), &pixels, None).unwrap();
        if n % 13 == 12 {
            writer.flush().unwrap();
            let mut out = std::io::stdout().lock();
            writeln!(out, "\nflushed {}", n + 1).unwrap();
            out.flush().unwrap();
        }
    }
}

#[test]
fn a_killed_process_leaves_a_file_that_is_read() {
    let Some(python) = python(MODULES) else {
        return;
    };
    for milliseconds in [150, 333, 471] {
        let mut reference = Reference::new();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "file::a_writer_that_is_killed"])
            .env(KILLED, reference.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        let out = child.wait_with_output().unwrap();
        let out = String::from_utf8_lossy(&out.stdout);
        let flushed = out
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("flushed "));
        let Some(flushed) = flushed else {
            println!("killed before the first flush");
            continue;
        };
        // More than were flushed may be there.
        reference.images = flushed.parse::<u64>().unwrap() + 100;
        for n in 0..reference.images {
            reference.pixels.extend(image(n, PixelType::I16));
        }
        reference.judge(&python, &["--unfinished", "--images", flushed]);
    }
}
