//! History of the counters: each second of the last minute, and the whole run with a coarser
//! resolution.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_na62::l0::L0Stats;
use pollux_pmd::{LatencyMark, LatencyView};
use serde::Serialize;

use crate::counters::Counters;
use crate::report::Quantiles;

/// Interval at which the counters are sampled.
const EVERY: Duration = Duration::from_secs(1);

/// Number of samples in a minute.
const MINUTE: usize = 61;

/// Maximum number of samples of the whole run. At that number, every second one is removed.
const RUN: usize = 256;

/// Number of samples in the window of the current state.
const WINDOW: usize = 5;

/// The counters at a moment, counted since the start; the difference of two samples belongs to the
/// time between them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Note {
    pub uptime_s: f64,
    /// Built events.
    pub events: u64,
    pub accepted: u64,
    /// Frames from the wire.
    pub frames: u64,
    pub dropped: BTreeMap<&'static str, u64>,
    /// Frames missing by sequence number.
    pub missing: u64,
    pub late_decisions: u64,
    /// Datagrams of each stream.
    pub streams: Vec<u64>,
}

impl Note {
    fn of(counters: &Counters, uptime: Duration) -> Self {
        let balance = counters.ledgers.ledger.balance();
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

/// `/minute.json`, `/history.json`: samples at a constant interval in seconds.
#[derive(Debug, Serialize)]
pub struct Notes {
    every_s: u64,
    notes: Vec<Note>,
}

/// The stored history.
#[derive(Default)]
struct Past {
    minute: VecDeque<Note>,
    run: Vec<Note>,
    /// One in so many samples is samples for the whole run.
    stride: u64,
    /// Number of samples so far.
    taken: u64,
}

impl Past {
    fn add(&mut self, note: Note) {
        if self.taken.is_multiple_of(self.stride) {
            if self.run.len() == RUN {
                // The remaining ones are at multiples of the new stride.
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

/// Counters at the beginning of a window.
struct Mark {
    at: Instant,
    total: Option<LatencyMark>,
    stats: L0Stats,
}

/// The current state.
#[derive(Debug, Default, Serialize)]
pub struct Now {
    /// Length of the window.
    window_s: f64,
    /// Latency from an event's first frame to the transmission of its decision, of the decisions in
    /// the window.
    latency_ns: Quantiles,
    /// By stream: those of its known faults that were found in the window.
    faults: Vec<Vec<&'static str>>,
}

struct Samples {
    past: Past,
    marks: VecDeque<Mark>,
}

/// Read access to the history.
#[derive(Clone)]
pub struct History {
    samples: Arc<Mutex<Samples>>,
    counters: Arc<Counters>,
}

impl History {
    /// The last minute, in steps of a second, the newest last.
    pub fn minute(&self) -> Notes {
        Notes {
            every_s: EVERY.as_secs(),
            notes: self.samples().past.minute.iter().cloned().collect(),
        }
    }

    /// The whole run.
    pub fn run(&self) -> Notes {
        let past = &self.samples().past;
        Notes {
            every_s: EVERY.as_secs() * past.stride,
            notes: past.run.clone(),
        }
    }

    /// The current state.
    pub fn now(&self) -> Now {
        let samples = self.samples();
        let Some(mark) = samples.marks.front() else {
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

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Latencies of decisions.
fn total(counters: &Counters) -> Option<&LatencyView> {
    let mut stages = counters.latency.iter();
    stages.find_map(|(stage, times)| (stage == "total").then_some(times))
}

/// The writer in housekeeping.
pub struct Recorder {
    history: History,
    started: Instant,
    due: Instant,
}

impl Recorder {
    /// Samples the counters, if it is time.
    pub fn keep(&mut self) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due += EVERY;
        if self.due <= now {
            // After a standstill of the machine, missed samples are skipped.
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
        let mut samples = self.history.samples();
        samples.past.add(note);
        samples.marks.push_back(mark);
        if samples.marks.len() > WINDOW {
            samples.marks.pop_front();
        }
    }
}

/// The history of a run that starts at `started`.
pub fn history(counters: Arc<Counters>, started: Instant) -> (Recorder, History) {
    let past = Past {
        stride: 1,
        ..Past::default()
    };
    let samples = Samples {
        past,
        marks: VecDeque::new(),
    };
    let history = History {
        samples: Arc::new(Mutex::new(samples)),
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
            let samples = events(&past.run);
            assert!(
                samples
                    .iter()
                    .zip(0..)
                    .all(|(&at, n)| at == n * past.stride),
                "{samples:?}"
            );
            assert!(seconds - samples[samples.len() - 1] < past.stride);
        }
    }
}
