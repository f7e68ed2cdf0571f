//! History of the counters: each second of the last minute, and the whole run with a coarser
//! resolution.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Interval at which the counters are sampled.
const EVERY: Duration = Duration::from_secs(1);

/// Number of samples in a minute.
const MINUTE: usize = 61;

/// Maximum number of samples of the whole run. At that number, every second one is removed.
const RUN: usize = 256;

/// Number of samples in the window of the current state.
const WINDOW: usize = 5;

/// Counters that a history is kept of.
pub trait Sampled: Send + Sync + 'static {
    /// The counters at a moment, counted since the start; the difference of two notes belongs to the
    /// time between them.
    type Note: Clone + Serialize + Send + 'static;

    /// What belongs to the beginning of the window of the current state.
    type Mark: Send + 'static;

    /// The counters now, `uptime_s` seconds after the start.
    fn note(&self, uptime_s: f64) -> Self::Note;

    /// A mark of now.
    fn mark(&self) -> Self::Mark;
}

/// `/minute.json`, `/history.json`: samples at a constant interval in seconds.
#[derive(Debug, Serialize)]
pub struct Notes<N> {
    every_s: u64,
    notes: Vec<N>,
}

/// The stored history.
struct Past<N> {
    minute: VecDeque<N>,
    run: Vec<N>,
    /// One in so many samples is samples for the whole run.
    stride: u64,
    /// Number of samples so far.
    taken: u64,
}

impl<N: Clone> Past<N> {
    fn new() -> Self {
        Self {
            minute: VecDeque::new(),
            run: Vec::new(),
            stride: 1,
            taken: 0,
        }
    }

    fn add(&mut self, note: N) {
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

struct Samples<S: Sampled> {
    past: Past<S::Note>,
    marks: VecDeque<(Instant, S::Mark)>,
}

/// Read access to the history.
pub struct History<S: Sampled> {
    samples: Arc<Mutex<Samples<S>>>,
    counters: Arc<S>,
}

impl<S: Sampled> Clone for History<S> {
    fn clone(&self) -> Self {
        Self {
            samples: Arc::clone(&self.samples),
            counters: Arc::clone(&self.counters),
        }
    }
}

impl<S: Sampled> fmt::Debug for History<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").finish_non_exhaustive()
    }
}

impl<S: Sampled> History<S> {
    /// The last minute, in steps of a second, the newest last.
    #[must_use]
    pub fn minute(&self) -> Notes<S::Note> {
        Notes {
            every_s: EVERY.as_secs(),
            notes: self.samples().past.minute.iter().cloned().collect(),
        }
    }

    /// The whole run.
    #[must_use]
    pub fn run(&self) -> Notes<S::Note> {
        let past = &self.samples().past;
        Notes {
            every_s: EVERY.as_secs() * past.stride,
            notes: past.run.clone(),
        }
    }

    /// The result of `read` for the window of the current state: its length in seconds, and the mark of
    /// its beginning. `None` before the first sample.
    pub fn window<T>(&self, read: impl FnOnce(f64, &S::Mark) -> T) -> Option<T> {
        let samples = self.samples();
        let (at, mark) = samples.marks.front()?;
        Some(read(at.elapsed().as_secs_f64(), mark))
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Arc<S> {
        Arc::clone(&self.counters)
    }

    fn samples(&self) -> MutexGuard<'_, Samples<S>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer in housekeeping.
#[derive(Debug)]
pub struct Recorder<S: Sampled> {
    history: History<S>,
    started: Instant,
    due: Instant,
}

impl<S: Sampled> Recorder<S> {
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
        let counters = &self.history.counters;
        let note = counters.note((now - self.started).as_secs_f64());
        let mark = counters.mark();
        let mut samples = self.history.samples();
        samples.past.add(note);
        samples.marks.push_back((now, mark));
        if samples.marks.len() > WINDOW {
            samples.marks.pop_front();
        }
    }
}

/// The history of a run that starts at `started`.
pub fn history<S: Sampled>(counters: Arc<S>, started: Instant) -> (Recorder<S>, History<S>) {
    let samples = Samples {
        past: Past::new(),
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
    fn after(seconds: u64) -> Past<u64> {
        let mut past = Past::new();
        (0..=seconds).for_each(|n| past.add(n));
        past
    }

    #[test]
    fn the_last_minute_is_kept_second_by_second() {
        assert_eq!(after(3).minute, [0, 1, 2, 3]);
        assert_eq!(after(200).minute, (140..=200).collect::<Vec<_>>());
    }

    #[test]
    fn the_whole_run_is_kept_however_long_it_is() {
        assert_eq!(after(255).run, (0..=255).collect::<Vec<_>>());
        for seconds in [256, 1000, 100_000] {
            let past = after(seconds);
            let samples = &past.run;
            assert!(samples.len() > RUN / 2 && samples.len() <= RUN);
            let multiples = (0..).map(|n| n * past.stride);
            assert!(
                samples.iter().zip(multiples).all(|(&at, n)| at == n),
                "{samples:?}"
            );
            assert!(seconds - samples[samples.len() - 1] < past.stride);
        }
    }
}
