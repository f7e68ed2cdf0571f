//! Images of a detector: the program `image-stream` as a library.
//!
//! | item | what |
//! | --- | --- |
//! | [`program`] | the command line |
//! | `run` | a run: receives, processes and writes images |
//! | `control` | runs that a manager starts and stops |
//! | `manage` | the manager of a source and its receivers |
//! | `offline` | each stage on files, without a detector |
//! | [`ImageRecord`], [`Found`], [`Pixels`], [`Dense`], [`Sparse`] | an image to be handed to an output |
//! | [`ImageFacts`], [`LossMap`] | facts about it |
//! | [`Detector`] | the detector and its beam |
//! | `nexus` | image files (feature `hdf5`): docs/formats/image-file.md |
//! | [`live`] | live stream: docs/formats/live-stream.md |

// The modules are private: `pub` in them means the crate, and the API consists of the re-exports
// here.
#![allow(unreachable_pub)]

mod cli;
mod config;
mod control;
mod detector;
mod image;
pub mod live;
mod manage;
#[cfg(feature = "hdf5")]
pub mod nexus;
mod offline;
pub mod program;
mod run;

pub use detector::{Detector, DetectorError, LossLayout};
pub use image::{
    Dense, Found, ImageFacts, ImageRecord, LossMap, MAX_LOSS_WORDS, PixelError, PixelType, Pixels,
    Sparse,
};
