//! What stages found, in image files: read back and compared with the images of the same file.

use hdf5_metno::File;
use pollux_images::Shape;
use pollux_images::integrate::{Geometry, IntegrationConfig, Integrator, Variance};

use crate::capture::{Capture, detector};
use crate::replay::replay;

const STAGES: &str = "[[stage]]\nname = \"veto\"\nmin_photons = 10.0\nmin_pixels = 5\n\
    [[stage]]\nname = \"peaks\"\nmin_peaks = 3\ncriteria = { max_peaks = 100 }\n\
    [[stage]]\nname = \"integrate\"\n\
    geometry = { dist = 0.1, poni1 = 0.019, poni2 = 0.038, pixel1 = 75e-6, pixel2 = 75e-6 }\n\
    curve = { unit = \"r_mm\", bins = 200 }\n\
    [[stage]]\nname = \"compress\"\nmethod = \"sparse\"\nmin_photons = 0.5\n";

fn column<T: hdf5_metno::H5Type>(file: &File, name: &str) -> Vec<T> {
    file.dataset(&format!("entry/{name}"))
        .unwrap()
        .read_raw()
        .unwrap()
}

/// Dense image `n` of a file with sparse ones, where pixels below half a photon are 0.
fn image(file: &File, n: usize) -> Vec<i16> {
    let (rows, columns) = (512, 1024);
    let mut image = vec![0; rows * columns];
    let at = column::<u64>(file, "sparse/image")
        .iter()
        .position(|&it| it == n as u64)
        .unwrap();
    let first = column::<u64>(file, "sparse/first")[at] as usize;
    let offsets = &column::<u32>(file, "sparse/rows")[at * (rows + 1)..(at + 1) * (rows + 1)];
    let all = first..first + offsets[rows] as usize;
    let (in_row, values) = (
        column::<u16>(file, "sparse/columns"),
        column::<i16>(file, "sparse/values"),
    );
    let (in_row, values) = (&in_row[all.clone()], &values[all]);
    for row in 0..rows {
        for pixel in offsets[row] as usize..offsets[row + 1] as usize {
            image[row * columns + usize::from(in_row[pixel])] = values[pixel];
        }
    }
    image
}

/// Packets that each image lacks.
fn missing(file: &File) -> Vec<u32> {
    let words = column::<u64>(file, "images/packets_missing");
    let bits = |words: &[u64]| words.iter().map(|word| word.count_ones()).sum();
    words.chunks(2).map(bits).collect()
}

#[test]
fn peaks_curves_and_vetoed_images_are_in_the_file() {
    let mut emulated = detector(16);
    emulated.pattern.hit_rate = 0.5;
    emulated.faults.lost = 0.002;
    let capture = Capture::new(emulated);
    let config = capture.configure("i16", STAGES);
    let path = capture.path("run.h5");
    let out = ["--vetoed", "--out", path.to_str().unwrap()];
    let run = replay(&capture, &config, &out);
    assert_eq!(run["images"]["built"], 16, "{run}");
    assert_eq!(run["images"]["written"], 16, "{run}");
    let file = File::open(&path).unwrap();

    let kept = column::<u8>(&file, "images/kept");
    let vetoed = kept
        .iter()
        .map(|&kept| usize::from(kept == 0))
        .sum::<usize>();
    assert!((1..16).contains(&vetoed), "{kept:?}");
    assert_eq!(run["images"]["vetoed"], vetoed);

    // Without workers each image is an event of its own.
    let stacks = column::<u64>(&file, "images/stack");
    assert!(stacks.into_iter().eq(0..16));
    let missing = missing(&file);

    // The largest pixel of each peak is near its centre of mass.
    let number = column::<i32>(&file, "peaks/nPeaks");
    let counts = column::<u32>(&file, "images/peak_count");
    assert!(
        number
            .iter()
            .zip(&counts)
            .all(|(&number, &count)| number as u32 == count)
    );
    let [x, y, maximum] = ["peakXPosRaw", "peakYPosRaw", "peakMaxIntensity"]
        .map(|name| column::<f32>(&file, &format!("peaks/{name}")));
    assert_eq!(x.len(), 16 * 100);
    let mut seen = 0;
    for (n, &number) in number.iter().enumerate().filter(|&(_, &number)| number > 0) {
        let image = image(&file, n);
        for peak in n * 100..n * 100 + number as usize {
            let (row, column) = (y[peak].round() as usize, x[peak].round() as usize);
            let around = |at: usize, end: usize| at.saturating_sub(2)..(at + 3).min(end);
            let pixels =
                around(row, 512).flat_map(|row| around(column, 1024).map(move |c| row * 1024 + c));
            let largest = pixels.map(|pixel| image[pixel]).max().unwrap();
            assert_eq!(
                f32::from(largest).to_bits(),
                maximum[peak].to_bits(),
                "image {n}, row {row}, column {column}"
            );
            seen += 1;
        }
        let rest = n * 100 + number as usize..(n + 1) * 100;
        assert!(x[rest].iter().all(|&x| x == 0.0));
    }
    assert!(seen > 50, "{seen}");

    // A curve of each kept image, of as many bins as the axis.
    let axis = column::<f64>(&file, "integration/r");
    let [mean, errors] =
        ["mean", "mean_errors"].map(|name| column::<f32>(&file, &format!("integration/{name}")));
    assert_eq!(
        (axis.len(), mean.len(), errors.len()),
        (200, 16 * 200, 16 * 200)
    );
    let geometry = Geometry {
        dist: 0.1,
        poni1: 0.019,
        poni2: 0.038,
        rot1: 0.0,
        rot2: 0.0,
        rot3: 0.0,
        pixel1: 75e-6,
        pixel2: 75e-6,
        wavelength: None,
    };
    let curve = IntegrationConfig {
        unit: pollux_images::integrate::RadialUnit::RadiusMm,
        bins: 200,
        ..IntegrationConfig::default()
    };
    let mask: Vec<bool> = std::fs::read(capture.path("mask.bin"))
        .unwrap()
        .iter()
        .map(|&bad| bad != 0)
        .collect();
    let mut integrator =
        Integrator::new(Shape::JUNGFRAU_MODULE, &geometry, &curve, Some(&mask)).unwrap();
    assert_eq!(integrator.radial(), axis);
    for (n, (mean, errors)) in mean.chunks(200).zip(errors.chunks(200)).enumerate() {
        if kept[n] == 0 {
            assert!(
                mean.iter().chain(errors).all(|value| value.is_nan()),
                "image {n}"
            );
        } else if missing[n] == 0 {
            // The sparse image lacks the noise below half a photon alone, which is rounded to 0.
            let expected = integrator
                .integrate(&image(&file, n), Variance::Poisson)
                .unwrap();
            let close = |a: &f32, b: &f64| (f64::from(*a) - b).abs() <= 1e-6 + 0.05 * b.abs();
            assert!(
                mean.iter().zip(&expected.mean).all(|(a, b)| close(a, b)),
                "image {n}"
            );
        }
    }
}

/// The event of a stack, which a worker processes, says what its images lack.
#[test]
fn events_of_stacks_are_in_the_file() {
    let mut emulated = detector(16);
    emulated.faults.lost = 0.002;
    let capture = Capture::new(emulated);
    let veto = "[[stage]]\nname = \"veto\"\nmin_photons = 10.0\nmin_pixels = 5\n";
    let config = capture.configure("i16", veto);
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("[detector]", "[detector]\nstack = 4");
    std::fs::write(&config, text).unwrap();
    let path = capture.path("run.h5");
    let out = [
        "--workers",
        "1",
        "--vetoed",
        "--out",
        path.to_str().unwrap(),
    ];
    let run = replay(&capture, &config, &out);
    assert_eq!(run["images"]["written"], 16, "{run}");
    let file = File::open(&path).unwrap();

    let missing = missing(&file);
    assert!(missing.iter().any(|&missing| missing > 0));
    let stacks = column::<u64>(&file, "images/stack");
    let [images, incomplete, packets] = ["images", "incomplete", "packets_missing"]
        .map(|name| column::<u32>(&file, &format!("images/stack_{name}")));
    // An event waits for its last images for a while only, so that some may have fewer than four.
    let mut first = 0;
    for (number, stack) in (0..).zip(stacks.chunk_by(|a, b| a == b)) {
        let all = first..first + stack.len();
        let own = &missing[all.clone()];
        let lacking = own.iter().filter(|&&missing| missing > 0).count();
        let expected = (stack.len() as u32, lacking as u32, own.iter().sum());
        assert!(stack.len() <= 4 && stack[0] == number, "{stacks:?}");
        for n in all {
            assert_eq!(
                (images[n], incomplete[n], packets[n]),
                expected,
                "{stacks:?}"
            );
        }
        first += stack.len();
    }
}

/// Raw images are compressed, and are the raw pixels when they are read.
#[test]
fn raw_images_are_compressed() {
    let capture = Capture::new(detector(4));
    let config = capture.write("[[stage]]\nname = \"compress\"\n");
    let (path, raw) = (capture.path("run.h5"), capture.path("all.raw"));
    let receiver = format!(
        "[[receiver]]\nfile = \"{}\"\ntransfer = {{ name = \"all\" }}\n",
        raw.display()
    );
    let text = std::fs::read_to_string(&config).unwrap() + &receiver;
    std::fs::write(&config, text).unwrap();
    let run = replay(&capture, &config, &["--out", path.to_str().unwrap()]);
    assert_eq!(run["images"]["written"], 4, "{run}");
    let stored = run["outputs"]["file"]["bytes"].as_u64().unwrap();
    assert!(stored < 4 * 512 * 1024 * 2, "{run}");
    let file = File::open(&path).unwrap();
    let data = file.dataset("entry/data/data").unwrap();
    assert_eq!(data.filters().len(), 1);
    assert_eq!(data.shape(), [4, 512, 1024]);
}
