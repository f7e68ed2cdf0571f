//! Stages on files.

use std::fs;
use std::path::{Path, PathBuf};

use zerocopy::IntoBytes as _;

use crate::{fail, program, succeed};

const PIXELS: usize = 512 * 1024;

/// Recorded frames; `None`, which is printed, where there are none.
fn recorded() -> Option<PathBuf> {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let folder = data.join("jungfrau");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no recorded data");
    None
}

fn read(path: &Path) -> Vec<f32> {
    let bytes = fs::read(path).unwrap();
    let (values, _) = bytes.as_chunks();
    values
        .iter()
        .map(|&value| f32::from_le_bytes(value))
        .collect()
}

/// Gains fitted on two recorded frames convert the other two as the reference does: to 0.03 photons RMS
/// in G0, and 3 % in G1.
#[test]
fn recorded_frames_are_converted_as_the_reference_does() {
    let Some(data) = recorded() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| data.join(name).display().to_string();
    let pair = |n| {
        format!(
            "{}:{}",
            file(&format!("mod5_raw{n}.bin")),
            file(&format!("mod5_conv{n}.bin"))
        )
    };
    let mut command = program();
    command.args([
        "convert",
        "--raw",
        &file("mod5_raw2.bin"),
        &file("mod5_raw3.bin"),
    ]);
    command.args([
        "--pedestal",
        &file("mod5_pedeG0.bin"),
        &file("mod5_pedeG1.bin"),
        &file("mod5_pedeG2.bin"),
    ]);
    command.args(["--fit-gain", &[pair(0), pair(1)].join(","), "--out"]);
    succeed(command.arg(folder.path()));
    for n in [2, 3] {
        let converted = read(&folder.path().join(format!("mod5_raw{n}.f32")));
        let expected = read(&data.join(format!("mod5_conv{n}.bin")));
        let raw = fs::read(data.join(format!("mod5_raw{n}.bin"))).unwrap();
        let (raw, _) = raw.as_chunks();
        let (mut squares, mut g0, mut g1) = (0.0, 0, Vec::new());
        for (raw, (ours, theirs)) in raw.iter().zip(converted.iter().zip(&expected)) {
            match u16::from_le_bytes(*raw) >> 14 {
                0 => {
                    squares += f64::from(ours - theirs).powi(2);
                    g0 += 1;
                }
                1 if *theirs != 0.0 => g1.push((ours / theirs - 1.0).abs()),
                _ => {}
            }
        }
        let rms = (squares / f64::from(g0)).sqrt();
        assert!(rms < 0.03, "frame {n}: {rms}");
        g1.sort_unstable_by(f32::total_cmp);
        assert!(g1[g1.len() / 2] < 0.03, "frame {n}");
    }
}

/// A flat image with two bright pixels that touch.
fn image(folder: &Path) -> PathBuf {
    let mut pixels = vec![0.25_f32; PIXELS];
    for pixel in [100 * 1024 + 200, 100 * 1024 + 201] {
        pixels[pixel] = 50.0;
    }
    let path = folder.join("flat.f32");
    fs::write(&path, pixels.as_bytes()).unwrap();
    path
}

#[test]
fn a_flat_image_integrates_to_its_value() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let poni = folder.path().join("d.poni");
    fs::write(
        &poni,
        "poni_version: 2\nDetector: Detector\nDetector_config: {\"pixel1\": 7.5e-05, \"pixel2\": 7.5e-05}\n\
         Distance: 0.1\nPoni1: 0.0192\nPoni2: 0.0384\nRot1: 0\nRot2: 0\nRot3: 0\nWavelength: 1e-10\n",
    )
    .unwrap();
    for split in ["no", "full"] {
        let mut command = program();
        command
            .arg("integrate")
            .arg(&image)
            .arg("--poni")
            .arg(&poni);
        let output = succeed(command.args(["--bins", "100", "--split", split, "--no-solid-angle"]));
        let text = String::from_utf8(output.stdout).unwrap();
        let means: Vec<f64> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
            .collect();
        assert_eq!(means.len(), 100);
        let flat = means
            .iter()
            .filter(|&&mean| (mean - 0.25).abs() < 1e-6)
            .count();
        assert!(flat >= 95, "{split}: {text}");
    }
}

#[test]
fn a_variance_below_0_and_a_file_without_an_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let image = image(folder.path());
    fs::write(
        path("d.poni"),
        "PixelSize1: 1e-4\nPixelSize2: 1e-4\nDistance: 0.1\nPoni1: 0.02\nPoni2: 0.04\nWavelength: 1e-10\n",
    )
    .unwrap();
    let mut variance = vec![1.0_f32; PIXELS];
    variance[0] = f32::NAN;
    let integrate = |variance: &[f32], mask: &[&str]| {
        fs::write(path("variance.f32"), variance.as_bytes()).unwrap();
        let mut command = program();
        command.arg("integrate").arg(&image).args(mask);
        command.arg("--poni").arg(path("d.poni"));
        command.arg("--variance").arg(path("variance.f32"));
        command
    };
    succeed(&mut integrate(&variance, &[]));
    let error = fail(&mut integrate(&variance, &["--mask", "/dev/zero"]), 1);
    assert!(error.contains("/dev/zero: more than 524288 B"), "{error}");
    variance[3 * 1024 + 7] = -1.0;
    let error = fail(&mut integrate(&variance, &[]), 2);
    assert!(
        error.contains("--variance: -1 in row 3, column 7"),
        "{error}"
    );
}

#[test]
fn a_bright_spot_is_a_peak() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let output = succeed(program().arg("peaks").arg(&image));
    let text = String::from_utf8(output.stdout).unwrap();
    let peaks: Vec<_> = text.lines().skip(1).collect();
    assert_eq!(peaks.len(), 1, "{text}");
    let columns: Vec<_> = peaks[0].split(',').collect();
    assert_eq!((columns[1], columns[2]), ("100", "200.5"));
}

#[test]
fn compressed_images_are_smaller() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path());
    let out = folder.path().join("out");
    let mut command = program();
    command.arg("compress").arg(&image).arg("--out").arg(&out);
    succeed(&mut command);
    let dense = fs::metadata(out.join("flat.bslz4")).unwrap().len();
    assert!(dense < 100_000, "{dense}");
    let mut command = program();
    command.arg("compress").arg(&image).arg("--out").arg(&out);
    succeed(command.args(["--method", "sparse", "--threshold", "1", "--pixels", "i16"]));
    let sparse = fs::metadata(out.join("flat.csr")).unwrap().len();
    assert!(sparse < 3000, "{sparse}");
    // The results are there now.
    let mut command = program();
    command.arg("compress").arg(&image).arg("--out").arg(&out);
    fail(&mut command, 2);
}

#[test]
fn files_of_another_size_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("short.f32");
    fs::write(&short, [0; 100]).unwrap();
    let error = fail(program().arg("peaks").arg(&short), 1);
    assert!(
        error.contains("short.f32") && error.contains("100 B"),
        "{error}"
    );
    let error = fail(program().arg("peaks").arg(&short).args(["--shape", "5"]), 2);
    assert!(error.contains("ROWSxCOLUMNS"), "{error}");
    let mut command = program();
    command.args(["convert", "--raw"]).arg(&short);
    command
        .args(["--pedestal", "a", "b", "c", "--out"])
        .arg(folder.path());
    let error = fail(&mut command, 2);
    assert!(
        error.contains("--gain") || error.contains("--fit-gain"),
        "{error}"
    );
}
