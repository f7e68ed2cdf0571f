//! What the counters were: each second of the last minute, and more coarsely since the start.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_na62::l0::L0Stats;
use pollux_pmd::{LatencyMark, LatencyView};
use serde::Serialize;

use crate::counters::Counters;
use crate::report::Quantiles;

/// How often the counters are noted.
const EVERY: Duration = Duration::from_secs(1);

/// Notes that a minute is between.
const MINUTE: usize = 61;

/// Most notes of the whole run. When there are so many, every second one is left out.
const RUN: usize = 256;

/// How many notes ago "now" began: state is told of what has been counted since.
const WINDOW: usize = 5;

/// The counters at a moment, as they were since the start: what is between two of them happened in
/// that time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Note {
    pub uptime_s: f64,
    /// Built events.
    pub events: u64,
    pub accepted: u64,
    /// Frames from the wire.
    pub frames: u64,
    pub dropped: BTreeMap<&'static str, u64>,
    /// Frames that sequence numbers say never arrived.
    pub missing: u64,
    pub late_decisions: u64,
    /// Datagrams of each stream.
    pub streams: Vec<u64>,
}

impl Note {
    fn of(counters: &Counters, uptime: Duration) -> Self {
        let balance = counters.books.ledger.balance();
        let (events, sources) = (&counters.stats.events, &counters.stats.sources);
        Self {
            uptime_s: uptime.as_secs_f64(),
            events: events.built.get(),
            accepted: events.accepted.get(),
            frames: balance.from_wire,
            dropped: balance
                .drops()
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
            missing: sources.iter().map(|source| source.missing.get()).sum(),
            late_decisions: counters.answers.late.get(),
            streams: counters.streams.counts().map(|(_, n)| n.packets).collect(),
        }
    }
}

/// `/minute.json`, `/history.json`: notes, so many seconds apart.
#[derive(Debug, Serialize)]
pub struct Notes {
    every_s: u64,
    notes: Vec<Note>,
}

/// What is kept.
#[derive(Default)]
struct Past {
    minute: VecDeque<Note>,
    run: Vec<Note>,
    /// Every so many notes one is kept for the whole run.
    stride: u64,
    /// Notes so far.
    taken: u64,
}

impl Past {
    fn add(&mut self, note: Note) {
        if self.taken.is_multiple_of(self.stride) {
            if self.run.len() == RUN {
                // Those that are left are at multiples of the new stride.
                let mut keep = [true, false].into_iter().cycle();
                self.run.retain(|_| keep.next().unwrap_or_default());
                self.stride *= 2;
            }
            self.run.push(note.clone());
        }
        self.taken += 1;
        if self.minute.len() == MINUTE {
            self.minute.pop_front();
        }
        self.minute.push_back(note);
    }
}

/// What a window is told apart from what was before by.
struct Mark {
    at: Instant,
    total: Option<LatencyMark>,
    stats: L0Stats,
}

/// What is so now.
#[derive(Debug, Default, Serialize)]
pub struct Now {
    /// How long it has been looked at.
    window_s: f64,
    /// From an event's first frame to its decision's departure, of the decisions in that time.
    latency_ns: Quantiles,
    /// By stream: which of the faults that it has been found to have it had in that time.
    faults: Vec<Vec<&'static str>>,
}

struct Kept {
    past: Past,
    marks: VecDeque<Mark>,
}

/// What was noted, for whoever shows it.
#[derive(Clone)]
pub struct History {
    kept: Arc<Mutex<Kept>>,
    counters: Arc<Counters>,
}

impl History {
    /// The last minute, a second each, the newest last.
    pub fn minute(&self) -> Notes {
        Notes {
            every_s: EVERY.as_secs(),
            notes: self.kept().past.minute.iter().cloned().collect(),
        }
    }

    /// The whole run.
    pub fn run(&self) -> Notes {
        let past = &self.kept().past;
        Notes {
            every_s: EVERY.as_secs() * past.stride,
            notes: past.run.clone(),
        }
    }

    /// What is so at this moment.
    pub fn now(&self) -> Now {
        let kept = self.kept();
        let Some(mark) = kept.marks.front() else {
            return Now::default();
        };
        let total = total(&self.counters).zip(mark.total.as_ref());
        let latency = total.map(|(view, mark)| view.percentiles_since(mark));
        let stats = &self.counters.stats;
        let stretch = stats.since(&mark.stats);
        let faults = |stream| {
            let found = stats.faults(stream);
            let lately = stretch.faults(stream);
            let both = found.into_iter().filter(|fault| lately.contains(fault));
            both.collect()
        };
        Now {
            window_s: mark.at.elapsed().as_secs_f64(),
            latency_ns: latency.map(Quantiles::from).unwrap_or_default(),
            faults: (0..stats.sources.len()).map(faults).collect(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time from events to decisions.
fn total(counters: &Counters) -> Option<&LatencyView> {
    let mut stages = counters.latency.iter();
    stages.find_map(|(stage, times)| (stage == "total").then_some(times))
}

/// The end in housekeeping.
pub struct Recorder {
    history: History,
    started: Instant,
    due: Instant,
}

impl Recorder {
    /// Notes what the counters are, if it is time.
    pub fn keep(&mut self) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due += EVERY;
        if self.due <= now {
            // The machine stood still: what is missed is missed.
            self.due = now + EVERY;
        }
        self.note(now);
    }

    fn note(&self, now: Instant) {
        let counters = &self.history.counters;
        let note = Note::of(counters, now - self.started);
        let none = L0Stats::new(counters.stats.sources.len());
        let mark = Mark {
            at: now,
            total: total(counters).map(LatencyView::mark),
            stats: counters.stats.since(&none),
        };
        let mut kept = self.history.kept();
        kept.past.add(note);
        kept.marks.push_back(mark);
        if kept.marks.len() > WINDOW {
            kept.marks.pop_front();
        }
    }
}

/// The history of a run that `started` just now.
pub fn history(counters: Arc<Counters>, started: Instant) -> (Recorder, History) {
    let past = Past {
        stride: 1,
        ..Past::default()
    };
    let kept = Kept {
        past,
        marks: VecDeque::new(),
    };
    let history = History {
        kept: Arc::new(Mutex::new(kept)),
        counters,
    };
    let recorder = Recorder {
        history: history.clone(),
        started,
        due: started,
    };
    (recorder, history)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many seconds of one event each.
    fn after(seconds: u64) -> Past {
        let mut past = Past {
            stride: 1,
            ..Past::default()
        };
        for n in 0..=seconds {
            past.add(Note {
                uptime_s: n as f64,
                events: n,
                ..Note::default()
            });
        }
        past
    }

    fn events<'a>(notes: impl IntoIterator<Item = &'a Note>) -> Vec<u64> {
        notes.into_iter().map(|note| note.events).collect()
    }

    #[test]
    fn the_last_minute_is_kept_second_by_second() {
        assert_eq!(events(&after(3).minute), [0, 1, 2, 3]);
        assert_eq!(events(&after(200).minute), (140..=200).collect::<Vec<_>>());
    }

    #[test]
    fn the_whole_run_is_kept_however_long_it_is() {
        assert_eq!(events(&after(255).run), (0..=255).collect::<Vec<_>>());
        for seconds in [256, 1000, 100_000] {
            let past = after(seconds);
            assert!(past.run.len() > RUN / 2 && past.run.len() <= RUN);
            let kept = events(&past.run);
            assert!(
                kept.iter().zip(0..).all(|(&at, n)| at == n * past.stride),
                "{kept:?}"
            );
            assert!(seconds - kept[kept.len() - 1] < past.stride);
        }
    }
}
