//! Run page: a single page without external assets, its data as JSON, and `/metrics`.
//!
//! | path | what |
//! | --- | --- |
//! | `/`, `/page.css`, `/parts.js`, `/plots.js`, `/events.js`, `/page.js` | the page |
//! | `/run.json` | the counters of the report so far, and the histograms |
//! | `/minute.json`, `/history.json` | what the counters were, second by second and since the start |
//! | `/events.json?after=N` | sampled events with numbers above N |
//! | `/plane.json` | where the photomultipliers are |
//! | `/metrics` | for Prometheus |

mod event;
pub mod history;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Result;
use axum::Router;
use axum::extract::RawQuery;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use pollux_app::http::Server;
use pollux_app::metrics;
use pollux_na62::rich::geometry::{PITCH_MM, PMS_PER_DISK, POSITIONS};
use pollux_pmd::LatencyView;
use serde::Serialize;

use crate::config::TriggerConfig;
use crate::counters::Counters;
use crate::event_display::EventDisplay;
use crate::file_counts::FileCounts;
use crate::report::{Counted, RecordingReport};
use crate::summary;
use event::{Event, Roads};
use history::{History, Now};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";

/// Nothing is loaded from other sources, whatever the page contains.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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

/// Identification of the run.
#[derive(Serialize)]
pub struct About {
    /// Name of the machine.
    host: String,
    /// In seconds since 1970-01-01 UTC.
    started_unix_s: f64,
    /// Name of the configuration; null for the built-in one.
    config: Option<String>,
    /// Its number, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u32>,
}

impl About {
    pub fn new(config: Option<&Path>, started: SystemTime, run: Option<u32>) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
        Self {
            host: host.unwrap_or_default().trim().to_owned(),
            started_unix_s: event::unix_s(started),
            config: config.map(|path| path.display().to_string()),
            run,
        }
    }
}

/// Serves the page on `address` while the server exists, on none of the CPUs in `loops`.
pub fn serve(address: SocketAddr, shown: PageState, loops: &[usize]) -> Result<Server> {
    let server = Server::start(address, "the run page", routes(shown), loops)?;
    tracing::info!("the run page is at http://{}/", server.address());
    Ok(server)
}

fn routes(shown: PageState) -> Router {
    let asset =
        |kind: &'static str, text: &'static str| get(move || async move { text_of(kind, text) });
    let shown = Arc::new(shown);
    let (of_run, of_events) = (Arc::clone(&shown), Arc::clone(&shown));
    let (of_minute, of_past) = (shown.history.clone(), shown.history.clone());
    let roads = Roads::of(&shown.config);
    let plane = serde_json::to_string(&Plane::default()).unwrap_or_default();
    metrics::routes(Arc::clone(&shown.counters))
        .route("/", asset(HTML, include_str!("index.html")))
        .route("/page.css", asset(CSS, include_str!("page.css")))
        .route("/parts.js", asset(SCRIPT, include_str!("parts.js")))
        .route("/plots.js", asset(SCRIPT, include_str!("plots.js")))
        .route("/events.js", asset(SCRIPT, include_str!("events.js")))
        .route("/page.js", asset(SCRIPT, include_str!("page.js")))
        .route(
            "/plane.json",
            get(move || async move { text_of(JSON, plane.clone()) }),
        )
        .route("/run.json", get(move || async move { json(&of_run.run()) }))
        .route(
            "/minute.json",
            get(move || async move { json(&of_minute.minute()) }),
        )
        .route(
            "/history.json",
            get(move || async move { json(&of_past.run()) }),
        )
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

fn text_of(kind: &'static str, text: impl IntoResponse) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => text_of(JSON, text),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
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
    sampling: Sampling,
}

/// Times of a stage: number of times below each power of two of nanoseconds, without those below
/// the previous power.
#[derive(Serialize)]
struct Histogram {
    stage: String,
    octaves: Vec<(u64, u64)>,
}

#[derive(Serialize)]
struct Sampling {
    missed: u64,
}

impl Histogram {
    fn of(stage: &str, times: &LatencyView) -> Self {
        Self {
            stage: stage.into(),
            octaves: times.octaves().collect(),
        }
    }
}

impl PageState {
    fn run(&self) -> Run<'_> {
        let latency = self.counters.latency.iter();
        let histograms = latency.map(|(stage, times)| Histogram::of(stage, times));
        let gaps = Histogram::of("gaps", &self.counters.gaps);
        let so_far = |file: &Option<Arc<FileCounts>>| file.as_deref().map(FileCounts::so_far);
        let files = &self.counters.files;
        Run {
            version: env!("CARGO_PKG_VERSION"),
            about: &self.about,
            now: self.history.now(),
            uptime_s: self.started.elapsed().as_secs_f64(),
            counted: summary::counted(&self.config, &self.counters),
            histograms: histograms.chain([gaps]).collect(),
            recording: so_far(&files.recording),
            record: so_far(&files.record),
            sampling: Sampling {
                missed: self.display.missed(),
            },
        }
    }
}
