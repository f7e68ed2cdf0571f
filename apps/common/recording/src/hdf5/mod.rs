//! Recording of events with hits, in HDF5 (docs/formats/recording.md).

mod column;
mod columns;
mod iso;
mod layout;
mod read;
mod write;

pub use self::read::Recording;
pub use self::write::{About, Ending, Rule, StreamLoss, Writer};

#[cfg(test)]
mod tests;
