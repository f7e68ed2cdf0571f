//! Application support that all programs of this project share: exit status, logs, signals, ports,
//! metrics and reports.
//!
//! | item | what |
//! | --- | --- |
//! | [`Failure`], [`exit`] | the exit status: 0, 1 for a failure, 2 for an invalid request |
//! | [`log_to_stderr`] | tracing |
//! | [`print()`], [`print_with`], [`user_message`] | user messages: text on standard output, lines on standard error |
//! | [`stop_on_signals`], [`patience`] | SIGINT, SIGTERM and SIGHUP ask the loops to stop, and to hurry |
//! | [`Service`] | notifications to a service manager: sd_notify, watchdog |
//! | [`stop_or_reload_on_signals`] | the same, but SIGHUP requests a reload of the configuration |
//! | [`seconds`], [`bytes`], [`Rates`] | times, sizes and rates on a command line |
//! | [`address`], [`Cpus`], [`place_loops`] | addresses and CPUs, and the CPU of each loop |
//! | [`ClockOption`] | clock that the loops read |
//! | [`ports`] | ports as a command line names them |
//! | [`metrics`] | Prometheus `/metrics` |
//! | [`Background`] | background thread for servers beside the loops |
//! | [`http`] | the server of metrics and of pages |
//! | [`page`] | what the pages of runs share |
//! | [`lines`] | the server of control links: a line of a client, a line as its answer |
//! | [`read_text`], [`read_up_to`] | input files that are read whole, up to a limit |
//! | [`NamedFile`], [`expect_distinct`] | files of a run that must be different ones |
//! | [`Output`], [`name_outputs`], [`Overwrite`] | output files, their names and numbers, and the overwrite rule |
//! | [`RotationOptions`], [`Rotation`], [`part`] | file rotation |
//! | [`ReportFile`], [`LedgerReport`] | the JSON report |
//! | [`ReportOptions`], [`Json`], [`Reports`] | `--report`; `--json`, with a file or without; destinations of reports |
//! | [`PortOption`], [`PortsOption`], [`DurationOption`] | positional ports or `--port`, and `--duration` |
//! | [`can_be_written`] | whether a file could be written, without creating it |

mod args;
mod background;
mod distinct;
mod exit;
pub mod http;
mod input;
mod json;
pub mod lines;
mod log;
mod messages;
pub mod metrics;
mod options;
mod output;
pub mod page;
mod placement;
pub mod ports;
mod report;
mod rotation;
mod service;
mod signals;
mod units;

pub use args::{ClockOption, Cpus, address};
pub use background::Background;
pub use distinct::{NamedFile, expect_distinct};
pub use exit::{Failure, exit};
pub use input::{read_text, read_up_to};
pub use json::{Json, Reports};
pub use log::log_to_stderr;
pub use messages::{print, print_with, user_message};
pub use options::{DurationOption, PortOption, PortsOption, ReportOptions, ReportOutputs};
pub use output::{BURST, NEXT_IN_HELP, Output, Overwrite, name_outputs, part};
pub use placement::place_loops;
pub use report::{LedgerReport, ReportFile, can_be_written, main_loss};
pub use rotation::{Rotation, RotationOptions};
pub use service::Service;
pub use signals::{Reload, patience, stop_on_signals, stop_or_reload_on_signals};
pub use units::{Rates, bytes, bytes_within, seconds, seconds_up_to, time_up_to};
