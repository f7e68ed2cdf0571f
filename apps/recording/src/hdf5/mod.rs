//! The recording in HDF5 (docs/formats/recording.md).

mod column;
mod iso;
mod read;
mod write;

pub use self::read::Recording;
pub use self::write::{About, Ending, Rule, StreamLoss, Writer};

/// Version of the layout, in the attribute `pollux_version` of the root; grows with every change
/// that a reader could notice. Version 1 has neither the bit of late decisions nor the rules; version 2
/// has no bits of truncated and disputed events, and calls events complete that lack hits; version 4 is
/// of runs with a number, and has the bursts of events.
const VERSION: u32 = 4;

/// The version of files of runs without a number.
const WITHOUT_RUN: u32 = 3;

/// Bits of an event's flags.
mod flag {
    pub(super) const ACCEPTED: u8 = 1;
    pub(super) const COMPLETE: u8 = 1 << 1;
    pub(super) const LATE: u8 = 1 << 2;
    pub(super) const MONITORED: u8 = 1 << 3;
    pub(super) const TRUNCATED: u8 = 1 << 4;
    pub(super) const DISPUTED: u8 = 1 << 5;
}

/// What an error says: what the system had said, if that was the cause, or else the library's words.
pub(crate) fn told(error: &hdf5_metno::Error) -> String {
    const SYSTEM: &str = "error message = '";
    let text = error.to_string();
    let system = text
        .split_once(SYSTEM)
        .and_then(|(_, rest)| rest.split_once('\''));
    match system {
        // The library locks a file that is open for writing (H5Fopen).
        Some(("Resource temporarily unavailable", _)) => {
            "it is being written: look again when the run has ended".into()
        }
        Some((message, _)) => message.into(),
        None => text,
    }
}

/// A unit of a hit's time, 25/256 ns, in ns: a power of two times 25, so nothing is rounded.
const FINE_NS: f32 = 25.0 / 256.0;

#[cfg(test)]
mod tests;
