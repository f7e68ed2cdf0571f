//! What every program of this project does in the same way: how it ends, what it logs, how it is
//! stopped, how it takes ports, and how it writes its report.
//!
//! | item | what |
//! | --- | --- |
//! | [`Failure`], [`exit`] | the exit status: 0, 1 for what failed, 2 for what cannot be asked |
//! | [`log_to_stderr`] | tracing |
//! | [`print()`], [`print_with`], [`say`] | text for people, whoever reads it |
//! | [`stop_on_signals`], [`patience`] | SIGINT and SIGTERM ask the loops to stop, and to hurry |
//! | [`Service`] | what a service manager is told: sd_notify, watchdog |
//! | [`reload_on_hangup`] | SIGHUP asks for the configuration to be read again |
//! | [`seconds`], [`bytes`], [`Rates`] | times, sizes and rates on a command line |
//! | [`address`], [`Cpus`] | addresses and CPUs |
//! | [`ClockOption`] | which clock the loops read |
//! | [`ports`] | ports as a command line names them |
//! | [`metrics`] | Prometheus `/metrics` |
//! | [`Background`] | a thread beside the loops that answers somebody outside |
//! | [`http`] | the server of metrics and of pages |
//! | [`Output`], [`name_outputs`], [`Overwrite`] | files, their names and numbers, and those that are there |
//! | [`RotationOptions`], [`Rotation`], [`part`] | one file after the other |
//! | [`ReportFile`], [`LedgerReport`] | the JSON report |
//! | [`ReportOptions`], [`Json`], [`Reports`] | `--report`; `--json`, with a file or without; where reports go |
//! | [`PortOption`], [`PortsOption`], [`DurationOption`] | ports in front or by `--port`, and `--duration` |
//! | [`can_be_written`] | whether there could be a file, without making one |

mod args;
mod background;
mod exit;
pub mod http;
mod json;
mod log;
pub mod metrics;
mod options;
mod output;
pub mod ports;
mod report;
mod rotation;
mod say;
mod service;
mod signals;
mod units;

pub use args::{ClockOption, Cpus, address};
pub use background::Background;
pub use exit::{Failure, exit};
pub use json::{Json, Reports};
pub use log::log_to_stderr;
pub use options::{DurationOption, PortOption, PortsOption, ReportOptions, ReportOutputs};
pub use output::{BURST, Output, Overwrite, name_outputs, part};
pub use report::{LedgerReport, ReportFile, can_be_written};
pub use rotation::{Rotation, RotationOptions};
pub use say::{print, print_with, say};
pub use service::Service;
pub use signals::{Reload, patience, reload_on_hangup, stop_on_signals};
pub use units::{Rates, bytes, bytes_within, seconds, seconds_up_to, time_up_to};
