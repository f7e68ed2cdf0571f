//! `image-stream compress`: images of photons to sparse or losslessly compressed ones.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use pollux_app::{Failure, Overwrite, print_with};
use pollux_images::bitshuffle::Bitshuffle;
use pollux_images::convert::Output;
use pollux_images::sparse::{Compressed, CsrCompressor, Value, encode_dense};
use pollux_images::{Pixel, Shape};
use pollux_pipelines::simd::Simd;
use zerocopy::{Immutable, IntoBytes};

use super::files;

/// Compress images
///
/// Images are 32-bit floating point numbers, little endian, without a header, as `image-stream
/// convert` writes them; NaN is a bad pixel, infinity a saturated one.
///
/// sparse: records of docs/formats/sparse-image.md with the pixels at or above --threshold (suffix
/// .csr); an image that would become longer stays dense in its record. bitshuffle-lz4: the bytes of a
/// chunk of HDF5's filter 32008, with its header of 12 bytes (suffix .bslz4); without loss.
///
/// Examples:
///   image-stream compress photons/*.f32 --method sparse --threshold 1 --out sparse
///   image-stream compress photons/*.f32 --pixels i16 --out compressed
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit status: 0, 1 when a file cannot be read or written, 2 on a wrong option or file."
)]
pub struct Args {
    /// Images
    #[arg(value_name = "FILE", required = true)]
    images: Vec<PathBuf>,

    /// How
    #[arg(long, value_enum, default_value_t = Method::BitshuffleLz4)]
    method: Method,

    /// Photons from which on a pixel is stored, for --method sparse
    #[arg(long, value_name = "PHOTONS", required_if_eq("method", "sparse"))]
    threshold: Option<f32>,

    /// Type of the pixels in the result: integers are rounded
    #[arg(long, value_enum, default_value_t = PixelType::F32)]
    pixels: PixelType,

    /// Folder of the results; created if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Rows and columns of the images
    #[arg(long, value_name = "ROWSxCOLUMNS", default_value = "512x1024", value_parser = files::shape)]
    shape: Shape,

    #[command(flatten)]
    overwrite: Overwrite,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    BitshuffleLz4,
    Sparse,
}

#[derive(Clone, Copy, ValueEnum)]
enum PixelType {
    I16,
    I32,
    F32,
}

/// Runs the sub-command.
///
/// # Errors
/// Files that cannot be read or written, or a threshold that is refused.
pub fn run(args: &Args) -> Result<(), Failure> {
    match args.pixels {
        PixelType::I16 => compress::<i16>(args),
        PixelType::I32 => compress::<i32>(args),
        PixelType::F32 => compress::<f32>(args),
    }
}

fn compress<P: Output + Value + IntoBytes + Immutable>(args: &Args) -> Result<(), Failure> {
    let suffix = match args.method {
        Method::Sparse => ".csr",
        Method::BitshuffleLz4 => ".bslz4",
    };
    if let Some(photons) = args.threshold.filter(|photons| !photons.is_finite()) {
        let error = anyhow!("--threshold {photons}: give a number of photons");
        return Err(Failure::Usage(error));
    }
    let threshold = P::threshold(args.threshold.unwrap_or_default());
    let mut sparse = match (args.method, args.threshold) {
        (Method::Sparse, _) => {
            let compressor = CsrCompressor::<P>::new(Simd::best(), args.shape, threshold);
            Some(compressor.context("--threshold").map_err(Failure::Usage)?)
        }
        (Method::BitshuffleLz4, None) => None,
        (Method::BitshuffleLz4, Some(_)) => {
            let error = anyhow!("--threshold belongs to --method sparse: leave it out");
            return Err(Failure::Usage(error));
        }
    };
    let mut dense = Bitshuffle::new(Simd::best(), size_of::<P>()).map_err(anyhow::Error::from)?;
    let outputs = files::results(&args.images, Vec::new(), &args.out, suffix, args.overwrite);
    let outputs = outputs.map_err(Failure::Usage)?;
    for (number, (path, output)) in args.images.iter().zip(&outputs).enumerate() {
        let photons: Vec<f32> = files::read("image", path, args.shape)?;
        let image: Vec<P> = photons.into_iter().map(pixel).collect();
        let result = match &mut sparse {
            Some(sparse) => record(sparse, number as u64, args.shape, threshold, &image),
            None => chunk(&mut dense, image.as_bytes()),
        };
        let result = result.with_context(|| path.display().to_string())?;
        output.write(&result)?;
        let (before, after) = (image.as_bytes().len(), result.len());
        let (name, ratio) = (output.path().display(), before as f64 / after as f64);
        print_with(|out| writeln!(out, "{name}: {before} B to {after} B, {ratio:.2} to 1"))?;
    }
    Ok(())
}

/// A number of photons as a pixel of another type.
fn pixel<P: Output>(photons: f32) -> P {
    if photons.is_nan() {
        P::BAD
    } else if photons == f32::INFINITY {
        <P as Pixel>::SATURATED
    } else {
        P::from_photons(photons)
    }
}

/// The record of a sparse image, with its number.
fn record<P: Value>(
    sparse: &mut CsrCompressor<P>,
    number: u64,
    shape: Shape,
    threshold: P,
    image: &[P],
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match sparse.compress(image)? {
        Compressed::Sparse(csr) => csr.encode(number, &mut bytes),
        Compressed::Dense => encode_dense(number, shape, threshold, image, &mut bytes)?,
    }
    Ok(bytes)
}

/// A chunk of bitshuffle and LZ4.
fn chunk(dense: &mut Bitshuffle, image: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = vec![0; dense.max_len(image.len())];
    let len = dense.compress_chunk(image, &mut bytes)?;
    bytes.truncate(len);
    Ok(bytes)
}
