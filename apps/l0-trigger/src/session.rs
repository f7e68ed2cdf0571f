//! Runs one after the other, as somebody outside starts and stops them (`--control`).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::control::{Asked, Control, Server};
use crate::execution;
use crate::outputs::Naming;
use crate::plan::Plan;
use crate::run::Host;

/// How often the program looks up while it waits for a run.
const ROUND: Duration = Duration::from_millis(100);

/// Waits for runs at the socket `path`, until the program is to end. A run that fails is told to
/// those who ask, and ends nothing but itself.
pub fn keep(
    cli: &Cli,
    plan: &Plan,
    path: &Path,
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
    let _server = Server::start(path, Arc::clone(&control), &plan.cpus())?;
    tracing::info!("runs are controlled at {}", path.display());
    service.ready();
    service.status("no run");
    while !quit.is_set() {
        service.waits();
        let Some(asked) = control.next(ROUND) else {
            continue;
        };
        tracing::info!("run {} begins", asked.run);
        let host = Host {
            run: Some(asked.run),
            stop: asked.stop.clone(),
            quit: quit.clone(),
            reload: reload.clone(),
            service: &mut *service,
            is_alone: false,
        };
        let how = apart(cli, &asked, clock.clone(), host, &control);
        match &how {
            Ok(end) => tracing::info!("run {} has ended: {end}", asked.run),
            Err(error) => tracing::error!("run {} has failed: {error:#}", asked.run),
        }
        control.ended(&asked, &how);
        service.status("no run");
    }
    Ok(())
}

/// A run on a thread of its own: it stays off the loops' CPUs from then on, and the next run is to
/// find all CPUs again.
fn apart(
    cli: &Cli,
    asked: &Asked,
    clock: RunClock,
    host: Host<'_>,
    control: &Control,
) -> Result<&'static str> {
    let body = move || {
        let registry = pollux_program::ports::registry();
        // Read again: it may have changed since the last run.
        let plan = Plan::new(cli, &registry)?;
        let begun = &mut |counters: &Arc<_>| control.begun(counters);
        execution::one(cli, &plan, &asked.outputs, &registry, clock, host, begun)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("run".into());
        let panicked = |_| Err(anyhow!("its thread has panicked"));
        let running = thread.spawn_scoped(scope, body)?;
        running.join().unwrap_or_else(panicked)
    })
}
