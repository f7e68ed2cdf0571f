//! Page of a run: a single page without external assets, its data as JSON, and `/metrics`.
//!
//! | path | what |
//! | --- | --- |
//! | `/`, `/page.js` | the page |
//! | `/run.json` | the counts so far, and the histogram of the latency |
//!
//! [`pollux_app::page`] has what the pages of all programs share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Result;
use axum::routing::get;
use pollux_app::LedgerReport;
use pollux_app::http::{Listener, Server};
use pollux_app::page::{self, About, Histogram, Recorder, Sampled, history, json, script};
use pollux_app::ports::{PortView, Traffic};
use serde::Serialize;

use super::counters::Shown;
use super::plan::Plan;

/// A page that is served, and the recorder of its history.
pub struct ServedPage {
    _server: Server,
    recorder: Recorder<Shown>,
}

impl ServedPage {
    /// Serves the page at `listener`, on none of the CPUs of the loops.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn start(listener: Listener, plan: &Plan, shown: &Arc<Shown>) -> Result<Self> {
        let started = Instant::now();
        let (recorder, history) = history(Arc::clone(shown), started);
        let state = Arc::new(PageState {
            shown: Arc::clone(shown),
            about: About::new(plan.asked.file.as_deref(), SystemTime::now(), None),
            started,
        });
        let routes = page::routes(include_str!("index.html"), &history)
            .route("/page.js", script(include_str!("page.js")))
            .route("/run.json", get(move || async move { json(&state.run()) }));
        let server = Server::start(listener, routes, &plan.cpus())?;
        tracing::info!("the run page is at http://{}/", server.address());
        Ok(Self {
            _server: server,
            recorder,
        })
    }

    /// Records the counts at their interval.
    pub fn keep(&mut self) {
        self.recorder.keep();
    }
}

struct PageState {
    shown: Arc<Shown>,
    about: About,
    started: Instant,
}

/// `/run.json`.
#[derive(Serialize)]
struct Run<'a> {
    version: &'static str,
    about: &'a About,
    uptime_s: f64,
    events: Events,
    /// Free receive buffers by column.
    free: Vec<u64>,
    ports: Vec<Traffic>,
    ledger: LedgerReport,
    histograms: Vec<Histogram>,
}

#[derive(Serialize)]
struct Events {
    triggered: u64,
    refused: u64,
    decided: u64,
    accepted: u64,
    incomplete: u64,
    resent: u64,
    in_flight: u64,
    pending: u64,
    excluded: u64,
}

impl PageState {
    /// The ports of this process, and of the others.
    fn ports(&self) -> Vec<Traffic> {
        let own = self.shown.books.ports.iter().map(PortView::traffic);
        let others = self.shown.processes.ports().into_iter();
        own.chain(others.map(|(_, traffic)| traffic)).collect()
    }

    fn run(&self) -> Run<'_> {
        let (counts, books) = (&self.shown.counts, &self.shown.books);
        Run {
            version: env!("CARGO_PKG_VERSION"),
            about: &self.about,
            uptime_s: self.started.elapsed().as_secs_f64(),
            events: Events {
                triggered: counts.triggered.get(),
                refused: counts.refused.get(),
                decided: counts.decided.get(),
                accepted: counts.accepted.get(),
                incomplete: counts.incomplete.get(),
                resent: counts.resent.get(),
                in_flight: counts.in_flight.get(),
                pending: counts.pending.get(),
                excluded: counts.excluded.get(),
            },
            free: counts.free.iter().map(pollux_pmd::Count::get).collect(),
            ports: self.ports(),
            ledger: books.ledger.balance().into(),
            histograms: vec![Histogram::of("decision", &self.shown.latency)],
        }
    }
}

/// The counts at a moment.
#[derive(Clone, Debug, Serialize)]
pub struct Note {
    uptime_s: f64,
    decided: u64,
    accepted: u64,
    incomplete: u64,
    resent: u64,
    /// Frames from the wire.
    frames: u64,
    dropped: BTreeMap<&'static str, u64>,
}

impl Sampled for Shown {
    type Note = Note;
    type Mark = ();

    fn note(&self, uptime_s: f64) -> Note {
        let balance = self.books.ledger.balance();
        Note {
            uptime_s,
            decided: self.counts.decided.get(),
            accepted: self.counts.accepted.get(),
            incomplete: self.counts.incomplete.get(),
            resent: self.counts.resent.get(),
            frames: balance.from_wire,
            dropped: balance
                .drops()
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
        }
    }

    fn mark(&self) {}
}
