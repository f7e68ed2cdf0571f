//! Metrics as a run has them: the option, the books, and the links that housekeeping looks after.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::routing::get;
use pollux_pmd::{Ledger, Port, Started};

use super::{Page, Source, routes};
use crate::address;
use crate::http::Server;
use crate::ports::PortView;

/// How often links are looked at. It may enter the kernel, so neither in each round, nor whenever a
/// page is asked for: whoever asks does not decide how busy the machine is.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The option of every program that runs for long; flattened into its command line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
// Without a name among the groups of options: others are called Options too.
#[group(skip)]
pub struct Options {
    /// Serve Prometheus metrics at http://ADDRESS:PORT/metrics while the run lasts
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    metrics: Option<SocketAddr>,
}

impl Options {
    /// Where they are served, if they are.
    #[must_use]
    pub fn address(self) -> Option<SocketAddr> {
        self.metrics
    }
}

/// What every run has to show: where its frames are, what was sent, and its links.
pub struct Books {
    /// Of all places of the run.
    pub ledger: Ledger,
    /// Its ports.
    pub ports: Vec<PortView>,
}

impl Source for Books {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        page.ledger(&self.ledger)?;
        page.sent(self.ports.iter().map(|port| (port.spec(), port.sent())))?;
        page.links(&self.ports)
    }
}

/// The metrics of a run while it lasts: dropping it ends the server.
pub struct Watch {
    _served: Option<Server>,
    ports: Vec<PortView>,
    looked: Instant,
}

impl Watch {
    /// Serves `source`, if `options` ask for it, from none of the CPUs in `loops`. `ports` are
    /// those whose links the source shows.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn start(
        options: Options,
        source: impl Source,
        ports: &[PortView],
        loops: &[usize],
    ) -> Result<Self> {
        let serve = |address| {
            let hint = get(|| async { "Pollux: see /metrics\n" });
            let routes = routes(source).route("/", hint);
            let server = Server::start(address, "metrics", routes, loops)?;
            tracing::info!("metrics at http://{}/metrics", server.address());
            Ok::<_, anyhow::Error>(server)
        };
        Ok(Self {
            _served: options.metrics.map(serve).transpose()?,
            ports: ports.to_vec(),
            looked: Instant::now(),
        })
    }

    /// Looks at the links again, if it is time; for the rounds of housekeeping, which has the ports,
    /// in the order of their views. Whether the run can go on: it is to end in order where the
    /// device of a port is gone, whatever the other ports, as its owner may wait for it to be given
    /// back.
    #[must_use]
    pub fn keep(&mut self, ports: &[Port<Started>]) -> bool {
        if self.looked.elapsed() < LOOK_EVERY {
            return true;
        }
        self.looked = Instant::now();
        let links = self.ports.iter().zip(ports);
        // Each of them, so that the views are all of now.
        links.fold(true, |all, (view, port)| all & !view.look(port).gone)
    }
}
