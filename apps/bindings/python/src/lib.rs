//! The extension module `pollux._pollux`: `pollux-embed` as Python classes. The package `pollux`
//! (`python/pollux`) re-exports it, with the types in `__init__.pyi`.

mod batch;
mod column;
mod error;
mod l0;
mod port;
mod ports;
mod send;
mod shared;
mod view;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
#[pyo3(name = "_pollux")]
mod extension {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::error::{PortError, SpecError};
    #[pymodule_export]
    use crate::l0::L0Run;
    #[pymodule_export]
    use crate::port::{Port, open};
    #[pymodule_export]
    use crate::ports::ports_json;
}
