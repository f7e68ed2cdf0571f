//! `Port` and `open`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pollux_embed::{Account, EmbeddedPort, Options, SharedDatagram};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::Batch;
use crate::error::{PortError, SpecError, raised};
use crate::send::Frames;
use crate::shared::Shared;

/// Most datagrams of a batch.
const MOST: usize = 4096;

/// Time that a poll waits without the interpreter, before it looks for signals.
const SLICE: Duration = Duration::from_millis(5);

/// An open port: an iterator over batches of datagrams.
#[pyclass(frozen, module = "pollux")]
pub(crate) struct Port {
    shared: Arc<Shared>,
    burst: usize,
}

/// The UDP ports of an iterable.
fn ports_of(streams: &Bound<'_, PyAny>) -> PyResult<Vec<u16>> {
    let number = |port: PyResult<Bound<'_, PyAny>>| {
        let port: i64 = port?.extract()?;
        u16::try_from(port).map_err(|_| {
            SpecError::new_err(format!("streams: {port} is no UDP port: give 0 to 65535"))
        })
    };
    streams.try_iter()?.map(number).collect()
}

/// Opens a port by its spec.
#[pyfunction]
#[pyo3(signature = (spec, *, streams=None, burst=256, data_room=None, buffers=None, reassemble=true))]
pub(crate) fn open(
    py: Python<'_>,
    spec: &str,
    streams: Option<&Bound<'_, PyAny>>,
    burst: usize,
    data_room: Option<usize>,
    buffers: Option<usize>,
    reassemble: bool,
) -> PyResult<Port> {
    if !(1..=MOST).contains(&burst) {
        return Err(SpecError::new_err(format!(
            "burst = {burst}: a batch has 1 to {MOST} datagrams"
        )));
    }
    let options = Options {
        streams: streams.map(ports_of).transpose()?,
        data_room,
        buffers,
        burst,
        reassemble,
    };
    // A device may take seconds to start.
    let port = py.detach(|| EmbeddedPort::open(spec, &options));
    Ok(Port {
        shared: Arc::new(Shared::new(port.map_err(|error| raised(&error))?)),
        burst,
    })
}

/// What a poll has found.
enum Polled {
    Batch(Vec<SharedDatagram>, Vec<i64>),
    Nothing,
    End,
    Gone,
}

/// Polls the port once.
fn poll(port: &mut EmbeddedPort, burst: usize) -> Polled {
    let mut datagrams = Vec::new();
    port.rx(burst, |datagram| {
        if datagrams.capacity() == 0 {
            datagrams.reserve_exact(burst);
        }
        datagrams.push(datagram.share());
    });
    if !datagrams.is_empty() {
        let clock = port.clock();
        let ns = |datagram: &SharedDatagram| clock.ns(datagram.arrival()).cast_signed();
        let arrivals = datagrams.iter().map(ns).collect();
        return Polled::Batch(datagrams, arrivals);
    }
    match (port.has_ended(), port.is_gone()) {
        (false, _) => Polled::Nothing,
        (true, false) => Polled::End,
        (true, true) => Polled::Gone,
    }
}

/// Polls until there is a batch or an end, for a slice of time at most.
fn poll_for_a_slice(port: &mut EmbeddedPort, burst: usize, shared: &Shared) -> Polled {
    let started = Instant::now();
    loop {
        if shared.is_stopped() {
            return Polled::End;
        }
        match poll(port, burst) {
            Polled::Nothing if started.elapsed() < SLICE => std::hint::spin_loop(),
            polled => return polled,
        }
    }
}

impl Port {
    fn batch(&self, datagrams: Vec<SharedDatagram>, arrivals: Vec<i64>) -> Batch {
        Batch::new(datagrams, arrivals, Arc::clone(&self.shared))
    }

    fn gone(&self) -> PyErr {
        PortError::new_err(format!(
            "port {}: its device is gone: it was unplugged or deleted, or its owner has requested \
             it back; restart when it is available",
            self.shared.spec()
        ))
    }
}

#[pymethods]
impl Port {
    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Waits for the next batch; ends with the recording or by `stop`.
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let shared = &*self.shared;
        let mut guard = shared.claim().map_err(|error| raised(&error))?;
        let port = &mut *guard;
        loop {
            match py.detach(|| poll_for_a_slice(port, self.burst, shared)) {
                Polled::Batch(datagrams, arrivals) => {
                    return Ok(Some(self.batch(datagrams, arrivals)));
                }
                Polled::Nothing => py.check_signals()?,
                Polled::End => return Ok(None),
                Polled::Gone => return Err(self.gone()),
            }
        }
    }

    /// Iterates without blocking the event loop.
    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("pollux._aio")?;
        module.call_method1("batches", (slf,))
    }

    /// Polls once: a batch, or None if no datagram has arrived or the port was stopped. Never waits.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let mut guard = self.shared.claim().map_err(|error| raised(&error))?;
        if self.shared.is_stopped() {
            return Ok(None);
        }
        let port = &mut *guard;
        match py.detach(|| poll(port, self.burst)) {
            Polled::Batch(datagrams, arrivals) => Ok(Some(self.batch(datagrams, arrivals))),
            Polled::Nothing | Polled::End => Ok(None),
            Polled::Gone => Err(self.gone()),
        }
    }

    /// Whether no batch can arrive any more: by the end of the recording, `stop` or `close`.
    #[getter]
    fn ended(&self) -> bool {
        let has_ended = || self.shared.lock().is_ok_and(|port| port.has_ended());
        self.shared.is_stopped() || has_ended()
    }

    /// Copies Ethernet frames into buffers and sends them; returns how many left. Never waits.
    fn send(&self, frames: &Bound<'_, PyAny>) -> PyResult<usize> {
        let frames = Frames::extract(frames)?;
        let frames = frames.bytes()?;
        let mut port = self.shared.claim().map_err(|error| raised(&error))?;
        let checked = frames.iter().enumerate();
        let mut checked = checked.map(|(index, frame)| port.check_len(index, frame.len()));
        checked
            .try_for_each(|checked| checked)
            .map_err(|error| raised(&error))?;
        Ok(port.send(frames))
    }

    /// Makes iterations over the port end; from any thread or signal handler.
    fn stop(&self) {
        self.shared.stop();
    }

    /// Stops and releases the port. Views of payloads stay valid.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let shared = &*self.shared;
        // A device may take seconds to stop.
        py.detach(|| shared.close()).map_err(|error| raised(&error))
    }

    /// The ledger, also after `close`.
    fn ledger<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if let Ok(mut port) = self.shared.lock() {
            port.sync_counters();
        }
        let Account {
            from_wire,
            delivered,
            dropped,
            balanced,
            sent,
        } = self.shared.ledger().account();
        let ledger = PyDict::new(py);
        ledger.set_item("from_wire", from_wire)?;
        ledger.set_item("delivered", delivered)?;
        ledger.set_item("dropped", dropped)?;
        ledger.set_item("balanced", balanced)?;
        let counts = PyDict::new(py);
        counts.set_item("packets", sent.packets)?;
        counts.set_item("bytes", sent.bytes)?;
        counts.set_item("errors", sent.errors)?;
        ledger.set_item("sent", counts)?;
        Ok(ledger)
    }

    /// Free buffers of the pool: those in no batch, view or receive ring.
    #[getter]
    fn free_buffers(&self) -> PyResult<usize> {
        let port = self.shared.lock().map_err(|error| raised(&error))?;
        Ok(port.free_buffers())
    }

    /// Nanoseconds since the port was opened, on the clock of `arrival_ns`.
    fn now_ns(&self) -> PyResult<u64> {
        let port = self.shared.lock().map_err(|error| raised(&error))?;
        Ok(port.now())
    }

    /// The spec that the port was opened by.
    #[getter]
    fn spec(&self) -> &str {
        self.shared.spec()
    }

    fn __repr__(&self) -> String {
        let state = if self.shared.is_closed() {
            "closed"
        } else {
            "open"
        };
        format!("<pollux.Port {}, {state}>", self.shared.spec())
    }
}
