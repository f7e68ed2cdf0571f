//! Compresses images in files, for others' software to judge (`scripts/lib/images/judge_compression.py`).
//!
//! `compress_files DIR`: of each `NAME.TYPE.ROWSxCOLUMNS.raw` in DIR, where TYPE is `i16`, `i32` or
//! `f32`, the sparse record with a threshold of 2 photons is written as `.sparse`, and the chunk of
//! bitshuffle and LZ4 as `.bslz4`. A chunk by others in `.reference.bslz4` is decompressed to `.back`.

use std::error::Error;
use std::fs;
use std::path::Path;

use pollux_images::Shape;
use pollux_images::bitshuffle::Bitshuffle;
use pollux_images::sparse::{Compressed, CsrCompressor, Value, encode_dense};
use pollux_pipelines::simd::Simd;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("no folder: give one")?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let fields: Vec<&str> = name.unwrap_or_default().split('.').collect();
        let [_, pixel, shape, "raw"] = fields[..] else {
            continue;
        };
        let (rows, columns) = shape.split_once('x').ok_or("no shape in a name")?;
        let shape = Shape {
            rows: rows.parse()?,
            columns: columns.parse()?,
        };
        let bytes = fs::read(&path)?;
        match pixel {
            "i16" => sparse(&path, shape, 2i16, &bytes)?,
            "i32" => sparse(&path, shape, 2i32, &bytes)?,
            "f32" => sparse(&path, shape, 2f32, &bytes)?,
            other => return Err(format!("no pixels of type {other}: use i16, i32 or f32").into()),
        }
        chunk(&path, if pixel == "i16" { 2 } else { 4 }, &bytes)?;
    }
    Ok(())
}

fn sparse<P: Value>(
    path: &Path,
    shape: Shape,
    threshold: P,
    bytes: &[u8],
) -> Result<(), Box<dyn Error>> {
    let mut image = vec![P::from_bits(0); bytes.len() / P::BYTES];
    P::load(bytes, &mut image);
    let mut record = Vec::new();
    let mut compressor = CsrCompressor::<P>::new(Simd::best(), shape, threshold)?;
    match compressor.compress(&image)? {
        Compressed::Sparse(csr) => csr.encode(0, &mut record),
        Compressed::Dense => encode_dense(0, shape, threshold, &image, &mut record)?,
    }
    fs::write(path.with_extension("sparse"), record)?;
    Ok(())
}

fn chunk(path: &Path, pixel_size: usize, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut codec = Bitshuffle::new(Simd::best(), pixel_size)?;
    let mut chunk = vec![0; codec.max_len(bytes.len())];
    let len = codec.compress_chunk(bytes, &mut chunk)?;
    fs::write(path.with_extension("bslz4"), &chunk[..len])?;
    if let Ok(reference) = fs::read(path.with_extension("reference.bslz4")) {
        let mut back = vec![0; bytes.len()];
        let len = codec.decompress_chunk(&reference, &mut back)?;
        fs::write(path.with_extension("back"), &back[..len])?;
    }
    Ok(())
}
