//! Counts the instructions that the hot loops execute, for each element that they handle, and
//! compares the counts with a baseline. Where the time of a loop depends on what else the machine
//! does, the number of its instructions does not.

mod baseline;
mod callgrind;
mod farm;
mod loops;
mod pipelines;
mod pmd;
mod rdma;
mod trigger;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use pollux_pmd::{ClockChoice, TscClock};

use crate::baseline::{Baseline, Platform};
use crate::loops::Loop;

/// Counts the instructions of the hot loops under valgrind and compares them with the baseline.
#[derive(Parser)]
struct Cli {
    /// Write the baseline instead; the commit that changes it says why.
    #[arg(long)]
    update: bool,
    /// The file of the baseline.
    #[arg(long, default_value = "benches/instructions/baseline.json")]
    baseline: PathBuf,
    /// Only the loops whose names contain this; prints their counts.
    #[arg(long, conflicts_with = "update")]
    only: Option<String>,
    #[command(subcommand)]
    inner: Option<Inner>,
}

/// What the program runs of itself under valgrind.
#[derive(Subcommand)]
enum Inner {
    /// Runs a loop.
    #[command(hide = true)]
    Run { name: String, rounds: u64 },
    /// Names the extensions of the CPU that code is chosen by.
    #[command(hide = true)]
    Features,
}

/// All loops, in the order of the report.
fn all() -> Vec<Loop> {
    let mut loops = pmd::all();
    loops.extend(rdma::all());
    loops.extend(farm::all());
    loops.extend(pipelines::all());
    loops.extend(trigger::all());
    loops
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match &cli.inner {
        Some(Inner::Run { name, rounds }) => {
            // Whatever valgrind says of the CPU: the same code is counted everywhere.
            TscClock::select(ClockChoice::Tsc)?;
            let all = all();
            let case = all.iter().find(|case| case.name == name);
            let mut round = (case.context("no such loop")?.make)()?;
            ensure!(
                (0..*rounds).all(|_| round()),
                "a round has not done its work"
            );
            Ok(ExitCode::SUCCESS)
        }
        Some(Inner::Features) => {
            println!("{}", baseline::cpu_features().join(" "));
            Ok(ExitCode::SUCCESS)
        }
        None => gate(&cli),
    }
}

fn gate(cli: &Cli) -> Result<ExitCode> {
    let mut loops = all();
    if let Some(part) = &cli.only {
        loops.retain(|case| case.name.contains(part.as_str()));
    }
    let counts = measure(&loops)?;
    if cli.only.is_some() {
        for (case, count) in loops.iter().zip(&counts) {
            println!("{:<24} {count:>10.2} per {}", case.name, case.element);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let now = Baseline {
        platform: Platform::here()?,
        instructions: loops
            .iter()
            .map(|case| case.name.to_owned())
            .zip(counts)
            .collect(),
    };
    if cli.update {
        now.write(&cli.baseline)?;
        println!("wrote {}", cli.baseline.display());
        return Ok(ExitCode::SUCCESS);
    }
    let old = Baseline::read(&cli.baseline)?;
    let Some(within) = baseline::compare(&old, &now, &loops) else {
        let (theirs, ours) = (old.platform, now.platform);
        println!("skipped: the baseline is of another platform: {theirs:?}");
        println!("than this: {ours:?}");
        return Ok(ExitCode::SUCCESS);
    };
    Ok(if within {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Instructions an element of each loop.
fn measure(loops: &[Loop]) -> Result<Vec<f64>> {
    let next = AtomicUsize::new(0);
    let counts: Vec<_> = loops.iter().map(|_| OnceLock::new()).collect();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(case), Some(count)) = (loops.get(at), counts.get(at)) else {
                        break;
                    };
                    // Each place is taken once.
                    let _ = count.set(callgrind::instructions(case));
                }
            });
        }
    });
    let count = |(count, case): (OnceLock<Result<f64>>, &Loop)| {
        let count = count.into_inner().context("not measured")?;
        count.with_context(|| case.name.to_owned())
    };
    counts.into_iter().zip(loops).map(count).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    #[test]
    fn the_loops_do_their_work() {
        for case in super::all() {
            let mut round = (case.make)().unwrap();
            assert!((0..100).all(|_| round()), "{}", case.name);
        }
    }
}
