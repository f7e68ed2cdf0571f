//! `pollux events`: what is in a file of L0 events.

mod json;
mod picture;
mod text;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::ValueEnum;
use pollux_pipelines::rich::find::Ring;
use pollux_pipelines::rich::particle::Particle;
use pollux_program::{Failure, Output, Overwrite, print, print_with, say};
use pollux_recording::{Event, Events};

/// Events that are read at a time.
const CHUNK: usize = 4096;

/// A unit of a time: 25/256 ns.
const FINE_NS: f64 = 25.0 / 256.0;

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
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The first event that is looked at
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: usize,

    /// Most events that are listed [default: all]
    #[arg(long, value_name = "N")]
    count: Option<usize>,

    /// Which events are listed
    #[arg(long, value_enum, default_value_t = Only::All)]
    only: Only,

    /// Print one event, with its rings and hits, instead of the list
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "count", "only"])]
    event: Option<usize>,

    /// Say which particle of this momentum each ring of that event is likely of, in GeV/c
    ///
    /// None fits whose radius is off by more than 5 standard deviations.
    #[arg(long, value_name = "P", requires = "event", value_parser = momentum)]
    momentum: Option<f64>,

    /// Print JSON instead of text, an object a line
    ///
    /// {run and burst (if the run has a number), event, timestamp (25 ns), sources, accepted, complete, late, monitored, truncated, disputed,
    /// rules, rule_set, hit_count, rings: [{disk, x, y, r (mm), hits, chi2 (mm2), time, time_spread (ns)}],
    /// hits: [[photomultiplier, time (ns)]]}; of an event file without hits, and without what a
    /// ring has from chi2 on. With --momentum a ring also has {particle, pull}: electron, muon or pion,
    /// and by how many standard deviations the radius is off; where that is more than 5 of each,
    /// {nearest, pull}.
    #[arg(long)]
    json: bool,

    /// Draw that event
    #[arg(long, value_name = "FILE", requires = "event")]
    svg: Option<PathBuf>,

    #[command(flatten)]
    overwrite: Overwrite,
}

/// What a ring is of, if its particle has a momentum.
enum Likely {
    /// Which, and by how many standard deviations the radius is off.
    Particle(Particle, f32),
    /// None; which is nearest, and how far off.
    Nothing(Particle, f32),
}

/// Farther off, in standard deviations, no particle makes a ring: of a million, none by chance.
const FARTHEST: f32 = 5.0;

impl Likely {
    /// `None` where no particle gives light at that momentum.
    fn of(ring: &Ring, momentum: f64) -> Option<Self> {
        let (particle, pull) = Particle::of_ring(ring, momentum)?;
        Some(if pull.abs() <= FARTHEST {
            Self::Particle(particle, pull)
        } else {
            Self::Nothing(particle, pull)
        })
    }
}

fn momentum(text: &str) -> Result<f64, String> {
    let momentum = text.parse().ok();
    let momentum = momentum.filter(|p: &f64| *p > 0.0 && p.is_finite());
    momentum.ok_or_else(|| "must be a number above 0".into())
}

/// Which events are listed.
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
    let mut events = Events::open(&args.file).map_err(anyhow::Error::from)?;
    if let Some(warning) = events.warning() {
        say(format_args!("warning: {warning}"));
    }
    match args.event {
        Some(number) => one(&mut events, number, args)?,
        None => list(&mut events, args)?,
    }
    Ok(())
}

fn one(events: &mut Events, number: usize, args: &Args) -> Result<(), Failure> {
    let read = events.read(number..number.saturating_add(1));
    let Some(event) = read.map_err(anyhow::Error::from)?.pop() else {
        let n = events.len();
        return Err(Failure::usage(anyhow!(
            "--event {number}: there are {n} events, numbered from 0"
        )));
    };
    let svg = args.svg.as_deref();
    let svg = svg.map(|path| Output::new("--svg", path, args.overwrite));
    let svg = svg.transpose().map_err(Failure::Usage)?;
    let run = events.run().map_err(anyhow::Error::from)?;
    print_with(|out| {
        if args.json {
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

fn list(events: &mut Events, args: &Args) -> anyhow::Result<()> {
    let mut left = args.count.unwrap_or(usize::MAX);
    let (mut number, mut listed) = (args.from, 0_u64);
    let run = events.run()?;
    let mut heard = args.json || print_with(text::head)?;
    while heard && left > 0 && number < events.len() {
        let chunk = events.read(number..number.saturating_add(CHUNK))?;
        heard = print_with(|out| {
            for event in &chunk {
                if left > 0 && args.only.wants(event) {
                    if args.json {
                        json::line(out, run, number, event, None)?;
                    } else {
                        text::line(out, number, event)?;
                    }
                    left -= 1;
                    listed += 1;
                }
                number += 1;
            }
            Ok(())
        })?;
    }
    if args.json {
        return Ok(());
    }
    let of_run = run.map_or_else(String::new, |run| format!(" of run {run}"));
    print(format_args!(
        "{listed} of {} events{of_run}\n",
        events.len()
    ))
}
