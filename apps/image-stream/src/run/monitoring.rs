//! Monitoring servers of a run: metrics and the page.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Result;
use pollux_app::http::{Listeners, Server};
use pollux_app::metrics::Watch;
use pollux_app::page::{About, Recorder, history};
use pollux_pmd::port::{Port, Started};

use super::counters::Counters;
use super::page::{self, Images, PageState};
use super::plan::Plan;
use crate::detector::Detector;

/// Servers that end when they are dropped.
pub struct Monitoring {
    watch: Watch,
    page: Option<(Server, Recorder<Counters>)>,
}

impl Monitoring {
    /// Serves at the addresses of the command line, which `listeners` has.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn open(
        listeners: Listeners,
        plan: &Plan,
        detector: &Detector,
        counters: &Arc<Counters>,
        images: Option<Images>,
    ) -> Result<Self> {
        let (options, loops) = (plan.options, plan.cpus());
        let views = &counters.books.ports;
        let watch = Watch::start(listeners.metrics, Arc::clone(counters), views, &loops)?;
        let page = match listeners.page.zip(images) {
            Some((listener, images)) => {
                let started = Instant::now();
                let (recorder, history) = history(Arc::clone(counters), started);
                let about = About::new(options.config.as_deref(), SystemTime::now(), None);
                let counters = Arc::clone(counters);
                let shown =
                    PageState::new(plan, detector, counters, history, about, started, images);
                Some((page::serve(listener, shown, &loops)?, recorder))
            }
            None => None,
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
