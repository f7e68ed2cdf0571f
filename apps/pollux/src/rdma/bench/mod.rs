//! `pollux rdma bench`: rate and latency of remote memory access between two cores.

mod args;
mod ends;
mod loops;
mod patience;
mod plan;
mod report;
mod shared;
mod side;
#[cfg(test)]
mod tests;
mod verify;

use anyhow::Context as _;
use pollux_app::{Failure, NamedFile, place_loops, print};
use pollux_pmd::Registry;
use pollux_pmd::lcore::StopFlag;

pub(super) use self::args::Args;
use self::ends::{Ends, Pair};
use self::plan::Plan;
use self::report::{Report, Row};
use super::counts::Counts;
use crate::supervisor::SCHEMA;

/// Runs all measurements, and writes the report.
pub(super) fn run(args: &Args, registry: &Registry) -> Result<(), Failure> {
    args.check().map_err(Failure::Usage)?;
    let cores = place_loops(&args.cores(), &[("requester", 1), ("responder", 1)]);
    let cores = cores.map_err(Failure::Usage)?;
    let outputs = args.report.outputs()?;
    let files = args
        .ports
        .iter()
        .flat_map(|spec| NamedFile::of_port(spec))
        .collect::<Vec<_>>();
    outputs.expect_beside(&files)?;
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let mut ends = Ends::open(args, registry)?;
    let reports = outputs.ready()?;
    let (mut rows, mut complete) = (Vec::new(), true);
    let mut measured = Ok(());
    for plan in args.plans() {
        complete = !stop.is_set();
        if !complete {
            break;
        }
        match measure(args, plan, &mut ends, &cores, &stop) {
            // A signal came before there was anything to be told.
            Ok(None) => {}
            Ok(Some(row)) => {
                if !args.report.prints_json() {
                    print(format_args!("{row}\n"))?;
                }
                rows.push(row);
            }
            Err(error) => {
                measured = Err(error.context(plan));
                break;
            }
        }
    }
    complete &= !stop.is_set() && measured.is_ok();
    let (counts, ledger) = ends.end()?;
    let report = Report {
        schema: SCHEMA,
        command: "rdma bench",
        back_end: if args.ports.is_empty() { "shm" } else { "roce" },
        ports: args.ports.clone(),
        cores,
        mtu: args.mtu.bytes(),
        depth: args.depth,
        complete,
        rows,
        ledger: ledger.balance().into(),
        rdma: counts.map(Counts::from),
    };
    reports.tell(&report, |out| write!(out, "{report}"))?;
    measured?;
    ledger.check().map_err(anyhow::Error::from)?;
    Ok(())
}

/// One measurement, on queue pairs and memory of its own, and the comparison of the data. `None` if a signal
/// came before a request was measured.
fn measure(
    args: &Args,
    plan: Plan,
    ends: &mut Ends,
    cores: &[Option<usize>],
    stop: &StopFlag,
) -> anyhow::Result<Option<Row>> {
    let pair = Pair::new(args, plan, ends)?;
    let Some(result) = loops::run(plan, ends, pair, cores, stop)? else {
        return Ok(None);
    };
    verify::compare(plan, &result)?;
    Ok(Some(Row::new(plan, &result)))
}
