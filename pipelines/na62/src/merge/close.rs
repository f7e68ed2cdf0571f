//! When a window closes, and with which hits.

use pollux_mempool::time::Tsc;
use pollux_pipelines::clocks::{Line, MAIN, OTHER, Vote};
use pollux_pipelines::stage::Moment;

use super::Merge;
use super::options::MergeOptions;
use super::window::Window;
use crate::l0::{MAX_EVENT_HITS, Span};

impl Merge {
    /// Closes the windows about which all has been said, or that have been waited for.
    #[inline]
    pub(super) fn close_due(&mut self, now: Moment, out: &mut impl FnMut(Window)) {
        let mut members = !self.clocks.off();
        if self.clocks.is_restless() {
            let others = self.clocks.members(OTHER);
            if self.clocks.is_disputed() {
                self.close_line(OTHER, others, now, out);
            }
            members &= !others;
        }
        self.close_line(MAIN, members, now, out);
    }

    #[inline]
    fn close_line(&mut self, line: Line, members: u64, now: Moment, out: &mut impl FnMut(Window)) {
        let Self { clocks, lines, .. } = self;
        let is_reached = |time, since| clocks.vote(line, time, since, now) == Vote::Reached;
        let complete = lines[line].complete(members, now, is_reached);
        self.close_until(line, complete, out);
    }

    /// Closes the windows that end, with their guard, before `complete`.
    #[inline]
    pub(super) fn close_until(&mut self, line: Line, complete: u64, out: &mut impl FnMut(Window)) {
        let reach = self.reach();
        while let Some(start) = self.lines[line].next() {
            if start.saturating_add(reach) > complete {
                break;
            }
            self.close(line, start, out);
        }
    }

    /// Takes the hits of a window out of the rings; those that the next one shares stay.
    pub(super) fn close(&mut self, line: Line, start: u64, out: &mut impl FnMut(Window)) {
        let MergeOptions { width, guard, .. } = self.options;
        let taken = self.lines[line].take(start, self.arrival, &mut self.hits);
        if taken.inside == 0 {
            return;
        }
        let kept = taken.hits.min(MAX_EVENT_HITS);
        let masked = match taken.hot {
            0 => 0,
            hot => self.lines[line].mask_hot(hot, &mut self.hits[..kept]),
        };
        self.counts.windows += 1;
        self.counts.hits += kept as u64;
        self.counts.overfull += (taken.hits - kept) as u64;
        out(Window {
            start,
            span: Span { guard, width },
            sources: taken.sources & !self.clocks.off(),
            truncated: taken.hits > kept,
            disputed: line == OTHER || self.clocks.is_disputed(),
            burst: self.clocks.burst(line),
            arrival: Tsc(self.arrival.0 - taken.age),
            hot: taken.hot,
            masked,
            hits: &self.hits[..kept],
        });
    }
}
