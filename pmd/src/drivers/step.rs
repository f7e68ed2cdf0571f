//! Steps that the system can refuse.

use std::io;

/// A step of setting a port up that the system refused, in words.
pub(super) type Step = (&'static str, io::Error);
