//! When an event closes, and what becomes of it.

use pollux_mempool::time::Ns;
use pollux_pipelines::clocks::{Line, MAIN, OTHER, Vote};
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::Moment;

use super::Build;
use crate::l0::{Closed, Draft, Event, EventHead, MAX_SOURCES, Span};

/// How often, in parts of the deadline, it is asked whether a majority has come to an event that
/// was held at its deadline.
const LOOKS: u64 = 8;

impl Build {
    pub(super) fn close_all(&mut self, line: Line, out: &mut impl Output<Event>) {
        while !self.lines[line].open.is_empty() {
            self.close_oldest(line, out);
        }
    }

    pub(super) fn close_oldest(&mut self, line: Line, out: &mut impl Output<Event>) {
        let Some(open) = self.lines[line].open.front_mut() else {
            return;
        };
        let Some(mut draft) = open.draft.take() else {
            self.lines[line].close();
            return;
        };
        let masked = match open.hot {
            0 => 0,
            hot => {
                self.stats.count_hot(hot.into());
                mask_hot(&mut draft, &open.hits, open.hot)
            }
        };
        open.leave(&mut self.alone);
        let complete = open.sources == self.all && !open.truncated;
        let hits = draft.hits();
        let disputed = line == OTHER || self.clocks.is_disputed();
        let closed = Closed {
            sources: open.sources.into(),
            shared: open.count >= self.majority,
            complete,
            truncated: open.truncated,
            disputed,
            hits: hits.into(),
        };
        let head = EventHead {
            timestamp: open.key * self.window,
            sources: open.sources,
            complete,
            truncated: open.truncated,
            disputed,
            burst: self.clocks.burst(line),
            hits,
            masked,
            arrival: open.arrival,
        };
        self.stats.count_event(&closed, Some(&mut self.apart));
        self.lines[line].close();
        out.push(draft.finish(&head, Span::default()));
    }

    /// Closes, from the oldest on, what is complete.
    #[inline]
    pub(super) fn close_complete(&mut self, out: &mut impl Output<Event>) {
        if self.clocks.is_disputed() {
            self.close_due(Moment(0), out);
            return;
        }
        while let Some(oldest) = self.lines[MAIN].open.front()
            && oldest.sources == self.all
        {
            self.close_oldest(MAIN, out);
        }
    }

    /// Closes, from the oldest on, what is complete or has waited until `now`.
    pub(super) fn close_due(&mut self, now: Moment, out: &mut impl Output<Event>) {
        let mut expected = self.all;
        if self.clocks.is_disputed() {
            // Those of the other timeline are not waited for.
            let others = self.clocks.members(OTHER) as u16;
            expected &= !others;
            self.close_line(OTHER, others, now, out);
        }
        self.close_line(MAIN, expected, now, out);
    }

    fn close_line(&mut self, line: Line, expected: u16, now: Moment, out: &mut impl Output<Event>) {
        while let Some(oldest) = self.lines[line].open.front_mut() {
            if oldest.sources & expected != expected {
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

/// Puts the hits of hot sources behind all others, which are masked there; how many they are.
#[cold]
fn mask_hot(draft: &mut Draft, hits: &[u16; MAX_SOURCES], hot: u16) -> u16 {
    let (mut before, mut masked) = (0, 0);
    for (source, &count) in hits.iter().enumerate() {
        if hot >> source & 1 == 1 {
            draft.put_last(before, count.into());
            masked += count;
        } else {
            before += usize::from(count);
        }
    }
    masked
}
