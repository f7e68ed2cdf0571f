//! Detector formats, processing stages and the runtime that chains them.

pub mod formats;
pub mod rich;
