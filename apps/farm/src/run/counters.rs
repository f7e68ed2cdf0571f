//! Counts that are read during the run.

use std::fmt;
use std::sync::Arc;

use pollux_app::metrics::{Labels, Ledgers, Page, Source};
use pollux_app::ports::Traffic;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Count, LatencyView};
use serde::{Deserialize, Serialize};

use super::figures::Processes;
use super::shares::Share;

/// What the loops and the main thread tell each other.
#[derive(Debug, Default)]
pub struct Control {
    /// No more triggers.
    pub enough: StopFlag,
    /// All events are decided: what is under way is delivered, nothing is begun.
    pub done: StopFlag,
    /// Loops end.
    pub stop: StopFlag,
    /// All processes have opened their ports, or are not waited for. The switch begins then: it sends the first
    /// frames to all, and an interface that no process has opened yet loses them.
    pub all_open: StopFlag,
    /// Members that the scheduler cannot hear: their processes have no ports.
    pub absent: Count,
    /// 1 while frames wait in the switch.
    pub switch_waits: Count,
}

/// Counts of a run. Each has one writer.
#[derive(Debug, Default)]
pub struct Counts {
    /// Events that were triggered.
    pub triggered: Count,
    /// Triggers that found too many events waiting.
    pub refused: Count,
    /// Events that were decided, in order.
    pub decided: Count,
    /// Of them, accepted.
    pub accepted: Count,
    /// Of them, those that lack a fragment.
    pub incomplete: Count,
    /// MEPs that were sent again.
    pub resent: Count,
    /// MEPs that are triggered and not decided.
    pub in_flight: Count,
    /// MEPs that wait for a receive buffer.
    pub pending: Count,
    /// Nodes and feeders that are excluded.
    pub excluded: Count,
    /// MEPs that are decided, as the scheduler knows.
    pub settled: Count,
    /// Members that the scheduler waits for before the first event.
    pub awaited: Count,
    /// Microseconds after which the scheduler sends again what was not answered.
    pub timeout_us: Count,
    /// Free receive buffers by column.
    pub free: Box<[Count]>,
}

impl Counts {
    pub fn new(columns: usize) -> Self {
        Self {
            free: (0..columns).map(|_| Count::default()).collect(),
            ..Self::default()
        }
    }
}

/// Counts of the scheduler and of the result node at a moment, for another process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    scheduler: [u64; 8],
    results: [u64; 3],
    free: Vec<u64>,
}

impl Counts {
    fn of_scheduler(&self) -> [&Count; 8] {
        [
            &self.triggered,
            &self.refused,
            &self.resent,
            &self.in_flight,
            &self.pending,
            &self.excluded,
            &self.awaited,
            &self.timeout_us,
        ]
    }

    fn of_results(&self) -> [&Count; 3] {
        [&self.decided, &self.accepted, &self.incomplete]
    }

    /// The counts now.
    pub fn moment(&self) -> Moment {
        Moment {
            scheduler: self.of_scheduler().map(Count::get),
            results: self.of_results().map(Count::get),
            free: self.free.iter().map(Count::get).collect(),
        }
    }

    /// Takes over the counts of a process with these members.
    pub fn take(&self, moment: &Moment, share: &Share) {
        let set = |counts: &[&Count], values: &[u64]| {
            for (count, &value) in counts.iter().zip(values) {
                count.set(value);
            }
        };
        if share.scheduler {
            set(&self.of_scheduler(), &moment.scheduler);
            set(&self.free.iter().collect::<Vec<_>>(), &moment.free);
        }
        if share.results {
            set(&self.of_results(), &moment.results);
        }
    }
}

/// What the metrics show.
pub struct Shown {
    pub books: Ledgers,
    pub counts: Arc<Counts>,
    pub latency: LatencyView,
    /// What the processes of the run show, if it has several.
    pub processes: Arc<Processes>,
}

impl Shown {
    /// The ports of the processes.
    fn measure_processes(&self, page: &mut Page<'_>) -> fmt::Result {
        let ports = self.processes.ports();
        if ports.is_empty() {
            return Ok(());
        }
        let labels = |process: usize, port: &str| {
            let (process, port) = (process.to_string(), port.to_owned());
            [("process", process), ("port", port)]
        };
        let mut put = |name, help, of: fn(&Traffic) -> u64| {
            let samples = ports.iter();
            let samples = samples.map(|(process, port)| (labels(*process, &port.spec), of(port)));
            page.counter(name, help, samples)
        };
        put(
            "farm_process_frames_received",
            "Frames that reached a port of a process",
            |traffic| traffic.rx_packets,
        )?;
        put("farm_process_bytes_received", "Their bytes", |traffic| {
            traffic.rx_bytes
        })?;
        put(
            "farm_process_frames_sent",
            "Frames that a port of a process sent",
            |traffic| traffic.tx_packets,
        )?;
        put("farm_process_bytes_sent", "Their bytes", |traffic| {
            traffic.tx_bytes
        })
    }
}

impl Source for Shown {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.books.measure(page)?;
        let counts = &self.counts;
        let none = || -> Labels<0> { [] };
        for (name, help, count) in [
            ("farm_triggered", "Triggered events", &counts.triggered),
            (
                "farm_refused",
                "Triggers that found too many events waiting",
                &counts.refused,
            ),
            ("farm_decided", "Decided events", &counts.decided),
            ("farm_accepted", "Accepted events", &counts.accepted),
            (
                "farm_incomplete",
                "Decided events that lack a fragment",
                &counts.incomplete,
            ),
            (
                "farm_resent",
                "Packs of events that were sent again",
                &counts.resent,
            ),
        ] {
            page.counter(name, help, [(none(), count.get())])?;
        }
        for (name, help, count) in [
            (
                "farm_in_flight",
                "Packs of events that are not decided",
                &counts.in_flight,
            ),
            (
                "farm_pending",
                "Packs of events that wait for a receive buffer",
                &counts.pending,
            ),
            ("farm_excluded", "Excluded members", &counts.excluded),
        ] {
            page.gauge(name, help, [(none(), count.get() as f64)])?;
        }
        let free = (0..).zip(&counts.free);
        let free = free
            .map(|(column, free): (u8, _)| ([("column", column.to_string())], free.get() as f64));
        page.gauge("farm_free_buffers", "Free receive buffers", free)?;
        let help = "From a trigger until all events up to it are decided";
        page.latency("farm_latency", help, [(none(), self.latency.clone())])?;
        self.measure_processes(page)
    }
}
