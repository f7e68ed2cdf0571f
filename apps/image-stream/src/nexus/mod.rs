//! Image files: HDF5 with the names of NeXus, written chunk by chunk as the images come
//! (docs/formats/image-file.md).
//!
//! | item | what |
//! | --- | --- |
//! | [`Recorder`] | a thread that writes the images which are pushed into its [`FileQueue`] |
//! | [`Writer`] | one file |
//! | [`FileInfo`] | what is written about the run and the detector |
//!
//! A dense image is one chunk, which is written as it is (`H5Dwrite_chunk`): no filter runs, and
//! nothing is copied. The file is in the single-writer, multiple-reader (SWMR) mode of HDF5, in which
//! the library orders what it writes: at every moment, and after a `kill -9`, a reader finds all images
//! of the last flush.

mod chunk;
mod column;
mod error;
mod facts;
mod findings;
mod info;
mod recorder;
mod rows;
mod sparse;
mod writer;

pub use error::FileError;
pub use findings::FindingsInfo;
pub use info::{Compression, FileInfo};
pub use recorder::{FileCounts, FileQueue, Recorder, RecorderConfig, Summary};
pub use writer::Writer;

#[cfg(test)]
mod tests;
