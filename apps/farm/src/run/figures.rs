//! What the processes of a run show beside their counts: the traffic of their ports, and the latency that the
//! one with the scheduler measures.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_app::ports::{PortView, Traffic};
use pollux_pmd::{LatencyHistogram, LatencyView};
use serde::{Deserialize, Serialize};

/// Least time between two answers of a process. A histogram has some 4000 slots, of which an answer has
/// those that have changed.
const INTERVAL: Duration = Duration::from_millis(500);

/// What a process shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    ports: Vec<Traffic>,
    latency: Times,
}

/// A histogram, as far as it has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Times {
    /// Slots that have changed, and the number of their values.
    slots: Vec<(usize, u64)>,
    sum: u64,
    max: u64,
}

/// What a process has shown.
#[derive(Default)]
pub struct Answered {
    at: Option<Instant>,
    ports: Vec<Traffic>,
    slots: Vec<u64>,
}

impl Answered {
    /// What has changed, where the interval is over.
    pub fn next(&mut self, ports: &[PortView], latency: &LatencyView) -> Option<Figures> {
        if self.at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return None;
        }
        self.at = Some(Instant::now());
        self.changed(ports.iter().map(PortView::traffic).collect(), latency)
    }

    fn changed(&mut self, ports: Vec<Traffic>, latency: &LatencyView) -> Option<Figures> {
        let before = self.slots.iter().copied().chain(std::iter::repeat(0));
        let now: Vec<u64> = latency.slots().collect();
        let slots = now.iter().copied().enumerate().zip(before);
        let slots = slots.filter(|((_, now), before)| now != before);
        let slots: Vec<_> = slots.map(|(slot, _)| slot).collect();
        if slots.is_empty() && ports == self.ports {
            return None;
        }
        self.slots = now;
        self.ports.clone_from(&ports);
        let (sum, max) = (latency.sum(), latency.max());
        let latency = Times { slots, sum, max };
        Some(Figures { ports, latency })
    }
}

/// What the processes of a run have shown; of none, where the run is in one process.
pub struct Processes {
    latency: Mutex<LatencyHistogram>,
    ports: Box<[Mutex<Vec<Traffic>>]>,
}

impl Processes {
    /// Of so many processes.
    pub fn new(processes: usize) -> Self {
        Self {
            latency: Mutex::default(),
            ports: (0..processes).map(|_| Mutex::default()).collect(),
        }
    }

    /// Takes over what a process shows.
    pub fn take(&self, process: usize, figures: Figures) {
        let Times { slots, sum, max } = figures.latency;
        // Of one process: the others have no latency.
        if !slots.is_empty() {
            lock(&self.latency).copy(slots, sum, max);
        }
        if let Some(ports) = self.ports.get(process) {
            *lock(ports) = figures.ports;
        }
    }

    /// A reader of the latency, if there are processes.
    pub fn latency(&self) -> Option<LatencyView> {
        (!self.ports.is_empty()).then(|| lock(&self.latency).view())
    }

    /// The traffic of each port, with the number of its process.
    pub fn ports(&self) -> Vec<(usize, Traffic)> {
        let processes = self.ports.iter().enumerate();
        let ports = processes.flat_map(|(process, ports)| {
            let ports = lock(ports).clone();
            ports.into_iter().map(move |traffic| (process, traffic))
        });
        ports.collect()
    }
}

/// A poisoned value is whole: each is written in one piece, or a slot at a time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(frames: u64) -> Vec<Traffic> {
        let traffic = Traffic {
            spec: "null".into(),
            tx_packets: frames,
            ..Traffic::default()
        };
        vec![traffic]
    }

    #[test]
    fn a_histogram_is_copied_as_it_changes() {
        let (processes, mut answered) = (Processes::new(2), Answered::default());
        let mut latency = LatencyHistogram::new();
        let view = latency.view();
        let mut longest = 0;
        for round in 0..20_u64 {
            for time in 0..round * round {
                latency.record(time * time * 37);
            }
            let figures = answered.changed(traffic(round), &view);
            let Some(figures) = figures else {
                panic!("{round}")
            };
            let line = serde_json::to_string(&figures).unwrap_or_default();
            longest = longest.max(line.len());
            let read = serde_json::from_str(&line);
            assert_eq!(read.as_ref().ok(), Some(&figures));
            processes.take(1, read.unwrap_or_default());
            let copy = processes
                .latency()
                .map(|copy| (copy.percentiles(), copy.sum()));
            assert_eq!(copy, Some((view.percentiles(), view.sum())));
            let ports = processes.ports();
            assert_eq!(
                (ports.len(), ports[0].0, ports[0].1.tx_packets),
                (1, 1, round)
            );
            // Nothing new.
            assert_eq!(answered.changed(traffic(round), &view), None);
        }
        // One value more is one slot more.
        latency.record(5);
        let figures = answered.changed(traffic(20), &view).unwrap_or_default();
        assert_eq!(figures.latency.slots.len(), 1);
        assert!(longest > 1000, "{longest}");
    }

    #[test]
    fn an_answer_is_bounded() {
        let mut latency = LatencyHistogram::new();
        for time in 0..100_000_u64 {
            latency.record(time << 18 ^ time);
            latency.record(time * 3);
            latency.record(time << 10);
        }
        let mut answered = Answered::default();
        let figures = answered.next(&[], &latency.view()).unwrap_or_default();
        let line = serde_json::to_string(&figures).unwrap_or_default();
        assert!(line.len() < 64 << 10, "{}", line.len());
        // The next one has to wait.
        latency.record(1);
        assert_eq!(answered.next(&[], &latency.view()), None);
    }

    #[test]
    fn a_run_in_one_process_has_none() {
        let processes = Processes::new(0);
        assert!(processes.latency().is_none() && processes.ports().is_empty());
    }
}
