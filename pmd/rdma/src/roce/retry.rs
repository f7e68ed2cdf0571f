//! Times and retries of a requester: acknowledgements that do not come, and responders that are not ready.

use pollux_mempool::time::Ns;

/// Timers and counters of a requester.
#[derive(Default)]
pub(super) struct Retries {
    /// When the acknowledgement is overdue.
    deadline: Option<Ns>,
    /// Until when the requester waits for a responder that was not ready.
    ready_at: Option<Ns>,
    /// Repetitions without progress.
    repeated: u8,
    not_ready: u8,
    /// The responder has been asked again since the last progress, because of a gap in its responses.
    pub(super) is_gap_asked: bool,
}

impl Retries {
    /// Starts the time of an acknowledgement, unless it runs.
    #[inline]
    pub(super) fn arm(&mut self, now: Ns, timeout: Option<Ns>) {
        if let (None, Some(timeout)) = (self.deadline, timeout) {
            self.deadline = Some(Ns(now.0.saturating_add(timeout.0)));
        }
    }

    /// An acknowledgement came: the time starts again for what is still in flight.
    #[inline]
    pub(super) fn progress(&mut self, now: Ns, timeout: Option<Ns>, is_in_flight: bool) {
        *self = Self::default();
        if is_in_flight {
            self.arm(now, timeout);
        }
    }

    /// Whether the requester waits for a responder that was not ready.
    #[inline]
    pub(super) fn is_waiting(&mut self, now: Ns) -> bool {
        if self.ready_at.is_some_and(|at| at <= now) {
            self.ready_at = None;
        }
        self.ready_at.is_some()
    }

    /// Whether the acknowledgement is overdue; if so the time has to be started again.
    #[inline]
    pub(super) fn is_overdue(&mut self, now: Ns) -> bool {
        let is_overdue = self.deadline.is_some_and(|deadline| deadline <= now);
        if is_overdue {
            self.deadline = None;
            self.is_gap_asked = false;
        }
        is_overdue
    }

    /// Counts a repetition; false if there have been `most` without progress.
    pub(super) fn repeat(&mut self, most: u8) -> bool {
        let is_left = self.repeated < most;
        self.repeated = self.repeated.saturating_add(1);
        is_left
    }

    /// Waits for a responder that is not ready; false if it was not `most` times, without progress.
    pub(super) fn wait(&mut self, until: Ns, most: Option<u8>) -> bool {
        let is_left = most.is_none_or(|most| self.not_ready < most);
        self.not_ready = self.not_ready.saturating_add(1);
        self.deadline = None;
        self.ready_at = Some(until);
        is_left
    }

    /// The next time at which something is due.
    pub(super) fn next(&self) -> Option<Ns> {
        self.deadline.into_iter().chain(self.ready_at).min()
    }

    /// Nothing is due any more.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }
}
