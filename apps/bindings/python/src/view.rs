//! Payloads as read-only NumPy arrays in the memory of their packet buffers.

use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyArrayMethods};
use pollux_embed::{OwnProcess, SharedDatagram};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Keeps the buffer of a payload from its pool for as long as an array shows it.
#[pyclass(frozen, module = "pollux", name = "Buffer")]
struct Buffer(OwnProcess<SharedDatagram>);

/// The payload of a datagram as a read-only array, without a copy.
pub(crate) fn view(py: Python<'_>, datagram: SharedDatagram) -> PyResult<Bound<'_, PyArray1<u8>>> {
    let buffer = Bound::new(py, Buffer(OwnProcess::new(datagram)))?;
    let owner = buffer.clone().into_any();
    let payload = buffer.get().0.get().map(SharedDatagram::payload);
    let payload = ArrayView1::from(payload.unwrap_or_default());
    // SAFETY: the array keeps `owner`, whose datagram owns the payload and never changes or moves it.
    // The array is made read-only before another thread or Python sees it.
    let array = unsafe { PyArray1::borrow_from_array(&payload, owner) };
    match array.try_readwrite() {
        Ok(writer) => drop(writer.make_nonwriteable()),
        Err(error) => return Err(PyRuntimeError::new_err(error.to_string())),
    }
    Ok(array)
}
