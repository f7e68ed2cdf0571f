//! The exceptions `SpecError` and `PortError`.

use pollux_embed::EmbedError;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(
    pollux,
    SpecError,
    PyValueError,
    "A port spec or an option is wrong, and nothing was opened. The message has the remedy."
);
create_exception!(
    pollux,
    PortError,
    PyOSError,
    "A port cannot be opened, used or closed. The message has the remedy."
);

/// The exception of an error.
pub(crate) fn raised(error: &EmbedError) -> PyErr {
    let text = error.to_string();
    match error {
        // No option of the port is wrong, but a value.
        EmbedError::FrameLength { .. } => PyValueError::new_err(text),
        error if error.is_usage() => SpecError::new_err(text),
        _ => PortError::new_err(text),
    }
}
