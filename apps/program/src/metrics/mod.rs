//! Prometheus metrics of a running program: what to count, and the page that shows it.
//!
//! Nothing is counted here: a page is made from the views that loops write anyway, when it is
//! asked for, on a thread that is kept off the loops' cores.

mod page;
mod watch;

pub use page::{Labels, Page, Source, routes};
pub use watch::{Books, Options, Watch};
