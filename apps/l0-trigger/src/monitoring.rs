//! Monitoring servers of a run: metrics and the page.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Result;
use pollux_app::http::{Listeners, Server};
use pollux_app::metrics::Watch;
use pollux_app::page::{About, Recorder, history};
use pollux_pmd::{Port, Started};

use crate::cli::Cli;
use crate::counters::Counters;
use crate::page::{self, PageState};
use crate::plan::Plan;
use crate::setup::Setup;

/// Servers that end when they are dropped.
pub struct Monitoring {
    watch: Watch,
    page: Option<(Server, Recorder<Counters>)>,
}

impl Monitoring {
    /// Serves at the addresses of the command line, which `listeners` has.
    pub fn open(
        listeners: Listeners,
        (cli, plan): (&Cli, &Plan),
        setup: &Setup,
        run: Option<u32>,
    ) -> Result<Self> {
        let loops = plan.cpus();
        let counters = &setup.counters;
        let views = &counters.ledgers.ports;
        let watch = Watch::start(listeners.metrics, Arc::clone(counters), views, &loops)?;
        let page = match (listeners.page, &setup.collector) {
            (Some(listener), Some(collector)) => {
                let started = Instant::now();
                let (recorder, history) = history(Arc::clone(counters), started);
                let shown = PageState {
                    counters: Arc::clone(counters),
                    config: plan.config.clone(),
                    about: About::new(cli.config.as_deref(), SystemTime::now(), run),
                    display: collector.display(),
                    history,
                    started,
                };
                Some((page::serve(listener, shown, &loops)?, recorder))
            }
            _ => None,
        };
        Ok(Self { watch, page })
    }

    /// Reads the links, and records the counters at their interval; for the iterations of
    /// housekeeping. Returns whether the run can continue, as [`Watch::keep`].
    #[must_use]
    pub fn keep(&mut self, ports: &[Port<Started>]) -> bool {
        if let Some((_, recorder)) = &mut self.page {
            recorder.keep();
        }
        self.watch.keep(ports)
    }
}
