//! When an event closes.

use pollux_mempool::time::Ns;

use super::builder::Builder;
use super::gather::{Closing, Gather};
use crate::clocks::{Line, MAIN, OTHER, Vote};
use crate::sink::Output;
use crate::sources::SourceSet;
use crate::stage::Moment;

/// How often, in parts of the deadline, it is asked whether a majority has come to an event that
/// was held at its deadline.
const LOOKS: u64 = 8;

impl<G: Gather<S>, S: SourceSet> Builder<G, S> {
    pub(super) fn close_all(&mut self, line: Line, out: &mut impl Output<G::Built>) {
        while !self.lines[line].open.is_empty() {
            self.close_oldest(line, out);
        }
    }

    pub(super) fn close_oldest(&mut self, line: Line, out: &mut impl Output<G::Built>) {
        let Some(open) = self.lines[line].open.front_mut() else {
            return;
        };
        open.leave(self.alone.as_mut());
        let closing = Closing {
            key: open.key,
            burst: self.clocks.burst(line),
            sources: open.sources,
            shared: open.count >= self.majority,
            complete: open.count == self.sources,
            disputed: line == OTHER || self.clocks.is_disputed(),
        };
        let built = self.gather.close(&mut open.event, &closing);
        self.lines[line].close();
        if let Some(built) = built {
            out.push(built);
        }
    }

    /// Closes, from the oldest on, what is complete.
    #[inline]
    pub(super) fn close_complete(&mut self, out: &mut impl Output<G::Built>) {
        if self.clocks.is_disputed() {
            self.close_due(Moment(0), out);
            return;
        }
        while let Some(oldest) = self.lines[MAIN].open.front()
            && oldest.count == self.sources
        {
            self.close_oldest(MAIN, out);
        }
    }

    /// Closes, from the oldest on, what is complete or has waited until `now`.
    pub(super) fn close_due(&mut self, now: Moment, out: &mut impl Output<G::Built>) {
        let mut expected = self.all;
        if self.clocks.is_disputed() {
            // Those of the other timeline are not waited for.
            let others = self.clocks.members(OTHER);
            expected = expected.without(&others);
            self.close_line(OTHER, &others, now, out);
        }
        self.close_line(MAIN, &expected, now, out);
    }

    fn close_line(
        &mut self,
        line: Line,
        expected: &S,
        now: Moment,
        out: &mut impl Output<G::Built>,
    ) {
        while let Some(oldest) = self.lines[line].open.front_mut() {
            if !expected.without(&oldest.sources).is_empty() {
                if oldest.deadline > now {
                    break;
                }
                if self.clocks.vote(line, oldest.key, oldest.since, now) != Vote::Reached {
                    // Most sources are alive, and not there yet.
                    oldest.since = Moment(now.0.saturating_sub(self.deadline.0));
                    oldest.deadline = now.after(Ns((self.deadline.0 / LOOKS).max(1)));
                    oldest.held = true;
                    break;
                }
                if std::mem::take(&mut oldest.held) {
                    // The others have as long as they have for any event.
                    (oldest.since, oldest.deadline) = (now, now.after(self.deadline));
                    break;
                }
            }
            self.close_oldest(line, out);
        }
    }
}
