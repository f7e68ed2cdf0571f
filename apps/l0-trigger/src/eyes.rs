//! What a run is seen by while it lasts: metrics and the page.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Result;
use pollux_pmd::{Port, Started};
use pollux_program::http::Server;
use pollux_program::metrics::Watch;

use crate::cli::Cli;
use crate::page::history::{self, Recorder};
use crate::page::{self, About, Shown};
use crate::plan::Plan;
use crate::setup::Setup;

/// Servers that end when they are dropped.
pub struct Eyes {
    watch: Watch,
    page: Option<(Server, Recorder)>,
}

impl Eyes {
    /// Listens where the command line says.
    pub fn open(cli: &Cli, plan: &Plan, setup: &Setup, run: Option<u32>) -> Result<Self> {
        let loops = plan.cpus();
        let counters = &setup.counters;
        let views = &counters.books.ports;
        let watch = Watch::start(cli.metrics, Arc::clone(counters), views, &loops)?;
        let page = match (cli.http, &setup.collector) {
            (Some(address), Some(collector)) => {
                let started = Instant::now();
                let (recorder, history) = history::history(Arc::clone(counters), started);
                let shown = Shown {
                    counters: Arc::clone(counters),
                    config: plan.config.clone(),
                    about: About::new(cli.config.as_deref(), SystemTime::now(), run),
                    gallery: collector.gallery(),
                    history,
                    started,
                };
                Some((page::serve(address, shown, &loops)?, recorder))
            }
            _ => None,
        };
        Ok(Self { watch, page })
    }

    /// Looks at the links, and notes what the counters are, if it is time; for the rounds of
    /// housekeeping. Whether the run can go on, as [`Watch::keep`] says.
    #[must_use]
    pub fn keep(&mut self, ports: &[Port<Started>]) -> bool {
        if let Some((_, recorder)) = &mut self.page {
            recorder.keep();
        }
        self.watch.keep(ports)
    }
}
