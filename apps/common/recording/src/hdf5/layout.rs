//! Constants of the layout: versions, flags, units (docs/formats/recording.md).

/// Version of the layout, in the attribute `pollux_version` of the root. It grows with every change
/// that a reader could notice. Version 1 has neither the bit of late decisions nor the rules.
/// Version 2 has no bits of truncated and disputed events, and marks events complete that lack
/// hits. Version 4 belongs to runs with a number, and stores the bursts of events.
pub(super) const VERSION: u32 = 4;

/// Version of files of runs without a number.
pub(super) const WITHOUT_RUN: u32 = 3;

/// Attribute of the group of events: how many of them are whole. Files of earlier programs lack it.
pub(super) const EVENTS_WRITTEN: &str = "events_written";

/// Bits of an event's flags.
pub(super) mod flag {
    pub(in crate::hdf5) const ACCEPTED: u8 = 1;
    pub(in crate::hdf5) const COMPLETE: u8 = 1 << 1;
    pub(in crate::hdf5) const LATE: u8 = 1 << 2;
    pub(in crate::hdf5) const MONITORED: u8 = 1 << 3;
    pub(in crate::hdf5) const TRUNCATED: u8 = 1 << 4;
    pub(in crate::hdf5) const DISPUTED: u8 = 1 << 5;
}

/// Unit of a hit's time in ns, 25/256 ns: a power of two times 25, so no value is rounded.
pub(super) const FINE_NS: f32 = 25.0 / 256.0;
