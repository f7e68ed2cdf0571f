use std::path::Path;

use pollux_pipelines::simd::Simd;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::pixel::{Pixel, Shape};

/// Pixel by pixel: row offsets, columns, values, bad pixels.
fn brute_force<P: Value>(
    shape: Shape,
    threshold: P,
    image: &[P],
) -> (Vec<u32>, Vec<usize>, Vec<u32>, u32) {
    let (mut offsets, mut columns, mut values, mut bad) = (vec![0], vec![], vec![], 0);
    for row in image.chunks(shape.columns) {
        for (column, &pixel) in row.iter().enumerate() {
            if pixel.photons().is_nan() {
                bad += 1;
            } else if pixel >= threshold {
                columns.push(column);
                values.push(pixel.bits());
            }
        }
        offsets.push(columns.len() as u32);
    }
    (offsets, columns, values, bad)
}

/// The mask of an image, pixel by pixel.
fn mask<P: Value>(threshold: P, image: &[P]) -> Vec<u64> {
    let word = |pixels: &[P]| {
        (0..pixels.len()).fold(0, |word, n| word | u64::from(pixels[n] >= threshold) << n)
    };
    image.chunks(64).map(word).collect()
}

/// An image of which about this fraction of pixels is 1 to 2000, in places saturated or bad.
fn image<P: Value>(shape: Shape, occupancy: f64, number: impl Fn(u16) -> P, seed: u64) -> Vec<P> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut pixel = || match random.random_range(0..1000) {
        0 => P::BAD,
        1 => P::SATURATED,
        _ if random.random_bool(occupancy) => number(random.random_range(1..2000)),
        _ => number(0),
    };
    (0..shape.pixels()).map(|_| pixel()).collect()
}

fn check<P: Value, C: Column>(shape: Shape, threshold: P, image: &[P]) {
    let (offsets, columns, values, bad) = brute_force(shape, threshold, image);
    let csr_bytes = 4 * offsets.len() + values.len() * (C::BYTES + P::BYTES);
    let dense = csr_bytes >= image.len() * P::BYTES;
    let mask = mask(threshold, image);
    for simd in Simd::all() {
        let mut compressor = CsrCompressor::<P, C>::new(simd, shape, threshold).unwrap();
        for masked in [false, true] {
            let result = if masked {
                compressor.compress_masked(image, &mask, bad).unwrap()
            } else {
                compressor.compress(image).unwrap()
            };
            let Compressed::Sparse(csr) = result else {
                assert!(
                    dense,
                    "{simd:?}, {shape}: {} of {}",
                    values.len(),
                    image.len()
                );
                continue;
            };
            assert!(
                !dense,
                "{simd:?}, {shape}: {} of {}",
                values.len(),
                image.len()
            );
            assert_eq!(csr.row_offsets(), offsets, "{simd:?}, {shape}");
            assert!(
                csr.columns()
                    .iter()
                    .map(|c| c.number())
                    .eq(columns.iter().copied())
            );
            assert!(
                csr.values()
                    .iter()
                    .map(|v| v.bits())
                    .eq(values.iter().copied())
            );
            assert_eq!((csr.bad(), csr.shape()), (bad, shape));
            check_record(csr, image, threshold);
        }
    }
}

/// The image comes back, and so does its record.
fn check_record<P: Value, C: Column>(csr: &CsrImage<P, C>, image: &[P], threshold: P) {
    let expected: Vec<u32> = image
        .iter()
        .map(|&pixel| if pixel >= threshold { pixel.bits() } else { 0 })
        .collect();
    let mut expanded = vec![P::SATURATED; image.len()];
    csr.expand(&mut expanded).unwrap();
    assert!(
        expanded
            .iter()
            .map(|v| v.bits())
            .eq(expected.iter().copied())
    );
    let mut bytes = vec![0xEE; 3];
    csr.encode(1 << 40, &mut bytes);
    assert_eq!(bytes.len(), 3 + csr.record_len());
    bytes.extend([1, 2, 3]);
    let (record, behind) = SparseRecord::parse(&bytes[3..]).unwrap();
    assert_eq!(behind, [1, 2, 3]);
    assert_eq!((record.number(), record.shape()), (1 << 40, csr.shape()));
    assert_eq!((record.bad(), record.is_dense()), (csr.bad(), false));
    assert_eq!(record.threshold::<P>(), Ok(threshold));
    let mut expanded = vec![P::SATURATED; image.len()];
    record.expand(&mut expanded).unwrap();
    assert!(expanded.iter().map(|v| v.bits()).eq(expected));
}

#[test]
fn images_of_awkward_shapes_are_those_of_brute_force() {
    let shapes = [
        (1, 200),
        (200, 1),
        (3, 63),
        (3, 64),
        (5, 65),
        (7, 127),
        (4, 128),
        (40, 400),
        (17, 1030),
        (9, 1024),
        (2, 4150),
    ];
    for (n, (rows, columns)) in shapes.into_iter().enumerate() {
        let shape = Shape { rows, columns };
        for (m, occupancy) in [0.0, 0.001, 0.01, 0.1, 0.3, 0.45, 0.6, 1.0]
            .into_iter()
            .enumerate()
        {
            let seed = (100 * n + m) as u64;
            for threshold in [1i16, 900, -1] {
                let image = image(shape, occupancy, |n| n as i16, seed);
                check::<i16, u16>(shape, threshold, &image);
            }
            let ints = image(shape, occupancy, |n| 1000 * i32::from(n), seed);
            check::<i32, u16>(shape, 1, &ints);
            check::<i32, u32>(shape, 500_000, &ints);
            let floats = image(shape, occupancy, |n| f32::from(n) * 0.37, seed);
            check::<f32, u16>(shape, 0.25, &floats);
            check::<f32, u32>(shape, 300.0, &floats);
        }
    }
}

#[test]
fn one_pixel_more_than_the_limit_is_dense() {
    let shape = Shape {
        rows: 10,
        columns: 100,
    };
    let mut compressor = CsrCompressor::<i16>::new(Simd::best(), shape, 1).unwrap();
    // 2000 bytes, and 44 of offsets: 4 bytes for each of 488 pixels are fewer, and for 489 as many.
    assert_eq!(compressor.limit(), Some(488));
    for (pixels, sparse) in [
        (487, true),
        (488, true),
        (489, false),
        (1000, false),
        (0, true),
    ] {
        let image: Vec<i16> = (0..1000).map(|n| i16::from(n < pixels)).collect();
        let result = compressor.compress(&image).unwrap();
        assert_eq!(matches!(result, Compressed::Sparse(_)), sparse, "{pixels}");
    }
    // A row is shorter than its offset.
    let shape = Shape {
        rows: 100,
        columns: 2,
    };
    let mut compressor = CsrCompressor::<i16>::new(Simd::best(), shape, 1).unwrap();
    assert_eq!(compressor.limit(), None);
    assert!(matches!(
        compressor.compress(&[0; 200]).unwrap(),
        Compressed::Dense
    ));
}

#[test]
fn bad_configurations_and_images_are_refused() {
    let new = |rows, columns, threshold| {
        CsrCompressor::<i16>::new(Simd::best(), Shape { rows, columns }, threshold).unwrap_err()
    };
    assert!(matches!(new(0, 5, 1), SparseError::Shape(_)));
    assert!(matches!(new(5, 0, 1), SparseError::Shape(_)));
    assert!(matches!(new(1 << 20, 1 << 12, 1), SparseError::Shape(_)));
    assert!(matches!(new(usize::MAX, 3, 1), SparseError::Shape(_)));
    assert_eq!(
        new(1, 65_537, 1),
        SparseError::Columns {
            columns: 65_537,
            max: 65_536
        }
    );
    assert!(matches!(new(5, 5, i16::BAD), SparseError::Threshold(_)));
    assert!(matches!(
        new(5, 5, i16::SATURATED),
        SparseError::Threshold(_)
    ));
    let shape = Shape {
        rows: 8,
        columns: 10,
    };
    assert!(CsrCompressor::<f32>::new(Simd::best(), shape, f32::NAN).is_err());
    let mut compressor = CsrCompressor::<i16>::new(Simd::best(), shape, 1).unwrap();
    let length = |what, len, expected| {
        Some(SparseError::Length {
            what,
            len,
            expected,
        })
    };
    assert_eq!(compressor.compress(&[0; 79]).err(), length("image", 79, 80));
    let mask = compressor.compress_masked(&[0; 80], &[0; 1], 0).err();
    assert_eq!(mask, length("mask", 1, 2));
    let Ok(Compressed::Sparse(csr)) = compressor.compress(&[0; 80]) else {
        panic!("an empty image is sparse");
    };
    assert_eq!(csr.expand(&mut [0; 81]).err(), length("image", 81, 80));
}

fn example() -> CsrCompressor<i16> {
    CsrCompressor::new(
        Simd::best(),
        Shape {
            rows: 3,
            columns: 8,
        },
        2,
    )
    .unwrap()
}

#[rustfmt::skip]
const EXAMPLE: [i16; 24] = [
    0, 1, 5, 0, i16::BAD, 0, 0, 2,
    0, 0, 0, 0, 0, 0, 0, 0,
    i16::SATURATED, 0, -1, 0, i16::BAD, 1, 0, 0,
];

/// The bytes of a fenced `hex` block of the format's page.
fn documented(number: usize) -> Vec<u8> {
    let page = include_str!("../../../../docs/formats/sparse-image.md");
    let block = page
        .split("```hex")
        .nth(number)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    block
        .lines()
        .flat_map(|line| line.split('#').next().unwrap().split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

#[test]
fn the_documented_examples_are_what_is_written_and_read() {
    let bytes = documented(1);
    let mut compressor = example();
    let Ok(Compressed::Sparse(csr)) = compressor.compress(&EXAMPLE) else {
        panic!("the example is sparse");
    };
    let mut written = Vec::new();
    csr.encode(1234, &mut written);
    assert_eq!(written, bytes);
    let (record, behind) = SparseRecord::parse(&bytes).unwrap();
    assert!(behind.is_empty());
    assert_eq!((record.number(), record.bad()), (1234, 2));
    let pixels: Vec<_> = record.pixels::<i16>().unwrap().collect();
    assert_eq!(pixels, [(0, 2, 5), (0, 7, 2), (2, 0, i16::SATURATED)]);
    assert_eq!(record.pixels::<f32>().err(), Some(SparseError::Type(1)));
    assert_eq!(record.threshold::<i32>(), Err(SparseError::Type(1)));

    let bytes = documented(2);
    let mut written = Vec::new();
    let shape = Shape {
        rows: 1,
        columns: 3,
    };
    let image = [1.5, f32::BAD, f32::SATURATED];
    encode_dense(1235, shape, 0.5, &image, &mut written).unwrap();
    assert_eq!(written, bytes);
    let (record, _) = SparseRecord::parse(&bytes).unwrap();
    assert_eq!((record.is_dense(), record.bad()), (true, 1));
    let mut expanded = [0.0; 3];
    record.expand(&mut expanded).unwrap();
    assert_eq!(expanded.map(f32::to_bits), image.map(f32::to_bits));
    assert!(encode_dense(0, shape, 0.5, &image[1..], &mut written).is_err());
}

#[test]
fn every_truncation_and_every_invalid_field_is_refused() {
    let bytes = documented(1);
    for len in 0..bytes.len() {
        let error = SparseRecord::parse(&bytes[..len]).unwrap_err();
        assert!(
            matches!(error, SparseError::Truncated { .. }),
            "{len}: {error}"
        );
    }
    for (at, value, name) in [
        (0, 0x51, "magic"),
        (4, 2, "version"),
        (5, 0, "value type"),
        (5, 4, "value type"),
        (6, 1, "column length"),
        (7, 1, "reserved byte"),
        (16, 0, "number of pixels"),
        (19, 0x40, "number of pixels"),
        (24, 23, "number of stored pixels"),
        (28, 22, "number of stored pixels"),
        (36, 1, "reserved word"),
        (40, 1, "first row offset"),
        (44, 4, "row offset"),
        (48, 1, "row offset"),
        (52, 2, "last row offset"),
        (56, 7, "column"),
        (58, 8, "column"),
        (59, 1, "column"),
        (62, 1, "padding"),
        (70, 1, "padding"),
    ] {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        match SparseRecord::parse(&bytes) {
            Err(SparseError::Field { field, .. }) => assert_eq!(field, name, "byte {at}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
    // The longest image: its length is computed without overflow.
    let mut bytes = bytes;
    bytes[16..28].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xF0]);
    assert!(matches!(
        SparseRecord::parse(&bytes),
        Err(SparseError::Truncated { .. })
    ));
    let mut dense = documented(2);
    dense[24] = 2;
    assert!(matches!(
        SparseRecord::parse(&dense),
        Err(SparseError::Field { .. })
    ));
}

proptest! {
    #[test]
    fn changed_records_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        random in prop::collection::vec(any::<u8>(), 0..200),
        dense in any::<bool>(),
    ) {
        let _ = SparseRecord::parse(&random);
        let mut bytes = documented(1 + usize::from(dense));
        for (at, value) in changes {
            *at.get_mut(&mut bytes) = value;
        }
        if let Ok((record, _)) = SparseRecord::parse(&bytes)
            && let Ok(pixels) = record.pixels::<i16>()
        {
            for (row, column, _) in pixels {
                prop_assert!(row < record.shape().rows && column < record.shape().columns);
            }
        }
    }

    #[test]
    fn any_image_is_that_of_brute_force(
        (rows, columns) in (1usize..12, 1usize..300),
        occupancy in 0.0..1.0f64,
        seed in any::<u64>(),
    ) {
        let shape = Shape { rows, columns };
        let image = image(shape, occupancy * occupancy, |n| n as i16, seed);
        check::<i16, u16>(shape, 3, &image);
    }
}

#[test]
fn real_frames_are_those_of_brute_force() {
    let data = std::env::var_os("POLLUX_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        Into::into,
    );
    for n in 0..4 {
        let Ok(bytes) = std::fs::read(data.join(format!("jungfrau/mod5_conv{n}.bin"))) else {
            println!("skipped: no recorded data at {}", data.display());
            return;
        };
        let mut image = vec![0.0f32; bytes.len() / 4];
        f32::load(&bytes, &mut image);
        let shape = Shape::JUNGFRAU_MODULE;
        // Half of the pixels, one in eight, few.
        for threshold in [1.0, 3.0, 20.0] {
            check::<f32, u16>(shape, threshold, &image);
            let rounded: Vec<i16> = image.iter().map(|photons| photons.round() as i16).collect();
            check::<i16, u16>(shape, threshold as i16, &rounded);
        }
    }
}
