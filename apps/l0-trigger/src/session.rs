//! Sessions of runs that clients of the control socket start and stop (`--control`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use pollux_app::lines;

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::control::{Control, LINE, RequestedRun};
use crate::decision_output::DecisionHandler;
use crate::execution;
use crate::outputs::Naming;
use crate::plan::Plan;
use crate::registries::Registries;
use crate::supervisor::Host;

/// Interval at which the program checks its signals while it waits for a run.
const ROUND: Duration = Duration::from_millis(100);

/// Waits for runs at the socket `path`, until the program is to end. The failure of a run is
/// reported to clients, and ends only the run.
pub fn keep(
    (cli, plan): (&Cli, &Plan),
    path: &Path,
    runs: (&Registries, Option<&DecisionHandler>),
    naming: Naming,
    clock: &RunClock,
    host: Host<'_>,
) -> Result<()> {
    let Host {
        quit,
        reload,
        service,
        ..
    } = host;
    let control = Arc::new(Control::new(naming, reload.clone(), quit.clone()));
    let clients = Arc::clone(&control);
    let answers = lines::Service::new(LINE, move |line| clients.answer(line));
    let address = lines::Address::Unix(path.into());
    let _server = lines::Server::start("control", &address, answers, &plan.cpus())
        .with_context(|| format!("--control {}", path.display()))?;
    tracing::info!("runs are controlled at {}", path.display());
    service.ready();
    service.status("no run");
    while !quit.is_set() {
        service.waits();
        let Some(requested) = control.next(ROUND) else {
            continue;
        };
        tracing::info!("run {} begins", requested.run);
        let host = Host {
            run: Some(requested.run),
            stop: requested.stop.clone(),
            quit: quit.clone(),
            reload: reload.clone(),
            service: &mut *service,
            is_alone: false,
            prints_report: true,
        };
        let (how, is_reported) = apart(cli, &requested, runs, clock.clone(), host, &control);
        match &how {
            Ok(end) => tracing::info!("run {} has ended: {end}", requested.run),
            Err(error) => tracing::error!("run {} has failed: {error:#}", requested.run),
        }
        control.ended(&requested, &how, is_reported);
        service.status("no run");
    }
    Ok(())
}

/// A run on a separate thread: it stays off the loops' CPUs from then on, and the next run needs
/// all CPUs again. Returns its end, and whether it has written its report.
fn apart(
    cli: &Cli,
    requested: &RequestedRun,
    (registries, decisions): (&Registries, Option<&DecisionHandler>),
    clock: RunClock,
    host: Host<'_>,
    control: &Control,
) -> (Result<&'static str>, bool) {
    let body = move || -> Result<_> {
        // Read again, since it may have changed after the last run.
        let plan = Plan::new(cli, registries)?;
        let begun = &mut |counters: &Arc<_>| control.begun(counters);
        let (run, outputs) = ((cli, &plan), &requested.outputs);
        let decisions = decisions.cloned();
        let run = execution::execute(run, outputs, registries, clock, host, decisions, begun)?;
        Ok((run.result.map(|()| run.report.end), run.is_reported))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("run".into());
        let panicked = |_| Err(anyhow!("its thread has panicked"));
        let running = thread.spawn_scoped(scope, body)?;
        running.join().unwrap_or_else(panicked)
    })
    .unwrap_or_else(|error| (Err(error), false))
}
