//! `image-stream manage`: manager of a source and its receivers (docs/formats/images-control.md).
//!
//! ```text
//!  capabilities of all --> check --> arm all --> start receivers --> start source
//!                                                                        |
//!        pause source <-- overrun of a receiver <---------------------- run
//!        resume it   <-- room again, or time                             |
//!                                                                        v
//!                       report <-- stop receivers <-- stop source, or it has finished
//! ```

mod config;
mod link;
mod manager;
mod nodes;
mod pauses;
mod report;
mod shown;

use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use pollux_app::{DurationOption, Failure, ReportOptions};

use self::config::ManageConfig;
use self::manager::Manager;

/// Manage a run: configure, start and stop a source and its receivers
///
/// Asks each node what it is, checks that the regions of interest lie in the images, arms all nodes,
/// and starts the receivers, then the source. While a receiver is too slow, the source is paused. The
/// run ends when the source has sent its frames, or by Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Nodes and what each does, in TOML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    #[command(flatten)]
    duration: DurationOption,

    #[command(flatten)]
    report: ReportOptions,

    /// Print only errors and the report
    #[arg(short, long)]
    quiet: bool,
}

const AFTER_HELP: &str = r#"Configuration:
  resume_after_s = 10.0            # of a pause, where a node does not say that it has room [off]
  reply_timeout_s = 5.0            # for the reply to a request
  arm_timeout_s = 60.0             # for a node to open its ports and files
  finish_timeout_s = 60.0          # for a node to complete its files
  [source]
  control = "unix:/run/detector"   # or ADDRESS:PORT; see docs/formats/images-control.md
  frames = 1000                    # [as the node is configured]
  rate_hz = 100.0                  # [as the node is configured]
  [[receiver]]
  name = "viewer"                  # [its address]
  control = "10.0.0.2:9000"
  [[receiver.transfer]]            # any number
  name = "centre"
  region = [{ first_row = 128, rows = 256, first_column = 256, columns = 512 }]
  every = 10

Exit status: 0 if the run ended as asked, 1 if it failed, 2 if the command line or the configuration is
wrong or does not fit the nodes, in which case nothing was started."#;

/// Does what the command line asks for.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let config = ManageConfig::read(&args.config).map_err(Failure::Usage)?;
    let outputs = args.report.outputs()?;
    let reports = outputs.ready()?;
    let stop = pollux_app::stop_on_signals().context("signals cannot be handled")?;
    let mut manager = Manager::new(config, stop, args.duration.duration, args.quiet);
    manager.prepare()?;
    let report = manager.run();
    reports.tell(&report, |out| write!(out, "{report}"))?;
    match report.errors() {
        [] => Ok(()),
        errors => Err(Failure::Run(anyhow!("{}", errors.join("; ")))),
    }
}
