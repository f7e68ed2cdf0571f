//! Set-up steps that the system can refuse.

use std::io;

/// Description of a refused set-up step of a port, with the error of the system.
pub(super) type Step = (&'static str, io::Error);
