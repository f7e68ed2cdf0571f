//! Counters of a node.

/// Counters of a node, each of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Fragments that were placed.
    pub placed: u64,
    /// Fragments that were announced together with others, and whose payload was not there: they count as
    /// lost on their way.
    pub without_payload: u64,
    /// MEPs that were built.
    pub built: u64,
    /// Of them, those with the fragments of all feeders.
    pub complete: u64,
    /// Events in the MEPs that were built.
    pub events: u64,
    /// MEPs that were decided.
    pub decided: u64,
    /// Second parts that were built.
    pub second: u64,
    /// Fragments that were there already.
    pub repeated: u64,
    /// Acknowledgements of decisions that were acknowledged before.
    pub acks_repeated: u64,
    /// Fragments of MEPs that were built or given up before.
    pub late: u64,
    /// Fragments for a buffer in which an event is still worked on.
    pub busy: u64,
    /// Fragments for buffers of other nodes, or that the farm does not have.
    pub misrouted: u64,
    /// Fragments from feeders that the farm does not have.
    pub no_feeder: u64,
    /// Fragments that differ from others of their MEP in the events or in the feeders.
    pub disagree: u64,
    /// Fragments larger than a slot.
    pub oversize: u64,
    /// Fragments of a second part that was not asked for, and with the policy `credits` those that
    /// the node has not asked for.
    pub unasked: u64,
    /// MEPs that were given to others before they were built.
    pub abandoned: u64,
    /// Fragments that feeders were asked for (policy `credits`), again included.
    pub requested: u64,
    /// Fragments that did not come in time, and that feeders were asked for again.
    pub requested_again: u64,
    /// Assignments that arrived again, or for MEPs that were built or given up before.
    pub assigned_again: u64,
    /// Messages that were sent again.
    pub resent: u64,
    /// Messages of another run.
    pub other_run: u64,
    /// Messages that are not for a node.
    pub unexpected: u64,
}
