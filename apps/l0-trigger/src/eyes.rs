//! What a run is seen by while it lasts: metrics and the page.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use pollux_program::http::Server;
use pollux_program::metrics::Watch;

use crate::cli::Cli;
use crate::page::{self, Shown};
use crate::plan::Plan;
use crate::setup::Setup;

/// Servers that end when they are dropped.
pub struct Eyes {
    pub watch: Watch,
    _page: Option<Server>,
}

impl Eyes {
    /// Listens where the command line says.
    pub fn open(cli: &Cli, plan: &Plan, setup: &Setup) -> Result<Self> {
        let loops = plan.cpus();
        let counters = &setup.counters;
        let views = &counters.books.ports;
        let watch = Watch::start(cli.metrics, Arc::clone(counters), views, &loops)?;
        let page = match (cli.http, &setup.collector) {
            (Some(address), Some(collector)) => {
                let shown = Shown {
                    counters: Arc::clone(counters),
                    config: plan.config.clone(),
                    gallery: collector.gallery(),
                    started: Instant::now(),
                };
                Some(page::serve(address, shown, &loops)?)
            }
            _ => None,
        };
        Ok(Self { watch, _page: page })
    }
}
