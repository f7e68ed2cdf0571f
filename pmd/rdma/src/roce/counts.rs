//! Counters of an endpoint.

use std::sync::Arc;

use pollux_pmd::Count;

#[derive(Default)]
struct Cells {
    sent: Count,
    requests: Count,
    repeated: Count,
    not_ready: Count,
    timeouts: Count,
    marked: Count,
    notified: Count,
    missed: Count,
}

/// Counters, and the right to write them.
#[derive(Default)]
pub(super) struct Counts(Arc<Cells>);

/// What an endpoint has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoceCounts {
    /// Packets sent, of all kinds.
    pub sent: u64,
    /// Packets of requests among them.
    pub requests: u64,
    /// Packets of requests that were sent before: [`requests`](Self::requests) over the difference to it
    /// is what was sent for what was needed.
    pub retransmitted: u64,
    /// Requests that the peer was not ready for.
    pub not_ready: u64,
    /// Times that an acknowledgement did not come in time.
    pub timeouts: u64,
    /// Received packets with a congestion mark.
    pub marked: u64,
    /// Congestion notifications received.
    pub notified: u64,
    /// Packets of unreliable connections that sequence numbers say were missed.
    pub missed: u64,
}

/// A reader of the counters of an endpoint.
#[derive(Clone)]
pub struct RoceCountsView(Arc<Cells>);

impl RoceCountsView {
    /// The counters now.
    #[must_use]
    pub fn get(&self) -> RoceCounts {
        let cells = &*self.0;
        RoceCounts {
            sent: cells.sent.get(),
            requests: cells.requests.get(),
            retransmitted: cells.repeated.get(),
            not_ready: cells.not_ready.get(),
            timeouts: cells.timeouts.get(),
            marked: cells.marked.get(),
            notified: cells.notified.get(),
            missed: cells.missed.get(),
        }
    }
}

impl Counts {
    pub(super) fn view(&self) -> RoceCountsView {
        RoceCountsView(Arc::clone(&self.0))
    }

    #[inline]
    pub(super) fn sent(&mut self) {
        self.0.sent.add(1);
    }

    #[inline]
    pub(super) fn request(&mut self, is_repeated: bool) {
        self.0.requests.add(1);
        self.0.repeated.add(u64::from(is_repeated));
    }

    pub(super) fn not_ready(&mut self) {
        self.0.not_ready.add(1);
    }

    pub(super) fn timeout(&mut self) {
        self.0.timeouts.add(1);
    }

    pub(super) fn marked(&mut self) {
        self.0.marked.add(1);
    }

    pub(super) fn notified(&mut self) {
        self.0.notified.add(1);
    }

    pub(super) fn missed(&mut self, packets: u32) {
        self.0.missed.add(u64::from(packets));
    }
}
