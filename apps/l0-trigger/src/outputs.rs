//! The files of a run, by the names that they will have.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use pollux_program::{Output, ReportOptions, Rotation, RotationOptions, name_outputs};

use crate::cli::Cli;

/// The options of runs and their files.
#[derive(Debug, clap::Args)]
pub struct RunOptions {
    /// Number of the run: in the report, in the files of events, and for {run} in the names of files
    ///
    /// Events in files say their burst then, and {burst} in the name of --events-out or --record has a
    /// file for each burst: r{run}-{burst}.events is r0007-00001.events, then r0007-00002.events.
    #[arg(long, value_name = "NUMBER")]
    pub run: Option<u32>,

    /// Wait for runs, which are started and stopped at a Unix socket (docs/formats/control.md)
    #[arg(long, value_name = "PATH", conflicts_with = "run")]
    pub control: Option<PathBuf>,

    /// When a file of --record is full: FILE's name gets a number then, run_00001.h5
    #[command(flatten)]
    pub rotation: RotationOptions,
}

/// Where a run goes. A file that is there already is refused before anything is opened.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// Number of the run.
    pub run: Option<u32>,
    /// Of `--events-out`.
    pub recording: Option<Output>,
    /// Of `--record`.
    pub record: Option<Output>,
    #[cfg_attr(not(feature = "hdf5"), expect(dead_code))]
    pub rotation: Rotation,
    pub report: Option<Output>,
    /// Of `--json FILE`.
    pub json: Option<Output>,
    /// Whether the report is printed as JSON.
    pub prints_json: bool,
}

/// What the command line says of the files of each run.
#[derive(Clone, Debug)]
pub struct Naming {
    events_out: Option<PathBuf>,
    record: Option<PathBuf>,
    reports: ReportOptions,
    rotation: Rotation,
}

impl Naming {
    pub fn of(cli: &Cli) -> Result<Self> {
        let rotation = cli.runs.rotation.rotation()?;
        ensure!(
            !rotation.is_on() || cli.record.is_some(),
            "--file-size and --file-seconds are for the files of --record"
        );
        Ok(Self {
            events_out: cli.events_out.clone(),
            record: cli.record.clone(),
            reports: cli.report.clone(),
            rotation,
        })
    }

    /// The files of a run.
    pub fn name(&self, run: Option<u32>) -> Result<Outputs> {
        let [report, json] = &self.reports.files();
        let files = [
            ("--events-out", &self.events_out),
            ("--record", &self.record),
            (report.0, &report.1),
            (json.0, &json.1),
        ];
        let overwrite = self.reports.overwrite;
        let [recording, record, report, json] = name_outputs(&files, run, overwrite)?;
        for output in [&report, &json].into_iter().flatten() {
            ensure!(
                !output.is_by_burst(),
                "{}: a run has one report; {} is for the files of --events-out and --record",
                output.name(),
                pollux_program::BURST
            );
        }
        let rotation = self.rotation;
        if let Some(record) = record.as_ref().filter(|_| rotation.is_on()) {
            record.expect_free_parts()?;
        }
        Ok(Outputs {
            run,
            recording,
            record,
            rotation,
            report,
            json,
            prints_json: self.reports.prints_json(),
        })
    }
}
