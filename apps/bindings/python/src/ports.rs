//! The ports that can be opened on this machine.

use pollux_machine::Sys;
use pollux_machine::catalogue::Catalogue;
use pollux_pmd::Registry;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The JSON text of `pollux ports --json`.
#[pyfunction]
pub(crate) fn ports_json() -> PyResult<String> {
    let catalogue = Catalogue::of(&Sys::new("/"), &Registry::builtin());
    serde_json::to_string(&catalogue).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
