//! Stages on files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    let error = fail(&mut integrate(&variance, &["--mask", "/dev/zero"]), 2);
    assert!(
        error.contains("--mask /dev/zero: not a regular file"),
        "{error}"
    );
    let beyond = ["--range", "5000", "6000"];
    let error = fail(&mut integrate(&variance, &beyond), 2);
    assert!(error.contains("--range 5000 6000: no pixel"), "{error}");
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
    let error = fail(program().arg("peaks").arg(&short), 2);
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

/// Raw frames of which every pixel has so many photons of 500 ADU, with pedestals of 2400.
fn constant(folder: &Path, name: &str, photons: &[u16]) {
    let pixel = |n: usize| photons[n % photons.len()];
    let raw: Vec<u16> = (0..PIXELS).map(|n| 2400 + 500 * pixel(n)).collect();
    fs::write(folder.join(format!("{name}.bin")), raw.as_bytes()).unwrap();
    let photons: Vec<f32> = (0..PIXELS).map(|n| f32::from(pixel(n))).collect();
    fs::write(folder.join(format!("{name}.f32")), photons.as_bytes()).unwrap();
}

/// A conversion of `a.bin` with gains fitted to a pair.
fn convert(folder: &Path, pair: &str) -> Command {
    for (gain, pedestal) in [2400.0_f32, 13_500.0, 14_100.0].into_iter().enumerate() {
        let map = vec![pedestal; PIXELS];
        fs::write(folder.join(format!("p{gain}.bin")), map.as_bytes()).unwrap();
    }
    let mut command = program();
    command.current_dir(folder);
    command.args([
        "convert",
        "--raw",
        "a.bin",
        "--pedestal",
        "p0.bin",
        "p1.bin",
        "p2.bin",
    ]);
    command.args(["--fit-gain", pair]);
    command
}

#[test]
fn a_pair_of_two_frames_gives_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    constant(folder.path(), "a", &[1, 2, 3, 4]);
    constant(folder.path(), "b", &[4, 1, 2, 1]);
    for (pair, warns) in [("a.bin:a.f32", false), ("a.bin:b.f32", true)] {
        let output = succeed(convert(folder.path(), pair).args(["--out", "photons", "--force"]));
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(errors.contains("gain G0 is implausible"), warns, "{errors}");
    }
}

#[test]
fn inputs_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    constant(folder.path(), "a", &[1]);
    let path = |name: &str| folder.path().join(name);
    // The photons of the pair are at the place of the result.
    let mut command = convert(folder.path(), "a.bin:a.f32");
    let error = fail(command.args(["--out", ".", "--force"]), 2);
    assert!(
        error.contains("--out ./a.f32 would overwrite --fit-gain a.f32"),
        "{error}"
    );
    let image = image(folder.path());
    let before = fs::read(&image).unwrap();
    fs::hard_link(&image, path("table.csv")).unwrap();
    let mut command = program();
    command
        .arg("peaks")
        .arg(&image)
        .arg("--out")
        .arg(path("table.csv"));
    let error = fail(command.arg("--force"), 2);
    assert!(error.contains("would overwrite image"), "{error}");
    fs::create_dir(path("out")).unwrap();
    std::os::unix::fs::symlink(&image, path("out/flat.bslz4")).unwrap();
    let mut command = program();
    command
        .arg("compress")
        .arg(&image)
        .arg("--out")
        .arg(path("out"));
    fail(command.arg("--force"), 2);
    assert!(fs::read(&image).unwrap() == before);
}

#[test]
fn a_short_gain_file_is_one_of_three_maps() {
    let folder = tempfile::tempdir().unwrap();
    constant(folder.path(), "a", &[1]);
    let mut command = convert(folder.path(), "a.bin:a.f32");
    command.args(["--out", "photons"]);
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let args = args.iter().map(|arg| match arg.to_str() {
        Some("--fit-gain") => "--gain".into(),
        Some("a.bin:a.f32") => "a.f32".into(),
        _ => arg.clone(),
    });
    let mut command = program();
    let error = fail(command.current_dir(folder.path()).args(args), 2);
    assert!(
        error.contains("--gain a.f32: 2097152 B, not the 6291456 B of 3 maps of 512 x 1024"),
        "{error}"
    );
}
