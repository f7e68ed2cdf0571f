//! Run page: a single page without external assets, its data as JSON, and `/metrics`.
//!
//! | path | what |
//! | --- | --- |
//! | `/`, `/events.css`, `/events.js`, `/page.js` | the page |
//! | `/run.json` | the counters of the report so far, and the histograms |
//! | `/events.json?after=N` | sampled events with numbers above N |
//! | `/plane.json` | where the photomultipliers are |
//!
//! [`pollux_app::page`] has what the pages of all programs share.

mod event;
pub mod history;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::get;
use pollux_app::http::{Listener, Server};
use pollux_app::page::{self, About, Histogram, json, script, style};
use pollux_na62::rich::geometry::{PITCH_MM, PMS_PER_DISK, POSITIONS};
use pollux_output::OutputReport;
use serde::Serialize;

use crate::config::TriggerConfig;
use crate::counters::Counters;
use crate::event_display::EventDisplay;
use crate::file_counts::FileCounts;
use crate::report::{Counted, RecordingReport};
use crate::summary;
use event::{Event, Roads};
use history::{History, Now};

/// Unit of a hit's time: 25/256 ns.
const FINE_NS: f64 = 25.0 / 256.0;

/// Data of the page.
pub struct PageState {
    pub counters: Arc<Counters>,
    pub config: TriggerConfig,
    pub about: About,
    pub display: EventDisplay,
    pub history: History,
    pub started: Instant,
}

/// Serves the page at `listener` while the server exists, on none of the CPUs in `loops`.
pub fn serve(listener: Listener, shown: PageState, loops: &[usize]) -> Result<Server> {
    let server = Server::start(listener, routes(shown), loops)?;
    tracing::info!("the run page is at http://{}/", server.address());
    Ok(server)
}

fn routes(shown: PageState) -> Router {
    let shown = Arc::new(shown);
    let (of_run, of_events) = (Arc::clone(&shown), Arc::clone(&shown));
    let roads = Roads::of(&shown.config);
    let plane = serde_json::to_string(&Plane::default()).unwrap_or_default();
    page::routes(include_str!("index.html"), &shown.history)
        .route("/events.css", style(include_str!("events.css")))
        .route("/events.js", script(include_str!("events.js")))
        .route("/page.js", script(include_str!("page.js")))
        .route(
            "/plane.json",
            get(move || async move { page::json_text(plane.clone()) }),
        )
        .route("/run.json", get(move || async move { json(&of_run.run()) }))
        .route(
            "/events.json",
            get(move |RawQuery(query)| async move {
                match after(query.as_deref()) {
                    Some(after) => {
                        let show = |number, sample: &_| Event::of(number, sample, roads);
                        json(&of_events.display.after(after, show))
                    }
                    None => StatusCode::BAD_REQUEST.into_response(),
                }
            }),
        )
}

/// The number in `after=N`; 0 without a query.
fn after(query: Option<&str>) -> Option<u64> {
    query.map_or(Some(0), |query| query.strip_prefix("after=")?.parse().ok())
}

/// `/plane.json`.
#[derive(Serialize)]
struct Plane {
    disks: [&'static str; 2],
    per_disk: usize,
    pitch_mm: f32,
    fine_ns: f64,
    /// By photomultiplier, from the centre of its disk.
    positions_mm: Vec<[f32; 2]>,
}

impl Default for Plane {
    fn default() -> Self {
        Self {
            disks: ["Jura", "Salève"],
            per_disk: PMS_PER_DISK,
            pitch_mm: PITCH_MM,
            fine_ns: FINE_NS,
            positions_mm: POSITIONS.to_vec(),
        }
    }
}

/// `/run.json`.
#[derive(Serialize)]
struct Run<'a> {
    version: &'static str,
    about: &'a About,
    uptime_s: f64,
    now: Now,
    #[serde(flatten)]
    counted: Counted,
    histograms: Vec<Histogram>,
    /// As in the report, up to now.
    recording: Option<RecordingReport>,
    record: Option<RecordingReport>,
    outputs: Vec<OutputReport>,
    sampling: Sampling,
}

#[derive(Serialize)]
struct Sampling {
    missed: u64,
}

impl PageState {
    fn run(&self) -> Run<'_> {
        let latency = self.counters.latency.iter();
        let histograms = latency.map(|(stage, times)| Histogram::of(stage, times));
        let gaps = Histogram::of("gaps", &self.counters.gaps);
        let so_far = |file: &Option<Arc<FileCounts>>| file.as_deref().map(FileCounts::so_far);
        let files = &self.counters.files;
        let outputs = self.counters.outputs.iter();
        Run {
            version: env!("CARGO_PKG_VERSION"),
            about: &self.about,
            now: history::now(&self.history),
            uptime_s: self.started.elapsed().as_secs_f64(),
            counted: summary::counted(&self.config, &self.counters),
            histograms: histograms.chain([gaps]).collect(),
            recording: so_far(&files.recording),
            record: so_far(&files.record),
            outputs: outputs
                .map(|output| output.counts.report(&output.spec))
                .collect(),
            sampling: Sampling {
                missed: self.display.missed(),
            },
        }
    }
}
