//! `pollux physics`: measures the ring finder against the truth of emulated events.

mod page;
mod plot;
mod report;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use pollux_app::{Failure, NamedFile, ReportOptions};
use pollux_na62::physics::model::ModelConfig;
use pollux_na62::rich::find::{self, FinderConfig};
use pollux_pmd::lcore::StopFlag;

use self::report::{Inputs, Report};
use crate::supervisor::SCHEMA;
use pollux_na62::physics::study::momentum::{MomentumRow, SeparationRow, separation};
use pollux_na62::physics::study::{Row, Study};

/// Measure the efficiency and purity of ring finding against the truth of emulated events
///
/// Events with one to four rings, with noise and with other events in their slot are made from the
/// seed, and the rings found in their hits are compared with the true ones. A true ring is required
/// to be found if it has at least 5 hits, its centre is inside the acceptance, and no other centre
/// on the disk is nearer than one pitch of the photomultipliers. It is found if a fitted ring has
/// its centre within 20 mm and its radius within 10 mm; by purity, if at least 70 % of the hits of
/// a fitted ring are its own. Then follow single rings of muons, pions and electrons against
/// momentum, and the separation of pions from muons. A signal ends the study with the rows so far.
///
/// Example: pollux physics --seed 7 --json physics.json
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 when the study ended, 1 when a file cannot be or was not written, 2 on a wrong option."
)]
pub(crate) struct Args {
    /// Seed of the events
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Events for each row
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    events: u64,

    /// Method of finding several rings
    #[arg(long, value_enum, default_value_t = Method::Triplets)]
    method: Method,

    /// Number of searches of hits whose rings are in doubt
    #[arg(long, value_name = "N", default_value_t = FinderConfig::default().searches, value_parser = clap::value_parser!(u8).range(1..=8))]
    searches: u8,

    #[command(flatten)]
    report: ReportOptions,

    /// Write physics.md and its plots, with both methods, into this folder, over existing ones
    #[arg(long, value_name = "FOLDER")]
    docs: Option<PathBuf>,
}

/// Ring finding method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Circles through three hits.
    Triplets,
    /// Histograms of distances over a grid of centres.
    CentreGrid,
}

impl From<Method> for find::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Triplets => Self::Triplets,
            Method::CentreGrid => Self::CentreGrid,
        }
    }
}

/// All rows of one method.
struct Found {
    inputs: Inputs,
    rows: Vec<Row>,
    shared: Vec<Row>,
    momentum: Vec<MomentumRow>,
    separation: Vec<SeparationRow>,
}

impl Found {
    fn by(study: &Study, stop: &StopFlag) -> anyhow::Result<Self> {
        let (rows, shared) = (study.rows(stop)?, study.shared(stop)?);
        let momentum = study.momenta(stop)?;
        Ok(Self {
            inputs: Inputs {
                seed: study.seed,
                events: study.events,
                model: ModelConfig::default(),
                finder: study.finder,
            },
            rows,
            shared,
            separation: separation(&momentum),
            momentum,
        })
    }

    fn report(&self) -> Report<'_> {
        let Inputs {
            seed,
            events,
            model,
            finder,
        } = self.inputs;
        Report {
            schema: SCHEMA,
            inputs: Inputs {
                seed,
                events,
                model,
                finder,
            },
            rows: &self.rows,
            shared: &self.shared,
            momentum: &self.momentum,
            separation: &self.separation,
        }
    }
}

/// Runs the sub-command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    // Before the work, so that an unwritable path is reported at once.
    let reports = args.report.outputs()?;
    let page = args.docs.iter().map(|folder| {
        let path = folder.join("physics.md");
        NamedFile::written(format!("--docs {}", path.display()), &path)
    });
    reports.expect_beside(&page.collect::<Vec<_>>())?;
    let reports = reports.ready()?;
    if let Some(folder) = &args.docs {
        fs::read_dir(folder).with_context(|| format!("--docs {}", folder.display()))?;
    }
    let study = |method: Method| Study {
        seed: args.seed,
        events: args.events,
        finder: FinderConfig {
            method: method.into(),
            searches: args.searches,
            ..FinderConfig::default()
        },
    };
    let found = Found::by(&study(args.method), &stop)?;
    let report = found.report();
    reports.tell(&report, |out| {
        write!(
            out,
            "{}\n{}\n{}\n{}",
            page::table(report.rows),
            page::table(report.shared),
            page::momenta(report.momentum),
            page::separation(report.separation)
        )
    })?;
    if let Some(folder) = &args.docs {
        // The page describes triplets; of the other method it shows the first rows only.
        let files = match args.method {
            Method::Triplets => {
                let rows = study(Method::CentreGrid).rows(&stop);
                page::files(&report, &rows.map_err(anyhow::Error::from)?)
            }
            Method::CentreGrid => {
                let triplets = Found::by(&study(Method::Triplets), &stop)?;
                page::files(&triplets.report(), &found.rows)
            }
        };
        if stop.is_set() {
            return Err(anyhow!(
                "--docs {}: not written, as a signal ended the study",
                folder.display()
            )
            .into());
        }
        for (name, text) in files {
            write(&folder.join(name), &text)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("--docs {}", path.display()))
}
