//! `Batch`: the datagrams of one poll.

use std::sync::Arc;

use numpy::{PyArray1, PyUntypedArray};
use pollux_embed::{EmbedError, OwnProcess, SharedDatagram};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::column::{column, field};
use crate::error::raised;
use crate::shared::Shared;
use crate::view::view;

/// The datagrams of one poll, at least one. It keeps their buffers until it is deleted; each use of a
/// column makes a new array.
#[pyclass(frozen, module = "pollux")]
pub(crate) struct Batch {
    /// In the order of arrival.
    datagrams: OwnProcess<Vec<SharedDatagram>>,
    /// Their times of arrival, in ns since the port was opened.
    arrivals: Vec<i64>,
    shared: Arc<Shared>,
}

impl Batch {
    pub(crate) fn new(
        datagrams: Vec<SharedDatagram>,
        arrivals: Vec<i64>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            datagrams: OwnProcess::new(datagrams),
            arrivals,
            shared,
        }
    }

    /// The datagrams, if the port is still open.
    fn datagrams(&self) -> PyResult<&[SharedDatagram]> {
        let port = || self.shared.spec().to_owned();
        let datagrams = self.datagrams.get();
        let datagrams = datagrams.ok_or_else(|| EmbedError::Forked { port: port() });
        let open = self.shared.check_open();
        let datagrams = datagrams.and_then(|datagrams| open.map(|()| datagrams));
        datagrams.map(Vec::as_slice).map_err(|error| raised(&error))
    }
}

#[pymethods]
impl Batch {
    /// UDP source ports, uint16.
    #[getter]
    fn src_port<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyUntypedArray>> {
        Ok(column(py, self.datagrams()?, SharedDatagram::src_port))
    }

    /// UDP destination ports, uint16.
    #[getter]
    fn dst_port<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyUntypedArray>> {
        Ok(column(py, self.datagrams()?, SharedDatagram::dst_port))
    }

    /// Bytes of the payloads, uint32.
    #[getter]
    fn length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyUntypedArray>> {
        let length = |datagram: &SharedDatagram| u32::from(datagram.payload_len());
        Ok(column(py, self.datagrams()?, length))
    }

    /// Time stamps of the capture, the kernel or the NIC, int64, in ns since 1970; 0 without one.
    #[getter]
    fn wire_ns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyUntypedArray>> {
        let stamp = |datagram: &SharedDatagram| {
            let time = datagram.wire_time().unwrap_or_default();
            i64::try_from(time.0).unwrap_or(i64::MAX)
        };
        Ok(column(py, self.datagrams()?, stamp))
    }

    /// Times of arrival in the process, int64, in ns since the port was opened.
    #[getter]
    fn arrival_ns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        self.datagrams()?;
        Ok(PyArray1::from_slice(py, &self.arrivals))
    }

    /// The value of type `dtype` at `offset` of every payload, as one array.
    fn field<'py>(
        &self,
        py: Python<'py>,
        offset: isize,
        dtype: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        field(py, self.datagrams()?, offset, dtype)
    }

    fn __len__(&self) -> usize {
        self.arrivals.len()
    }

    /// The payload of a datagram: a read-only uint8 array in its packet buffer.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: isize,
    ) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let datagrams = self.datagrams()?;
        let len = datagrams.len();
        let place = if index < 0 {
            len.checked_add_signed(index)
        } else {
            usize::try_from(index).ok()
        };
        let datagram = place.and_then(|place| datagrams.get(place));
        let datagram = datagram.ok_or_else(|| {
            PyIndexError::new_err(format!("datagram {index} of a batch of {len}"))
        })?;
        view(py, datagram.clone())
    }

    fn __repr__(&self) -> String {
        let len = self.arrivals.len();
        format!(
            "<pollux.Batch of {len} datagrams from {}>",
            self.shared.spec()
        )
    }
}

impl Drop for Batch {
    /// Frees the buffers into the cache of the port's loop, which is faster than the pool's list; those
    /// that a view shows stay with it.
    fn drop(&mut self) {
        let Some(datagrams) = self.datagrams.get_mut() else {
            return;
        };
        if let Ok(mut port) = self.shared.lock() {
            for datagram in datagrams.drain(..) {
                if let Ok(mbuf) = datagram.try_into_mbuf() {
                    port.free(mbuf);
                }
            }
        }
    }
}
