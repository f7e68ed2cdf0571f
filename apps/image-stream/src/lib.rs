//! Images of a detector as outputs of a run: files in HDF5, and a live stream.
//!
//! | item | what |
//! | --- | --- |
//! | [`ImageRecord`], [`Pixels`], [`Dense`], [`Sparse`] | an image to be handed to an output |
//! | [`ImageFacts`], [`LossMap`] | facts about it |
//! | [`Detector`] | the detector and its beam |
//! | `nexus` | image files (feature `hdf5`): docs/formats/image-file.md |
//! | [`live`] | live stream: docs/formats/live-stream.md |

mod detector;
mod image;
pub mod live;
#[cfg(feature = "hdf5")]
pub mod nexus;

pub use detector::{Detector, DetectorError, LossLayout};
pub use image::{
    Dense, ImageFacts, ImageRecord, LossMap, MAX_LOSS_WORDS, PixelError, PixelType, Pixels, Sparse,
};
