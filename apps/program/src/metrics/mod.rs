//! Prometheus metrics of a running program: what to count, and a server that is asked for it.
//!
//! Nothing is counted here: a page is made from the views that loops write anyway, when it is
//! asked for, on a thread that is kept off the loops' cores.

mod page;
mod server;
mod watch;

pub use page::{Labels, Page, Source};
pub use server::Server;
pub use watch::{Books, Options, Watch};
