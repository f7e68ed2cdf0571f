//! Prometheus metrics of a running program.
//!
//! This module counts nothing. It renders each page on request from the views that the loops write
//! anyway, on a thread that is kept off the loops' cores.

mod page;
mod watch;

pub use page::{Labels, Page, Source, routes};
pub use watch::{Ledgers, Options, Watch};
