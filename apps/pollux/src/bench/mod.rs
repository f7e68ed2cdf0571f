//! `pollux bench`: throughput measurement; the highest rate between two ports without loss.

mod args;
mod plot;
mod report;
mod search;
mod stand;
mod trial;

use std::io::Write as _;

use anyhow::Context as _;
use pollux_app::{Failure, NamedFile, Output, user_message};
use pollux_pmd::Registry;

pub(crate) use self::args::Args;
use self::args::CHECK_SEQUENCE;
use self::report::{Report, SizeReport};
use self::search::{Critical, Search};
use self::stand::{Plan, Stand};
use self::trial::Tried;
use crate::payload::{Content, Pattern};
use crate::scale::scaled;
use crate::supervisor::Supervisor;

/// Limit on repetitions of a disturbed trial.
const ATTEMPTS: u32 = 4;

/// Runs all searches, and writes the report.
pub(crate) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    let ports: Vec<_> = args.ports().into_iter().map(|(spec, ..)| spec).collect();
    let supervisor = Supervisor::new(&args.run, &ports)?;
    args.check(&supervisor)?;
    let plot = args.plot.as_deref();
    let plot = plot.map(|path| Output::new("--plot", path, args.run.report.overwrite));
    let plot = plot.transpose().map_err(Failure::Usage)?;
    let files = ports.iter().flat_map(|spec| NamedFile::of_port(spec));
    let files = files.chain(plot.as_ref().map(Output::file));
    supervisor.expect_beside(&files.collect::<Vec<_>>())?;
    let (rig, ledger, pool, flows, filtered) = args.start(registry)?;
    let drawing = plot.as_ref().map(Output::create).transpose()?;
    let begun =
        supervisor.begin(&[&vec!["sender"; args.queues.into()][..], &["receiver"]].concat())?;
    let content = Content::new(Pattern::Random, 1, usize::from(args.longest()));
    let on = (&supervisor, &begun);
    let mut stand = Stand::new(on, (rig, ledger), pool, content, flows)?;

    let mut sizes = Vec::new();
    if stand.wait_for_links()? {
        for &size in &args.sizes {
            sizes.push(args.search(&mut stand, size, &supervisor)?);
            if stand.is_over() {
                break;
            }
        }
    }
    let complete = !stand.is_over();
    let (ledger, views, stopped) = stand.stop();
    let elapsed = begun.elapsed();
    let mut ended = begun.end(Vec::<()>::new(), elapsed);
    let base = ended.base("bench", &views, &ledger);
    let report = Report::new(base, args, complete, sizes);
    ended.finish(&report, &ledger, stopped)?;
    if ledger.balance().delivered == 0 {
        filtered.tell();
    }
    if let (Some(plot), Some(mut file)) = (plot, drawing) {
        let written = file.write_all(plot::svg(&report.sizes).as_bytes());
        written.with_context(|| plot.name())?;
    }
    Ok(())
}

impl Args {
    /// Searches for the critical rate of one size.
    fn search(
        &self,
        stand: &mut Stand<'_>,
        size: u16,
        supervisor: &Supervisor,
    ) -> Result<SizeReport, Failure> {
        let mut search = Search::new(self.rate_min, self.rate_max, self.tolerance);
        let mut tried: Vec<Tried> = Vec::new();
        let mut disturbed = false;
        while !disturbed
            && !stand.is_over()
            && let Some(rate) = search.next()
        {
            // The median may return to an earlier value.
            let again = tried.iter().position(|at| at.rate.total_cmp(&rate).is_eq());
            let mut at = again.map_or_else(
                || {
                    let at = Tried::new(rate);
                    let of = format!("{size} B at {rate:.0} pps");
                    supervisor.latencies.add(of, at.latency.view());
                    at
                },
                |i| tried.swap_remove(i),
            );
            let before = (at.sum.judged(), at.sum.loss_free);
            let plan = Plan {
                rate,
                bytes: size - CHECK_SEQUENCE,
                duration: self.trial,
                settle: self.settle,
            };
            for _ in 0..ATTEMPTS * self.trials {
                let (trial, latency) = stand.trial(plan, at.latency)?;
                at.latency = latency;
                let Some(trial) = trial else { break };
                at.sum.add(&trial, self.loss_tolerance);
                if at.sum.judged() - before.0 == self.trials {
                    break;
                }
            }
            let judged = at.sum.judged() - before.0;
            if judged > 0 {
                search.observe(rate, judged, at.sum.loss_free - before.1);
            }
            disturbed = judged == 0 && at.sum.trials() > 0 && !stand.is_over();
            if at.sum.trials() > 0 && !supervisor.is_quiet() {
                user_message(progress(size, &at, search.critical()));
            }
            if at.sum.trials() > 0 {
                tried.push(at);
            }
        }
        let critical = if disturbed {
            Critical::Disturbed
        } else {
            search.critical()
        };
        Ok(SizeReport::new(size, critical, tried))
    }
}

/// One line on the current result.
fn progress(size: u16, Tried { rate, sum, .. }: &Tried, critical: Critical) -> String {
    let known = match critical {
        Critical::Unknown | Critical::Disturbed => String::new(),
        Critical::BelowMin => "; critical below the lowest rate".into(),
        Critical::AboveMax => "; critical above the highest rate".into(),
        Critical::Within { low, high, .. } => {
            format!("; critical {}pps to {}pps", scaled(low), scaled(high))
        }
    };
    format!(
        "{size:5} B {:>9}pps: {} of {} trials loss-free, {} not reached, {} disturbed{known}",
        scaled(*rate),
        sum.loss_free,
        sum.trials(),
        sum.not_reached,
        sum.disturbed
    )
}
