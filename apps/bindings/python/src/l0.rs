//! `L0Run`: a run of the L0 trigger, whose decisions are taken as records.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use l0_trigger::{L0Record, StopFlag, Trigger};
use numpy::PyArray1;
use pollux_embed::Process;
use pyo3::prelude::*;

use crate::error::{PortError, SpecError};

/// Bytes of records that wait for Python. Beyond them a recording waits; a live run misses decisions,
/// which it counts.
const MOST: usize = 4 << 20;

/// Time that a call waits without the interpreter, before it looks for signals.
const SLICE: Duration = Duration::from_millis(20);

/// What the run and Python share.
#[derive(Default)]
struct Queue {
    records: Mutex<Records>,
    /// Signalled when records come, are taken, or none will come or be taken any more.
    changed: Condvar,
}

#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    sequence: u32,
    has_ended: bool,
    is_left: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Records> {
        // A vector of bytes is valid whatever ended the other side.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a decision; waits while too many records wait.
    fn push(&self, decision: &L0Record) {
        let mut records = self.lock();
        while records.bytes.len() >= MOST && !records.is_left {
            let waited = self.changed.wait(records);
            records = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if !records.is_left {
            let event = decision.to_event(records.sequence);
            records.bytes.extend(event.to_bytes());
            records.sequence = records.sequence.wrapping_add(1);
            self.changed.notify_all();
        }
    }

    /// Takes all records, or waits a slice of time for some. The second is whether the run has ended.
    fn take(&self) -> (Vec<u8>, bool) {
        let mut records = self.lock();
        if records.bytes.is_empty() && !records.has_ended {
            let waited = self.changed.wait_timeout(records, SLICE);
            records = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let bytes = std::mem::take(&mut records.bytes);
        self.changed.notify_all();
        (bytes, records.has_ended)
    }
}

/// A run of the L0 trigger on threads of its own: an iterator over blocks of records, as uint8 arrays.
#[pyclass(frozen, module = "pollux")]
pub(crate) struct L0Run {
    queue: Arc<Queue>,
    stop: StopFlag,
    process: Process,
    /// The run; its result is the number of decisions that were missed.
    thread: Mutex<Option<JoinHandle<Result<u64, String>>>>,
}

#[pymethods]
impl L0Run {
    #[new]
    #[pyo3(signature = (spec, config=None))]
    fn start(spec: &str, config: Option<PathBuf>) -> PyResult<Self> {
        let (queue, stop) = (Arc::<Queue>::default(), StopFlag::new());
        let decisions = Arc::clone(&queue);
        let builder = Trigger::builder()
            .port(spec)
            .stop_flag(stop.clone())
            .on_decision(move |decision| decisions.push(decision));
        let builder = match config {
            Some(path) => builder.configuration_file(path),
            None => builder,
        };
        let trigger = builder.build();
        let trigger = trigger.map_err(|error| SpecError::new_err(format!("{error:#}")))?;
        let ended = Arc::clone(&queue);
        let run = move || {
            let report = trigger.run();
            ended.lock().has_ended = true;
            ended.changed.notify_all();
            match report {
                Ok(report) => Ok(report.decisions_missed()),
                Err(error) => Err(format!("{error:#}")),
            }
        };
        let thread = std::thread::Builder::new().name("l0".into()).spawn(run)?;
        Ok(Self {
            queue,
            stop,
            process: Process::current(),
            thread: Mutex::new(Some(thread)),
        })
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<u8>>>> {
        if !self.process.is_current() {
            return Err(PortError::new_err(
                "the run belongs to the process that this one was forked from: start it here",
            ));
        }
        loop {
            let (bytes, has_ended) = py.detach(|| self.queue.take());
            if !bytes.is_empty() {
                return Ok(Some(PyArray1::from_vec(py, bytes)));
            }
            if has_ended {
                self.close(py)?;
                return Ok(None);
            }
            py.check_signals()?;
        }
    }

    /// Ends the run and waits for it; returns the number of decisions that came too fast.
    fn close(&self, py: Python<'_>) -> PyResult<u64> {
        self.leave();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(thread) = thread.filter(|_| self.process.is_current()) else {
            return Ok(0);
        };
        let ended = py.detach(|| thread.join());
        let ended = ended.unwrap_or_else(|_| Err("the thread of the run has panicked".into()));
        ended.map_err(PortError::new_err)
    }
}

impl L0Run {
    /// Has the run end, and wait for nothing.
    fn leave(&self) {
        if self.process.is_current() {
            self.stop.stop();
            self.queue.lock().is_left = true;
            self.queue.changed.notify_all();
        }
    }
}

impl Drop for L0Run {
    fn drop(&mut self) {
        self.leave();
    }
}
