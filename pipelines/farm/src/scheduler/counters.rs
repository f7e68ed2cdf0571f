//! Counters of a scheduler, each of one cause.

/// Triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriggerCounts {
    /// Became events.
    pub taken: u64,
    /// Refused: as many MEPs as may wait did wait for a free receive buffer.
    pub pending_full: u64,
    /// Refused: as many MEPs were undecided as the feeders have buffers for.
    pub in_flight_full: u64,
    /// Refused: triggers are disabled, or come from a source that is not selected.
    pub disabled: u64,
    /// Did not arrive, by the numbers of the source.
    pub missing: u64,
    /// Arrived again, and were not taken twice.
    pub repeated: u64,
}

/// Flow control messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Sent into the ring, further rounds and repetitions not counted.
    pub sent: u64,
    /// Returned as they were sent, from feeders that have all transferred. Without flow control,
    /// each feeder returns one; with credits none returns.
    pub returned: u64,
    /// Sent for another round, because busy feeders had passed them on.
    pub loops: u64,
    /// Sent again after a time-out.
    pub resent: u64,
    /// Did not return in time.
    pub timeouts: u64,
    /// Did not return, though their events were built.
    pub unreturned: u64,
    /// Returned after they had been given up or sent again.
    pub stale: u64,
    /// Returned otherwise than they were sent (thesis, register 6).
    pub errors: u64,
}

/// Feedback of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedbackCounts {
    /// Registered a receive buffer.
    pub registered: u64,
    /// Released a receive buffer.
    pub released: u64,
    /// Named a buffer that was free already.
    pub repeated: u64,
    /// Named a buffer that has been assigned again since.
    pub stale: u64,
    /// Named an event that the buffer was not assigned.
    pub foreign: u64,
    /// Named a buffer that the farm does not have.
    pub out_of_range: u64,
    /// Named another column than that of the node.
    pub wrong_column: u64,
    /// Came from an excluded node.
    pub excluded: u64,
}

/// Requests for the second part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoreCounts {
    /// Sent.
    pub taken: u64,
    /// Came again, or too late.
    pub repeated: u64,
    /// Named an event that the buffer was not assigned.
    pub foreign: u64,
}

/// Exclusions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExclusionCounts {
    /// Nodes that were silent.
    pub silent_nodes: u64,
    /// Nodes that did not finish an event in time, though all fragments were sent.
    pub overdue_nodes: u64,
    /// Nodes that released the buffer of an event without a decision on it.
    pub undecided_nodes: u64,
    /// Feeders that were silent.
    pub silent_feeders: u64,
    /// On command.
    pub commanded: u64,
    /// Members that were silent or late, were heard again, and readmitted.
    pub returned: u64,
    /// MEPs of excluded nodes that were given to others.
    pub reassigned: u64,
}

/// Counters of a scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Triggers.
    pub triggers: TriggerCounts,
    /// Flow control messages.
    pub flow: FlowCounts,
    /// Feedback of nodes.
    pub feedback: FeedbackCounts,
    /// Requests for the second part.
    pub more: MoreCounts,
    /// Exclusions.
    pub exclusions: ExclusionCounts,
    /// MEPs that were given to a receive buffer.
    pub dispatched: u64,
    /// MEPs that followed another to the same column, though there were several.
    pub columns_repeated: u64,
    /// Most MEPs that waited at a time.
    pub pending_peak: u64,
    /// Messages of another run.
    pub other_run: u64,
    /// Messages that are not for a scheduler, or from members that the farm does not have.
    pub unexpected: u64,
    /// Time-outs of events while the result node was silent: no node is to blame.
    pub results_silent: u64,
    /// Time-outs of events while one of their feeders was silent: no node is to blame.
    pub feeders_silent: u64,
    /// Time-outs of events whose node finished others in the meantime, or was silent itself.
    pub nodes_excused: u64,
    /// Decisions on MEPs that were never sent.
    pub decided_foreign: u64,
}
