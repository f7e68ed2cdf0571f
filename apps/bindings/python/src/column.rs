//! Columns of a batch: one NumPy array with a value of each datagram.

use numpy::{PyArray1, PyArrayDescr, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray};
use pollux_embed::SharedDatagram;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;

/// The field at `offset` of every payload, as an array of `dtype`.
pub(crate) fn field<'py>(
    py: Python<'py>,
    datagrams: &[SharedDatagram],
    offset: isize,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // NumPy's converter has no descriptor for None; `numpy.dtype` takes it for float64, which is hardly meant.
    if dtype.is_none() {
        return Err(no_size(dtype));
    }
    let dtype = PyArrayDescr::new(py, dtype)?;
    if dtype.has_object() || dtype.itemsize() == 0 {
        return Err(no_size(&dtype));
    }
    let len = dtype.itemsize();
    let start = usize::try_from(offset)
        .map_err(|_| PyIndexError::new_err(format!("field: offset {offset} is below 0")))?;
    // Before memory is taken for them: a field may be larger than all payloads.
    for (index, datagram) in datagrams.iter().enumerate() {
        if field_of(datagram.payload(), start, len).is_none() {
            return Err(past_payload(index, datagram.payload().len(), start, len));
        }
    }
    let bytes = PyArray1::<u8>::zeros(py, len * datagrams.len(), false);
    let mut writer = bytes
        .try_readwrite()
        .map_err(|error| PyTypeError::new_err(error.to_string()))?;
    let out = writer.as_slice_mut()?;
    for (datagram, out) in datagrams.iter().zip(out.chunks_exact_mut(len)) {
        if let Some(field) = field_of(datagram.payload(), start, len) {
            out.copy_from_slice(field);
        }
    }
    drop(writer);
    bytes.call_method1("view", (dtype,))
}

/// The bytes of a field, if the payload has them.
fn field_of(payload: &[u8], start: usize, len: usize) -> Option<&[u8]> {
    payload.get(start..)?.get(..len)
}

#[cold]
fn no_size(dtype: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "field: {dtype} has no fixed size in bytes: give a number, a structure or bytes, such as \
         \"<u8\" or \"S4\""
    ))
}

#[cold]
fn past_payload(index: usize, payload: usize, start: usize, len: usize) -> PyErr {
    PyIndexError::new_err(format!(
        "field: {len} B at offset {start} are past the payload of datagram {index}, which has \
         {payload} B: select the stream by `streams`, or look at `length` first"
    ))
}

/// One value of each datagram.
pub(crate) fn column<'py, T: numpy::Element>(
    py: Python<'py>,
    datagrams: &[SharedDatagram],
    value: impl FnMut(&SharedDatagram) -> T,
) -> Bound<'py, PyUntypedArray> {
    let values: Vec<T> = datagrams.iter().map(value).collect();
    PyArray1::from_vec(py, values).as_untyped().clone()
}
