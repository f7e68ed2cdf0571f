//! Files are read back by libhdf5; scripts/lib/images/judge_file.py has h5py read them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{File, OpenMode};
use tempfile::TempDir;

use super::*;
use crate::detector::tests::detector;
use crate::image::{Dense, ImageFacts, LossMap, PixelType, Pixels, Sparse};

const ROWS: usize = 8;
const COLUMNS: usize = 12;
const PIXELS: usize = ROWS * COLUMNS;

pub(super) fn info(compression: Compression) -> FileInfo {
    FileInfo {
        program: "a test".into(),
        version: "1.2.3".into(),
        title: "Images".into(),
        run: Some(7),
        configuration: "[detector]\n".into(),
        calibration: vec![("pedestal_g0".into(), "mod5_pedeG0.bin".into())],
        detector: detector(ROWS, COLUMNS, PixelType::I16),
        compression,
        findings: FindingsInfo::default(),
    }
}

pub(super) fn facts(n: u64) -> ImageFacts {
    ImageFacts {
        frame: 1000 + n,
        timestamp: (1 << 40) + 5000 * n,
        exposure: 100 + n as u32,
        bunch: 3 * n,
        peaks: n as u32 % 7,
        kept: !n.is_multiple_of(3),
        loss: LossMap::new(&[n, n << 32]),
        stack: pollux_images::stages::StackFacts::default(),
    }
}

fn pixels(n: u64) -> Vec<i16> {
    let value = |i: usize| ((n as usize * 31 + i * 7) as i16).wrapping_sub(100);
    (0..PIXELS).map(value).collect()
}

fn bytes(pixels: &[i16]) -> Vec<u8> {
    pixels
        .iter()
        .flat_map(|pixel| pixel.to_le_bytes())
        .collect()
}

/// Image `n`, of whose pixels only multiples of 5 + n are not zero.
fn sparse(n: u64) -> (Vec<i16>, Sparse<Vec<u8>>) {
    let mut image = pixels(n);
    for (i, pixel) in image.iter_mut().enumerate() {
        if i % (5 + n as usize) != 0 {
            *pixel = 0;
        }
    }
    let (mut rows, mut columns, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for row in image.chunks(COLUMNS) {
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0) {
            columns.extend((column as u16).to_le_bytes());
            values.extend(value.to_le_bytes());
        }
        rows.push(columns.len() as u32 / 2);
    }
    let rows = rows
        .iter()
        .flat_map(|offset| offset.to_le_bytes())
        .collect();
    let sparse = Sparse {
        rows,
        columns,
        values,
    };
    (image, sparse)
}

pub(super) fn raw(n: u64) -> Pixels<Vec<u8>> {
    Pixels::Dense(Dense::Raw(bytes(&pixels(n))))
}

fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    (folder, path)
}

fn column<T: hdf5_metno::H5Type>(file: &File, name: &str) -> Vec<T> {
    file.dataset(&format!("entry/{name}"))
        .unwrap()
        .read_raw()
        .unwrap()
}

fn text(file: &File, name: &str) -> String {
    let text = file.dataset(name).unwrap().read_scalar::<VarLenUnicode>();
    text.unwrap().to_string()
}

#[test]
fn images_and_facts_are_read_back() {
    let (_folder, path) = file();
    let mut writer = Writer::create(&path, false, &info(Compression::None)).unwrap();
    for n in 0..5 {
        writer.write(&facts(n), &raw(n), None).unwrap();
    }
    writer.flush().unwrap();
    for n in 5..8 {
        writer.write(&facts(n), &raw(n), None).unwrap();
    }
    writer
        .finish(&[("images_overrun".into(), 3), ("frames_partial".into(), 2)])
        .unwrap();
    let file = File::open(&path).unwrap();
    assert_eq!(
        file.dataset("entry/data/data").unwrap().shape(),
        [8, ROWS, COLUMNS]
    );
    let images: Vec<_> = (0..8).flat_map(pixels).collect();
    assert_eq!(column::<i16>(&file, "data/data"), images);
    assert_eq!(column::<i16>(&file, "instrument/detector/data"), images);
    let each = |value: fn(ImageFacts) -> u64| (0..8).map(facts).map(value).collect::<Vec<_>>();
    assert_eq!(
        column::<u64>(&file, "images/frame_number"),
        each(|it| it.frame)
    );
    assert_eq!(
        column::<u64>(&file, "images/timestamp"),
        each(|it| it.timestamp)
    );
    assert_eq!(
        column::<u64>(&file, "images/exposure"),
        each(|it| it.exposure.into())
    );
    assert_eq!(column::<u64>(&file, "images/bunch_id"), each(|it| it.bunch));
    assert_eq!(
        column::<u64>(&file, "images/peak_count"),
        each(|it| it.peaks.into())
    );
    assert_eq!(
        column::<u64>(&file, "images/kept"),
        each(|it| it.kept.into())
    );
    assert_eq!(column::<u8>(&file, "images/is_sparse"), [0; 8]);
    let loss: Vec<_> = (0..8).flat_map(|n| [n, n << 32]).collect();
    assert_eq!(column::<u64>(&file, "images/packets_missing"), loss);
    let loss = file.dataset("entry/images/packets_missing").unwrap();
    assert_eq!(loss.shape(), [8, 1, 2]);
    let attribute = |name| loss.attr(name).unwrap().read_scalar::<u64>().unwrap();
    assert_eq!(attribute("packets_per_module"), 128);
    assert_eq!(attribute("rows_per_packet"), 4);
    assert_eq!(column::<u64>(&file, "summary/images_overrun"), [3]);
    assert_eq!(column::<u64>(&file, "summary/frames_partial"), [2]);
    assert!(text(&file, "entry/end_time").ends_with('Z'));
    assert_eq!(text(&file, "entry/configuration/data"), "[detector]\n");
    let wavelength = column::<f64>(&file, "instrument/beam/incident_wavelength");
    assert!((wavelength[0] - 0.999_872_5).abs() < 1e-6);
}

#[test]
fn sparse_images_lie_beside_dense_ones() {
    let (_folder, path) = file();
    let mut writer = Writer::create(&path, false, &info(Compression::None)).unwrap();
    writer
        .write(&facts(0), &Pixels::Sparse(sparse(0).1), None)
        .unwrap();
    writer.write(&facts(1), &raw(1), None).unwrap();
    writer
        .write(&facts(2), &Pixels::Sparse(sparse(2).1), None)
        .unwrap();
    writer.finish(&[]).unwrap();
    let file = File::open(&path).unwrap();
    let data = file.dataset("entry/data/data").unwrap();
    assert_eq!((data.shape()[0], data.num_chunks()), (3, Some(1)));
    let dense = column::<i16>(&file, "data/data");
    // Without a chunk an image is bad pixels.
    assert!(dense[..PIXELS].iter().all(|&pixel| pixel == i16::MIN));
    assert_eq!(dense[PIXELS..2 * PIXELS], pixels(1));
    assert_eq!(column::<u8>(&file, "images/is_sparse"), [1, 0, 1]);
    assert_eq!(column::<u64>(&file, "sparse/image"), [0, 2]);
    let first = column::<u64>(&file, "sparse/first");
    let rows = column::<u32>(&file, "sparse/rows");
    let columns = column::<u16>(&file, "sparse/columns");
    let values = column::<i16>(&file, "sparse/values");
    for (k, n) in [0u64, 2].into_iter().enumerate() {
        let mut image = vec![0; PIXELS];
        let rows = &rows[k * (ROWS + 1)..][..=ROWS];
        for (row, ends) in rows.windows(2).enumerate() {
            for at in ends[0]..ends[1] {
                let at = (first[k] + u64::from(at)) as usize;
                image[row * COLUMNS + usize::from(columns[at])] = values[at];
            }
        }
        assert_eq!(image, sparse(n).0, "image {n}");
    }
}

#[test]
fn a_compressed_image_is_stored_as_it_was_given() {
    let (_folder, path) = file();
    let mut writer = Writer::create(&path, false, &info(Compression::BitshuffleLz4)).unwrap();
    let mut compressed = (2 * PIXELS as u64).to_be_bytes().to_vec();
    compressed.extend(8192u32.to_be_bytes());
    compressed.extend([5, 6, 7, 8, 9]);
    let given = Pixels::Dense(Dense::BitshuffleLz4(compressed.clone()));
    writer.write(&facts(0), &given, None).unwrap();
    writer.write(&facts(1), &raw(1), None).unwrap();
    writer.finish(&[]).unwrap();
    let file = File::open(&path).unwrap();
    let data = file.dataset("entry/data/data").unwrap();
    let filters = data.filters();
    assert_eq!(
        filters,
        [hdf5_metno::filters::Filter::User(
            32008,
            vec![0, 4, 2, 0, 2]
        )]
    );
    let stored = |n| {
        let chunk = data.chunk_info(n).unwrap();
        let mut bytes = vec![0; chunk.size as usize];
        let file = fs::File::open(&path).unwrap();
        file.read_exact_at(&mut bytes, chunk.addr).unwrap();
        (chunk.filter_mask, bytes)
    };
    assert_eq!(stored(0), (0, compressed));
    assert_eq!(stored(1), (1, bytes(&pixels(1))));
}

#[test]
fn pixels_that_do_not_fit_leave_the_file_as_it_is() {
    let (_folder, path) = file();
    let mut writer = Writer::create(&path, false, &info(Compression::None)).unwrap();
    writer.write(&facts(0), &raw(0), None).unwrap();
    let short = Pixels::Dense(Dense::Raw(vec![0; 17]));
    let compressed = Pixels::Dense(Dense::BitshuffleLz4(vec![0; 20]));
    let mut wrong = sparse(0).1;
    wrong.values.pop();
    for (pixels, message) in [
        (
            short,
            "image 1 is refused: an image of 8 x 12 pixels of 2 bytes has 17 bytes",
        ),
        (compressed, "image 1 is refused: it is compressed"),
        (Pixels::Sparse(wrong), "image 1 is refused: a sparse image"),
    ] {
        let error = writer.write(&facts(1), &pixels, None).unwrap_err();
        assert!(
            error.is_of_image() && error.to_string().contains(message),
            "{error}"
        );
    }
    writer.write(&facts(1), &raw(1), None).unwrap();
    writer.finish(&[]).unwrap();
    let file = File::open(&path).unwrap();
    let images: Vec<_> = (0..2).flat_map(pixels).collect();
    assert_eq!(column::<i16>(&file, "data/data"), images);
}

#[test]
fn a_file_that_is_there_is_not_overwritten() {
    let (folder, path) = file();
    fs::write(&path, "something else").unwrap();
    let error = Writer::create(&path, false, &info(Compression::None)).err();
    assert!(error.unwrap().to_string().contains("File exists"));
    assert_eq!(fs::read(&path).unwrap(), b"something else");
    let writer = Writer::create(&path, true, &info(Compression::None)).unwrap();
    writer.finish(&[]).unwrap();
    File::open(&path).unwrap();
    let nowhere = folder.path().join("nowhere/run.h5");
    let error = Writer::create(&nowhere, false, &info(Compression::None)).err();
    assert!(error.unwrap().to_string().contains("No such file"));
    let mut wrong = info(Compression::None);
    wrong.detector.distance = 0.0;
    let error = Writer::create(&nowhere, false, &wrong).err().unwrap();
    assert_eq!(error.to_string(), "distance = 0: give a number above 0");
}

/// Images of a file whose writer is still there, or was killed.
fn images_of_unfinished(path: &Path) -> Vec<u64> {
    let file = File::open_as(path, OpenMode::ReadSWMR).unwrap();
    let frames = column::<u64>(&file, "images/frame_number");
    let data = file.dataset("entry/data/data").unwrap();
    assert!(data.shape()[0] >= frames.len());
    let images = column::<i16>(&file, "data/data");
    let peaks = column::<u32>(&file, "images/peak_count");
    for (n, image) in (0..frames.len()).zip(images.chunks(PIXELS)) {
        assert_eq!(frames[n], facts(n as u64).frame);
        assert_eq!(peaks[n], facts(n as u64).peaks);
        assert_eq!(image, pixels(n as u64), "image {n} of {}", frames.len());
    }
    frames
}

/// A copy of the file at any moment is what a `kill -9` at that moment leaves.
#[test]
fn a_killed_writer_leaves_all_images_of_the_last_flush() {
    let (folder, path) = file();
    let mut writer = Writer::create(&path, false, &info(Compression::None)).unwrap();
    let mut flushed = 0;
    for n in 0..300 {
        writer.write(&facts(n), &raw(n), None).unwrap();
        if n % 17 == 16 {
            writer.flush().unwrap();
            flushed = n + 1;
        }
        if n % 10 == 9 {
            let killed = folder.path().join("killed.h5");
            fs::copy(&path, &killed).unwrap();
            let there = images_of_unfinished(&killed).len() as u64;
            assert!((flushed..=n + 1).contains(&there), "{there} of {flushed}");
        }
    }
    // Without the SWMR flag a reader is told that the file is not complete.
    let killed = folder.path().join("killed.h5");
    assert!(File::open(&killed).is_err());
    writer.finish(&[]).unwrap();
    assert_eq!(
        column::<u64>(&File::open(&path).unwrap(), "images/frame_number").len(),
        300
    );
}
