//! The clock of one source.

use pollux_mempool::time::Ns;

use crate::stage::Moment;

/// How long a silent source has a say about what time it is.
pub const LIVE: Ns = Ns(1_000_000_000);
/// A timeline: an index into the two that a builder keeps.
pub type Line = usize;
/// The timeline of the majority.
pub const MAIN: Line = 0;
/// The one on trial, or in dispute.
pub const OTHER: Line = 1;

/// A moment that does not come.
pub(super) const NEVER: Moment = Moment(u64::MAX);

/// What is known of the time of one source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// The latest time that it said in its timeline.
    pub(super) said: u64,
    /// When its last admitted frame came.
    pub(super) heard: Moment,
    pub(super) line: Line,
    /// It has said a time, and need not be compared with the others.
    pub(super) is_known: bool,
    /// It differs from the majority.
    pub(super) off: bool,
    /// Known, not off, and not on trial: it needs no more than to go on.
    pub(super) is_plain: bool,
    /// Frames in agreement since it was put off.
    pub(super) agreed: u32,
    /// Late frames in a row, and when the first one came.
    pub(super) late: u32,
    pub(super) late_since: Moment,
    /// A time that it said, and when.
    pub(super) probe: (u64, Moment),
    /// When the others should have come to that.
    pub(super) probe_due: Moment,
    /// Times in a row that as many others had come to it as had not.
    pub(super) ties: u32,
    /// Times in a row that it was further behind what most others had come to than a deadline.
    pub(super) lags: u32,
    /// What it said last, and when, in the main timeline, which it left for a trial.
    pub(super) before: Option<(u64, Moment)>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            said: 0,
            heard: Moment(0),
            line: MAIN,
            is_known: false,
            off: false,
            is_plain: false,
            agreed: 0,
            late: 0,
            late_since: Moment(0),
            probe: (0, Moment(0)),
            probe_due: NEVER,
            ties: 0,
            lags: 0,
            before: None,
        }
    }
}

impl Clock {
    /// Whether it has come to a time, or as near as what sources say of one event.
    pub(super) fn has_come_to(&self, time: u64, grain: u64) -> bool {
        self.said.saturating_add(grain) > time
    }

    /// Whether it has been heard since a moment, or up to a deadline before, and is further behind a
    /// time than `tolerance`.
    pub(super) fn is_far_behind(
        &self,
        time: u64,
        tolerance: u64,
        since: Moment,
        deadline: Ns,
    ) -> bool {
        self.heard.after(deadline) >= since && self.said.saturating_add(tolerance) < time
    }

    /// Whether it has been heard of late.
    #[inline]
    pub(super) fn is_live(&self, at: Moment) -> bool {
        self.is_known && at <= self.heard.after(LIVE)
    }

    /// Puts it into a timeline in which its time goes on as it was.
    pub(super) fn take_side(&mut self, line: Line, at: Moment, deadline: Ns) {
        (self.line, self.late, self.ties) = (line, 0, 0);
        self.probe_due = NEVER;
        self.set_probe(self.said, at, deadline);
    }

    /// Notes a time to be compared with where the others are a deadline later, unless there is one.
    pub(super) fn set_probe(&mut self, time: u64, at: Moment, deadline: Ns) {
        if self.probe_due == NEVER {
            (self.probe, self.probe_due) = ((time, at), at.after(deadline));
        }
    }
}
