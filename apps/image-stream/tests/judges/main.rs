//! The outputs as others read them: scripts/lib/images/judge_file.py with h5py and hdf5plugin,
//! scripts/lib/images/judge_live.py with pyzmq, cbor2 and dectris-compression. POLLUX_PYTHON is a
//! Python that has these packages; the tests are skipped without it.
#![allow(clippy::unwrap_used)]

mod bitshuffle;
#[cfg(feature = "hdf5")]
mod file;
mod live;

use std::path::{Path, PathBuf};
use std::process::Command;

use image_stream::{Detector, ImageFacts, LossLayout, LossMap, PixelType};
use pollux_images::Shape;

const SHAPE: Shape = Shape {
    rows: 100,
    columns: 101,
};

/// A Python that has the modules, or `None`, which is printed.
fn python(modules: &str) -> Option<PathBuf> {
    let python = std::env::var_os("POLLUX_PYTHON").unwrap_or_else(|| "python3".into());
    let import = Command::new(&python)
        .args(["-c", &format!("import {modules}")])
        .output();
    if import.is_ok_and(|done| done.status.success()) {
        return Some(python.into());
    }
    println!("skipped: no Python with {modules}: name one in POLLUX_PYTHON");
    None
}

/// One of the programs in scripts/lib/images.
fn judge(python: &Path, name: &str) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/lib/images");
    let mut command = Command::new(python);
    command.arg("-B").arg(folder.join(name));
    command
}

fn detector(pixel: PixelType) -> Detector {
    Detector {
        description: "JUNGFRAU".into(),
        serial_number: "5".into(),
        shape: SHAPE,
        pixel,
        pixel_size: [75e-6, 75e-6],
        distance: 0.1,
        beam_center: [50.5, 49.5],
        photon_energy: 12_400.0,
        sensor_material: "Si".into(),
        sensor_thickness: 320e-6,
        count_time: 1e-5,
        frame_time: 5e-4,
        loss: LossLayout {
            modules: 2,
            packets: 50,
            rows: 2,
        },
        mask: Some(vec![0; SHAPE.pixels()]),
    }
}

fn facts(n: u64) -> ImageFacts {
    ImageFacts {
        frame: 1000 + n,
        timestamp: (1 << 40) + 5000 * n,
        exposure: 100,
        bunch: 3 * n,
        peaks: n as u32 % 7,
        kept: !n.is_multiple_of(3),
        loss: LossMap::new(&[n, 1 << 49]),
        stack: pollux_images::stages::StackFacts::default(),
    }
}

/// Bytes of image `n`: every bit of a pixel is used.
fn image(n: u64, pixel: PixelType) -> Vec<u8> {
    let mut state = n + 1;
    let byte = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..SHAPE.pixels() * pixel.bytes()).map(byte).collect()
}
