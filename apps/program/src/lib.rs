//! What every program of this project does in the same way: how it ends, what it logs, how it is
//! stopped, how it takes ports, and how it writes its report.
//!
//! | item | what |
//! | --- | --- |
//! | [`Failure`], [`exit`] | the exit status: 0, 1 for what failed, 2 for what cannot be asked |
//! | [`log_to_stderr`] | tracing |
//! | [`print()`], [`print_with`], [`say`] | text for people, whoever reads it |
//! | [`stop_on_signals`] | SIGINT and SIGTERM ask the loops to stop |
//! | [`reload_on_hangup`] | SIGHUP asks for the configuration to be read again |
//! | [`seconds`], [`address`] | a duration and an address on a command line |
//! | [`ClockOption`] | which clock the loops read |
//! | [`ports`] | ports as a command line names them |
//! | [`metrics`] | Prometheus `/metrics` |
//! | [`http`] | the server of metrics and of pages |
//! | [`ReportFile`], [`LedgerReport`] | the JSON report |
//! | [`can_be_written`] | whether there could be a file, without making one |

mod args;
mod exit;
pub mod http;
mod log;
pub mod metrics;
pub mod ports;
mod report;
mod say;
mod signals;

pub use args::{ClockOption, Cpus, address, seconds};
pub use exit::{Failure, exit};
pub use log::log_to_stderr;
pub use report::{LedgerReport, ReportFile, can_be_written};
pub use say::{print, print_with, say};
pub use signals::{Reload, reload_on_hangup, stop_on_signals};
