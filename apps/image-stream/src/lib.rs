//! Images of a detector: the program `image-stream` as a library.

mod manage;
pub mod program;
