//! Output files of a run, by their names.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use pollux_app::{NamedFile, Output, ReportOptions, Rotation, expect_distinct, name_outputs};

use crate::cli::Cli;
use crate::plan::Plan;

/// Outputs of a run. An existing file is refused before anything is opened.
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

/// Output options of the command line, for each run.
#[derive(Clone, Debug)]
pub struct Naming {
    events_out: Option<PathBuf>,
    record: Option<PathBuf>,
    reports: ReportOptions,
    rotation: Rotation,
    /// Files of the inputs and of the ports.
    others: Vec<NamedFile>,
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
            others: cli.files(),
        })
    }

    /// Adds the files of the plan's outputs.
    pub fn beside(mut self, plan: &Plan) -> Self {
        let ports = plan.outputs.iter().filter_map(|output| output.plan.port());
        self.others.extend(ports.flat_map(NamedFile::of_port));
        self
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
                pollux_app::BURST
            );
        }
        let named = [&recording, &record, &report, &json];
        let named = named.into_iter().flatten().map(Output::file);
        let all = named.chain(self.others.iter().cloned());
        expect_distinct(&all.collect::<Vec<_>>())?;
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
