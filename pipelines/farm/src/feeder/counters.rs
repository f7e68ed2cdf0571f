//! Counters of a feeder.

/// Counters of a feeder, each of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transfers (thesis, register TAGS). Those of all feeders are equal at the end of a run
    /// without faults.
    pub transfers: u64,
    /// Events in them.
    pub events: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Events without data in the store.
    pub absent: u64,
    /// Events whose data are larger than their part of a slot.
    pub oversize: u64,
    /// Messages that were passed on while a long transfer ran.
    pub bypassed: u64,
    /// Messages that were passed on, and requests that were not answered, because data were not
    /// there yet.
    pub early: u64,
    /// Requests of nodes that were taken (policy `credits`).
    pub requests: u64,
    /// Messages that tell what is decided, without an event.
    pub releases: u64,
    /// Messages that arrived again, and requests while one like them waited.
    pub repeated: u64,
    /// Messages of an attempt that has been given up.
    pub stale: u64,
    /// Messages of events that were decided before.
    pub decided: u64,
    /// Messages for other feeders, which were passed on, and requests to them.
    pub not_pending: u64,
    /// Messages that found the queue full.
    pub queue_full: u64,
    /// Messages with a receive buffer that the farm does not have.
    pub out_of_range: u64,
    /// Messages of another run.
    pub other_run: u64,
    /// Messages that are not for a feeder.
    pub unexpected: u64,
}
