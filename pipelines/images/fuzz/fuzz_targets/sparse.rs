//! Arbitrary bytes as sparse records: what is read has its pixels in order and within the image, in each
//! type of value. Arbitrary images are compressed, written as records, read and expanded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_images::Shape;
use pollux_images::sparse::{
    Compressed, CsrCompressor, SparseError, SparseRecord, Value, encode_dense,
};
use pollux_pipelines::simd::Simd;

/// Largest image that is expanded.
const PIXELS: usize = 1 << 16;

/// The pixels of a record in one type of value.
fn read<P: Value>(record: &SparseRecord) -> Result<(), SparseError> {
    let shape = record.shape();
    let mut next = 0;
    for (row, column, _) in record.pixels::<P>()? {
        assert!(row < shape.rows && column < shape.columns);
        let place = row * shape.columns + column;
        assert!(place >= next, "pixels are in the order of their places");
        next = place + 1;
    }
    let pixels = shape.pixels();
    if pixels <= PIXELS {
        let mut image = vec![P::from_bits(0); pixels];
        record.expand(&mut image)?;
        assert!(record.expand(&mut image[1..]).is_err());
    }
    record.threshold::<P>().map(drop)
}

fn records(mut data: &[u8]) {
    while let Ok((record, behind)) = SparseRecord::parse(data) {
        assert!(behind.len() < data.len());
        let types = [
            read::<i16>(&record),
            read::<i32>(&record),
            read::<f32>(&record),
        ];
        assert_eq!(types.iter().filter(|read| read.is_ok()).count(), 1);
        assert!(record.bad() as usize <= record.shape().pixels());
        data = behind;
    }
}

fn bits<P: Value>(pixels: &[P]) -> Vec<u32> {
    pixels.iter().map(|pixel| pixel.bits()).collect()
}

/// The image of a record is that which was compressed, without the pixels below the threshold and the bad
/// ones. Every set of instructions makes the same record.
fn images<P: Value>(shape: Shape, image: &[P], threshold: P) {
    let mut first = None;
    for simd in Simd::all() {
        let Ok(mut compressor) = CsrCompressor::<P>::new(simd, shape, threshold) else {
            assert!(!threshold.is_valid(), "columns fit 16 bits");
            return;
        };
        let (mut bytes, mut expanded) = (Vec::new(), vec![P::from_bits(0); image.len()]);
        let is_dense = match compressor.compress(image).expect("the shape") {
            Compressed::Sparse(csr) => {
                csr.encode(7, &mut bytes);
                assert_eq!(bytes.len(), csr.record_len());
                csr.expand(&mut expanded).expect("the shape");
                false
            }
            Compressed::Dense => {
                encode_dense(7, shape, threshold, image, &mut bytes).expect("the shape");
                true
            }
        };
        let (record, behind) = SparseRecord::parse(&bytes).expect("our own record");
        assert!(behind.is_empty() && record.number() == 7 && record.is_dense() == is_dense);
        let mut read = vec![P::from_bits(0); image.len()];
        record.expand(&mut read).expect("the shape");
        for (n, &pixel) in image.iter().enumerate() {
            let stored =
                is_dense || pixel >= threshold && (pixel.is_valid() || pixel == P::SATURATED);
            let expected = if stored { pixel } else { P::from_bits(0) };
            assert_eq!(read[n].bits(), expected.bits(), "pixel {n}");
        }
        assert!(is_dense || bits(&read) == bits(&expanded));
        assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes);
    }
}

fuzz_target!(|data: &[u8]| {
    records(data);
    let Some((&[rows, columns, low, high], data)) = data.split_first_chunk() else {
        return;
    };
    let shape = Shape {
        rows: usize::from(rows % 16) + 1,
        columns: usize::from(columns) + 1,
    };
    let level = i16::from_le_bytes([low, high]);
    // The bytes, and behind them an empty image.
    let value = |n: usize| data.get(n).copied().unwrap_or_default();
    let pixel = |n: usize| i16::from_le_bytes([value(2 * n), value(2 * n + 1)]);
    let short: Vec<i16> = (0..shape.pixels()).map(pixel).collect();
    images(shape, &short, level);
    let long: Vec<i32> = short.iter().map(|&pixel| i32::from(pixel) << 9).collect();
    images(shape, &long, i32::from(level));
    let float = |n: usize| {
        let bytes = std::array::from_fn(|byte| value(4 * n + byte));
        f32::from_bits(u32::from_le_bytes(bytes))
    };
    let floats: Vec<f32> = (0..shape.pixels()).map(float).collect();
    images(shape, &floats, f32::from(level));
});
