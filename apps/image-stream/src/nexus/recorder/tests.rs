//! Recorders on disks that are slow or full.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use hdf5_metno::sync::sync;
use hdf5_metno::{File, OpenMode};
use pollux_app::Overwrite;
use tempfile::TempDir;

use super::*;
use crate::image::{Dense, PixelType};
use crate::nexus::Compression;
use crate::nexus::tests::{facts, info, raw};

const PATIENCE: Duration = Duration::from_secs(10);

fn output(path: &Path) -> Output {
    Output::new("--images", path, Overwrite::default()).unwrap()
}

fn config(queue: usize) -> RecorderConfig {
    RecorderConfig {
        queue,
        loops: Vec::new(),
        rotation: Rotation::default(),
    }
}

fn start(path: &Path, config: RecorderConfig) -> (Recorder, FileQueue<Vec<u8>>) {
    let summary = Box::new(|| vec![("images_overrun".to_owned(), 5)]);
    Recorder::start(&output(path), info(Compression::None), summary, config).unwrap()
}

fn image(n: u64) -> ImageRecord<Pixels<Vec<u8>>> {
    ImageRecord {
        facts: facts(n),
        pixels: raw(n),
        found: None,
    }
}

/// Pushes, and waits where the queue is full.
fn push(queue: &FileQueue<Vec<u8>>, n: u64) {
    while !queue.push(image(n)) {
        std::thread::yield_now();
    }
}

fn frames(path: &Path) -> Vec<u64> {
    let file = File::open(path).unwrap();
    let frames = file.dataset("entry/images/frame_number").unwrap();
    frames.read_raw().unwrap()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn all_images_of_several_loops_are_written() {
    let folder = folder();
    let path = folder.path().join("run.h5");
    let (recorder, queue) = start(&path, config(16));
    std::thread::scope(|scope| {
        for part in 0..2 {
            let queue = queue.clone();
            scope.spawn(move || {
                for n in 0..500 {
                    push(&queue, 2 * n + part);
                }
            });
        }
    });
    let counts = Arc::clone(recorder.counts());
    recorder.finish(PATIENCE).unwrap();
    let mut frames = frames(&path);
    frames.sort_unstable();
    assert!(frames.iter().copied().eq(1000..2000));
    assert_eq!((counts.written.get(), counts.failed.get()), (1000, 0));
    assert_eq!(counts.bytes.get(), 1000 * 8 * 12 * 2);
    assert_eq!(counts.files(), [path]);
}

#[test]
fn a_slow_disk_overruns_the_queue_and_holds_up_no_loop() {
    let folder = folder();
    let path = folder.path().join("run.h5");
    let (recorder, queue) = start(&path, config(4));
    let counts = Arc::clone(recorder.counts());
    // The library's lock stops the thread, as a disk would.
    let handed = sync(|| (0..100).filter(|&n| queue.push(image(n))).count() as u64);
    assert!((4..=5).contains(&handed), "{handed}");
    recorder.finish(PATIENCE).unwrap();
    assert_eq!(counts.overrun.get(), 100 - handed);
    assert_eq!(counts.written.get(), handed);
    assert_eq!(frames(&path).len() as u64, handed);
}

#[test]
fn a_disk_that_hangs_is_not_waited_for() {
    let folder = folder();
    let path = folder.path().join("run.h5");
    let (recorder, queue) = start(&path, config(4));
    sync(|| {
        queue.push(image(0));
        let error = recorder.finish(Duration::from_millis(50)).unwrap_err();
        let message = error.to_string();
        assert!(message.ends_with("the disk has taken nothing for 0.05 s, and is not waited for"));
    });
}

#[test]
fn images_that_do_not_fit_are_counted_and_the_others_written() {
    let folder = folder();
    let path = folder.path().join("run.h5");
    let (recorder, queue) = start(&path, config(16));
    for n in 0..10 {
        let mut image = image(n);
        if n % 3 == 0 {
            image.pixels = Pixels::Dense(Dense::Raw(vec![1, 2, 3]));
        }
        assert!(queue.push(image));
    }
    let counts = Arc::clone(recorder.counts());
    recorder.finish(PATIENCE).unwrap();
    assert_eq!((counts.written.get(), counts.refused.get()), (6, 4));
    assert_eq!(frames(&path), [1001, 1002, 1004, 1005, 1007, 1008]);
}

#[test]
fn files_of_a_divided_recording_are_complete() {
    let folder = folder();
    let path = folder.path().join("run.h5");
    let rotation = Rotation {
        size: Some(1),
        age: None,
        keep: Some(3),
    };
    let (recorder, queue) = start(
        &path,
        RecorderConfig {
            rotation,
            ..config(16)
        },
    );
    // A file has its size when it is flushed.
    for n in 0..5 * GATHERED {
        push(&queue, n);
    }
    let counts = Arc::clone(recorder.counts());
    recorder.finish(PATIENCE).unwrap();
    let files = counts.files();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| file.exists()));
    assert!(!output(&path).part(1).path().exists());
    let last = files.iter().flat_map(|file| frames(file));
    assert_eq!(last.last(), Some(999 + 5 * GATHERED));
    for file in &files {
        let file = File::open(file).unwrap();
        let overrun = file.dataset("entry/summary/images_overrun").unwrap();
        assert_eq!(overrun.read_scalar::<u64>().unwrap(), 5);
    }
    // The files of this run are not overwritten by the next one.
    let summary = Box::new(Vec::new);
    let config = RecorderConfig {
        rotation,
        ..config(1)
    };
    let next = Recorder::start::<Vec<u8>>(&output(&path), info(Compression::None), summary, config);
    let error = next.err().unwrap().to_string();
    assert!(
        error.contains("the file exists and is not overwritten"),
        "{error}"
    );
}

#[test]
fn a_request_that_cannot_be_met_is_refused_before_the_run() {
    let folder = folder();
    let path = folder.path().join("nowhere/run.h5");
    let begin = |path: &Path, queue| {
        let summary = Box::new(Vec::new);
        let info = info(Compression::None);
        let begun = Recorder::start::<Vec<u8>>(&output(path), info, summary, config(queue));
        format!("{:#}", begun.err().unwrap())
    };
    assert!(begin(&path, 1).contains("No such file or directory"));
    let zero = begin(&folder.path().join("run.h5"), 0);
    assert!(
        zero.ends_with("a queue for 0 images: give 1 or more"),
        "{zero}"
    );
}

/// A file system of its own, in memory.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new(size: &str) -> Option<Self> {
        let folder = folder();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        let mounted = mount.arg(folder.path()).output();
        mounted
            .is_ok_and(|done| done.status.success())
            .then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A disk that is still in use goes when it is not.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_run() {
    let Some(disk) = SmallDisk::new("6m") else {
        println!("skipped: a small file system needs root");
        return;
    };
    let path = disk.0.path().join("run.h5");
    let mut info = info(Compression::None);
    info.detector = crate::detector::tests::detector(256, 256, PixelType::U16);
    let summary = Box::new(Vec::new);
    let (recorder, queue) = Recorder::start(&output(&path), info, summary, config(8)).unwrap();
    let counts = Arc::clone(recorder.counts());
    let mut full = 0;
    for n in 0..200 {
        let mut image = image(n);
        image.pixels = Pixels::Dense(Dense::Raw(vec![n as u8; 1 << 17]));
        while !queue.push(image.clone()) {
            full += 1;
            std::thread::sleep(NAP);
        }
        if n % 10 == 9 && counts.failed.get() == 0 {
            // So that there are several flushes.
            std::thread::sleep(STALE + Duration::from_millis(50));
        }
    }
    let error = format!("{:#}", recorder.finish(PATIENCE).unwrap_err());
    assert!(error.contains("run.h5: No space left on device"), "{error}");
    let (written, failed) = (counts.written.get(), counts.failed.get());
    assert!(written >= 10 && failed > 0, "{written} {failed}");
    assert_eq!((written + failed, counts.overrun.get()), (200, full));
    // All images of the last flush are there.
    let file = File::open_as(&path, OpenMode::ReadSWMR).unwrap();
    let frames: Vec<u64> = file
        .dataset("entry/images/frame_number")
        .unwrap()
        .read_raw()
        .unwrap();
    assert_eq!(frames.len() as u64, written);
    let data = file.dataset("entry/data/data").unwrap();
    for n in 0..written as usize {
        let image = data.read_slice_1d::<u16, _>((n, 100, ..)).unwrap();
        let pixel = u16::from_le_bytes([n as u8; 2]);
        assert!(image.iter().all(|&it| it == pixel), "image {n}");
    }
}
