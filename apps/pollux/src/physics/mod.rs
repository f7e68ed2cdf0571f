//! `pollux physics`: how well rings are found, against the truth of emulated events.

mod page;
mod plot;
mod study;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use pollux_pipelines::rich::find;
use pollux_program::{Failure, ReportFile, print};
use serde::Serialize;

use self::study::{Row, Study};

/// Measure how well rings are found, against the truth of emulated events.
///
/// Events with one to four rings, with noise and with other events in their slot are made from the
/// seed, and the rings that are found in their hits are held against those that were made. A ring is
/// asked for if it has at least 5 hits, its centre is inside the acceptance, and no other centre on
/// the disk is nearer than one pitch of the photomultipliers. It is found if a fitted ring has its
/// centre within 20 mm and its radius within 10 mm. A signal ends the study with the rows that it
/// has by then.
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

    /// How several rings are looked for
    #[arg(long, value_enum, default_value_t = Method::Triplets)]
    method: Method,

    /// Write the rows as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write physics.md and its plots, with both methods, into this folder
    #[arg(long, value_name = "FOLDER")]
    docs: Option<PathBuf>,
}

/// How several rings are looked for.
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

/// The report for machines.
#[derive(Serialize)]
struct Report<'a> {
    rows: &'a [Row],
}

/// Runs the sub-command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let stop = pollux_program::stop_on_signals().context("cannot handle signals")?;
    // Before the work: a path that cannot be written is told at once.
    let json = args.json.as_deref();
    let json = json.map(|path| ReportFile::create_as("--json", path));
    let json = json.transpose()?;
    if let Some(folder) = &args.docs {
        fs::read_dir(folder).with_context(|| format!("--docs {}", folder.display()))?;
    }
    let study = |method: Method| {
        Study {
            seed: args.seed,
            events: args.events,
            method: method.into(),
        }
        .rows(&stop)
    };
    let rows = study(args.method)?;
    let printed = print(page::table(&rows));
    if let Some(json) = json {
        json.write(&Report { rows: &rows })?;
    }
    printed?;
    if let Some(folder) = &args.docs {
        let (triplets, grid) = match args.method {
            Method::Triplets => (rows, study(Method::CentreGrid)?),
            Method::CentreGrid => (study(Method::Triplets)?, rows),
        };
        if stop.is_set() {
            return Err(anyhow!(
                "--docs {}: not written, as a signal ended the study",
                folder.display()
            )
            .into());
        }
        for (name, text) in page::files(args.seed, args.events, &triplets, &grid) {
            write(&folder.join(name), &text)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("--docs {}", path.display()))
}
