//! Runs that a manager starts and stops (`--control`, docs/formats/images-control.md): the program is a
//! receiver node of an image stream.

mod node;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use pollux_app::Failure;
use pollux_app::lines::{Address, Events, Server, Service};
use pollux_images::control::{Arm, ArmedRun, Event, MAX_LINE, Session};

use self::node::Receiver;
use crate::cli::RunOptions;
use crate::run::{self, Counters, Follow, Host, Plan};

/// For so long the end of the program waits for clients to be told about it.
const PATIENCE: Duration = Duration::from_millis(500);

/// A run of the session, as the run itself sees it.
struct Managed<'a> {
    session: &'a Session<Receiver>,
    run: &'a ArmedRun,
}

impl Follow for Managed<'_> {
    fn ready(&self, counters: &Arc<Counters>, waits: bool) {
        let node = self.session.node();
        node.counters.store(Some(Arc::clone(counters)));
        self.session.ready();
        if waits {
            // A run that is stopped before its start ends as soon as it has begun.
            self.session.wait_for_start(self.run);
        }
    }

    fn publish(&self, event: Event) {
        self.session.publish(event);
    }
}

/// Executes the runs that managers arm at `address`, until a signal ends the program. A run that fails ends
/// alone: its reason goes to the clients and to the log.
///
/// # Errors
/// A wrong option or configuration; an address where it cannot listen.
pub fn keep(options: &RunOptions, address: &Address) -> Result<(), Failure> {
    options.clock.select()?;
    let plan = Plan::new(options, &[]).map_err(Failure::Usage)?;
    let quit = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let events = Events::default();
    let publish = events.clone();
    let session = Arc::new(Session::new(Receiver::new(&plan), move |line| {
        publish.send(line);
    }));
    let clients = Arc::clone(&session);
    let service = Service::new(MAX_LINE, move |line| clients.answer(line)).with_events(&events);
    let server = Server::start("control", address, service, &plan.cpus())
        .with_context(|| format!("--control {address}"))?;
    tracing::info!("runs are controlled at {}", server.address());
    session.serve(&quit, |run| {
        tracing::info!("a run is armed");
        let managed = Managed {
            session: &session,
            run,
        };
        let ended = perform(options, &managed);
        match &ended {
            Ok(()) => tracing::info!("the run has ended"),
            Err(error) => tracing::error!("the run has failed: {error:#}"),
        }
        ended.map_err(|error| format!("{error:#}"))
    });
    events.flush(PATIENCE);
    Ok(())
}

/// A run, with the configuration and the names of files as they are now.
fn perform(options: &RunOptions, managed: &Managed<'_>) -> anyhow::Result<()> {
    let Arm::Transfers(armed) = &managed.run.arm else {
        // The session has refused it.
        return Err(anyhow!("this is a receiver: arm it with `transfers`"));
    };
    managed.session.node().counters.store(None);
    let plan = Plan::new(options, armed)?;
    let host = Host::managed(managed.run.stop.clone(), managed);
    run::perform(&plan, &host).map_err(|failure| match failure {
        Failure::Usage(error) | Failure::Run(error) => error,
    })
}
