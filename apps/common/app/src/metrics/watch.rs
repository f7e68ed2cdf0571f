//! Metrics of a run: the option, the ledgers, and the link checks of housekeeping.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::routing::get;
use pollux_pmd::{Ledger, Port, Started};

use super::{Page, Source, routes};
use crate::address;
use crate::http::{Listener, Listeners, Server};
use crate::ports::PortView;

/// Interval of link checks. A check may enter the kernel, so it runs neither in each iteration nor
/// on each request of a page: clients must not determine the load.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Metrics option of every program that runs for long. Flatten it into the command line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
// No name as an argument group: other structs are called Options too.
#[group(skip)]
pub struct Options {
    /// Serve Prometheus metrics at http://ADDRESS:PORT/metrics during the run
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    metrics: Option<SocketAddr>,
}

impl Options {
    /// Address of the metrics server, if there is one.
    #[must_use]
    pub fn address(self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Listens on the address of the metrics server, if there is one: before the program creates files.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn listen(self) -> Result<Option<Listener>> {
        Ok(Listeners::bind(self.metrics, None)?.metrics)
    }
}

/// Metrics that every run exports: its ledger, its sent frames and its links.
pub struct Ledgers {
    /// Ledger of the whole run.
    pub ledger: Ledger,
    /// Ports of the run.
    pub ports: Vec<PortView>,
}

impl Source for Ledgers {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        page.ledger(&self.ledger)?;
        page.sent(self.ports.iter().map(|port| (port.spec(), port.sent())))?;
        page.links(&self.ports)
    }
}

/// Metrics server and link checks of a run. Dropping it ends the server.
pub struct Watch {
    _served: Option<Server>,
    ports: Vec<PortView>,
    looked: Instant,
}

impl Watch {
    /// Serves `source` at `listener`, if [there is one](Options::listen), from none of the CPUs in
    /// `loops`. `ports` are those whose links the source exports.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn start(
        listener: Option<Listener>,
        source: impl Source,
        ports: &[PortView],
        loops: &[usize],
    ) -> Result<Self> {
        let serve = |listener| {
            let hint = get(|| async { "Pollux: see /metrics\n" });
            let routes = routes(source).route("/", hint);
            let server = Server::start(listener, routes, loops)?;
            tracing::info!("metrics at http://{}/metrics", server.address());
            Ok::<_, anyhow::Error>(server)
        };
        Ok(Self {
            _served: listener.map(serve).transpose()?,
            ports: ports.to_vec(),
            looked: Instant::now(),
        })
    }

    /// Checks the links again when it is due. Housekeeping calls it in its iterations, with the
    /// ports in the order of their views. Returns whether the run can continue: when the device of
    /// any port is gone the run must end in order, since the owner may wait to get the device back.
    #[must_use]
    pub fn keep(&mut self, ports: &[Port<Started>]) -> bool {
        if self.looked.elapsed() < LOOK_EVERY {
            return true;
        }
        self.looked = Instant::now();
        let links = self.ports.iter().zip(ports);
        // All ports are checked, so that the views have the same age.
        links.fold(true, |all, (view, port)| all & !view.look(port).gone)
    }
}
