//! Frames that Python hands over to be sent.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyByteArray, PyBytes};

/// One frame.
pub(crate) enum Frame<'py> {
    Bytes(PyBackedBytes),
    Array(PyReadonlyArray1<'py, u8>),
}

impl Frame<'_> {
    pub(crate) fn bytes(&self) -> PyResult<&[u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Array(array) => Ok(array.as_slice()?),
        }
    }
}

/// Frames to be sent.
pub(crate) enum Frames<'py> {
    List(Vec<Frame<'py>>),
    /// Rows of equal length.
    Rows(PyReadonlyArray2<'py, u8>),
}

impl<'py> Frames<'py> {
    /// Takes an iterable of bytes or arrays, or a two-dimensional array.
    pub(crate) fn extract(frames: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(rows) = frames.extract() {
            return Ok(Self::Rows(rows));
        }
        if frames.is_instance_of::<PyBytes>() || frames.is_instance_of::<PyByteArray>() {
            return Err(PyTypeError::new_err(
                "send takes several frames, and this is one: put it into a list",
            ));
        }
        let frame = |(index, item): (usize, PyResult<Bound<'py, PyAny>>)| {
            let item = item?;
            if let Ok(bytes) = item.extract() {
                return Ok(Frame::Bytes(bytes));
            }
            item.extract().map(Frame::Array).map_err(|_| {
                let given = item.get_type();
                PyTypeError::new_err(format!(
                    "frame {index} is of type {given}: a frame is bytes, a bytearray or a \
                     one-dimensional array of uint8"
                ))
            })
        };
        let list: PyResult<_> = frames.try_iter()?.enumerate().map(frame).collect();
        Ok(Self::List(list?))
    }

    /// The bytes of each frame.
    pub(crate) fn bytes(&self) -> PyResult<Vec<&[u8]>> {
        match self {
            Self::List(frames) => frames.iter().map(Frame::bytes).collect(),
            Self::Rows(rows) => {
                let rows = rows.as_array();
                rows.into_outer_iter()
                    .map(|row| row.to_slice())
                    .collect::<Option<_>>()
                    .ok_or_else(|| {
                        PyValueError::new_err(
                            "the frames of the array are not contiguous: use \
                             numpy.ascontiguousarray",
                        )
                    })
            }
        }
    }
}
