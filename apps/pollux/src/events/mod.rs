//! `pollux events`: lists, prints and draws the events of an L0 event file.

mod hypothesis;
mod json;
mod picture;
mod text;
mod units;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use pollux_app::{
    Failure, Json, NamedFile, Output, Overwrite, expect_distinct, name_outputs, print, print_with,
    user_message,
};
use pollux_recording::{Event, Events};

/// Events read at a time.
const CHUNK: usize = 4096;

/// List, print and draw the events of a file
///
/// Reads event files (l0-trigger --events-out) and, in programs built with --features hdf5,
/// recordings with hits (l0-trigger --record). Events are numbered from 0, in the order of their
/// decisions.
///
/// Examples:
///   pollux events run.h5 --only accepted --count 20
///   pollux events run.h5 --event 7 --svg event.svg
///   pollux events run.h5 --event 7 --momentum 20
///   pollux events run.h5 --json | jq -c 'select(.late)'
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit status: 0, 1 when the file cannot be read or the picture not be written, 2 on a wrong option."
)]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE", required_unless_present = "json")]
    file: Option<PathBuf>,

    /// First event to process
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: usize,

    /// Maximum number of listed events [default: all]
    #[arg(long, value_name = "N")]
    count: Option<usize>,

    /// Selection of events
    #[arg(long, value_enum, default_value_t = Only::All)]
    only: Only,

    /// Print one event, with its rings and hits, instead of the list
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "count", "only"])]
    event: Option<usize>,

    /// Print the most likely particle with this momentum for each ring of that event, in GeV/c
    ///
    /// None if its radius is off by more than 5 standard deviations for all particles.
    #[arg(long, value_name = "P", requires = "event", value_parser = momentum)]
    momentum: Option<f64>,

    /// Print JSON instead of text, an object a line; with FILE, write it there in addition to the
    /// text
    ///
    /// Give it after the input file, or as --json=FILE: the next argument is taken as the file,
    /// unless there is no other.
    ///
    /// {run and burst (if the run has a number), event, timestamp (25 ns), sources, accepted, complete, late, monitored, truncated, disputed,
    /// rules, rule_set, hit_count, rings: [{disk, x, y, r (mm), hits, chi2 (mm2), time, time_spread (ns)}],
    /// hits: [[photomultiplier, time (ns)]]}; of an event file without hits, and without what a
    /// ring has from chi2 on. With --momentum a ring also has {particle, pull}: electron, muon or pion,
    /// and by how many standard deviations the radius is off; where that is more than 5 of each,
    /// {nearest, pull}.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = Json::STDOUT)]
    json: Option<Json>,

    /// Draw that event
    #[arg(long, value_name = "FILE", requires = "event")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

fn momentum(text: &str) -> Result<f64, String> {
    let momentum = text.parse().ok();
    let momentum = momentum.filter(|p: &f64| *p > 0.0 && p.is_finite());
    momentum.ok_or_else(|| "must be a number above 0".into())
}

/// Selection of the listed events.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    All,
    Accepted,
    Rejected,
}

impl Only {
    fn wants(self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Accepted => event.facts.accepted,
            Self::Rejected => !event.facts.accepted,
        }
    }
}

/// Runs the sub-command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (file, json) = args.files()?;
    let prints_json = Json::is_printed(json.as_ref());
    let files = [
        ("--json", &Json::file_of(json.as_ref())),
        ("--svg", &args.svg),
    ];
    let [json, svg] = name_outputs(&files, None, args.overwrite).map_err(Failure::Usage)?;
    let written = [&json, &svg].into_iter().flatten().map(Output::file);
    let read = [NamedFile::read("FILE", &file)];
    let all: Vec<_> = read.into_iter().chain(written).collect();
    expect_distinct(&all).map_err(Failure::Usage)?;
    let mut events = Events::open(&file).map_err(anyhow::Error::from)?;
    if let Some(warning) = events.warning() {
        user_message(format_args!("warning: {warning}"));
    }
    match args.event {
        Some(number) => one(&mut events, number, args, prints_json, (json, svg))?,
        None => list(&mut events, args, prints_json, json)?,
    }
    Ok(())
}

impl Args {
    /// The input file, and the destination of JSON. The value of `--json` is the input file if
    /// there is no other.
    fn files(&self) -> Result<(PathBuf, Option<Json>), Failure> {
        let json = self.json.clone();
        if let Some(file) = &self.file {
            return Ok((file.clone(), json));
        }
        let file = Json::file_of(json.as_ref());
        let file = file.context("no file is given: name the one to read");
        let printed = Json::from(OsString::from(Json::STDOUT));
        Ok((file.map_err(Failure::Usage)?, Some(printed)))
    }
}

/// A file for lines of JSON.
struct Lines(Option<(Output, BufWriter<File>)>);

impl Lines {
    fn create(output: Option<Output>) -> anyhow::Result<Self> {
        let created = output.map(|output| {
            let file = BufWriter::new(output.create()?);
            anyhow::Ok((output, file))
        });
        created.transpose().map(Self)
    }

    fn write(&mut self, line: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        match &mut self.0 {
            Some((output, file)) => line(file).with_context(|| output.name()),
            None => Ok(()),
        }
    }

    /// Whether the file does not exist.
    fn is_none(&self) -> bool {
        self.0.is_none()
    }

    fn finish(self) -> anyhow::Result<()> {
        match self.0 {
            Some((output, mut file)) => file.flush().with_context(|| output.name()),
            None => Ok(()),
        }
    }
}

fn one(
    events: &mut Events,
    number: usize,
    args: &Args,
    prints_json: bool,
    (json, svg): (Option<Output>, Option<Output>),
) -> Result<(), Failure> {
    let read = events.read(number..number.saturating_add(1));
    let Some(event) = read.map_err(anyhow::Error::from)?.pop() else {
        let n = events.len();
        return Err(Failure::usage(anyhow!(
            "--event {number}: there are {n} events, numbered from 0"
        )));
    };
    let mut lines = Lines::create(json)?;
    let run = events.run().map_err(anyhow::Error::from)?;
    lines.write(|out| json::line(out, run, number, &event, args.momentum))?;
    lines.finish()?;
    print_with(|out| {
        if prints_json {
            return json::line(out, run, number, &event, args.momentum);
        }
        if let Some(run) = run {
            writeln!(out, "run        {run}")?;
        }
        text::event(out, number, &event, args.momentum)
    })?;
    if let Some(svg) = svg {
        let drawn = picture::svg(number, &event);
        let written = svg.create()?.write_all(drawn.as_bytes());
        written.with_context(|| svg.name())?;
    }
    Ok(())
}

fn list(
    events: &mut Events,
    args: &Args,
    prints_json: bool,
    json: Option<Output>,
) -> anyhow::Result<()> {
    let mut lines = Lines::create(json)?;
    let mut left = args.count.unwrap_or(usize::MAX);
    let (mut number, mut listed) = (args.from, 0);
    let run = events.run()?;
    let mut heard = prints_json || print_with(text::head)?;
    while (heard || !lines.is_none()) && left > 0 && number < events.len() {
        let chunk = events.read(number..number.saturating_add(CHUNK))?;
        let numbered = chunk.iter().zip(number..);
        let wanted: Vec<_> = numbered
            .filter(|(event, _)| args.only.wants(event))
            .take(left)
            .collect();
        for &(event, number) in &wanted {
            lines.write(|out| json::line(out, run, number, event, None))?;
        }
        // A closed standard output does not stop output to a file.
        heard = heard
            && print_with(|out| {
                wanted.iter().try_for_each(|&(event, number)| {
                    if prints_json {
                        json::line(out, run, number, event, None)
                    } else {
                        text::line(out, number, event)
                    }
                })
            })?;
        left -= wanted.len();
        listed += wanted.len();
        number += chunk.len();
    }
    lines.finish()?;
    if prints_json || !heard {
        return Ok(());
    }
    let of_run = run.map_or_else(String::new, |run| format!(" of run {run}"));
    print(format_args!(
        "{listed} of {} events{of_run}\n",
        events.len()
    ))
}
