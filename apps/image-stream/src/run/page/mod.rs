//! Page of a run: its images, its curves, and its counters.
//!
//! | path | what |
//! | --- | --- |
//! | `/`, `/image.css`, `/colours.js`, `/image.js`, `/curve.js`, `/page.js` | the page |
//! | `/run.json` | the report so far, the detector, and the histograms |
//! | `/image.bin?view=V&row=R&column=C&rows=N&columns=M&factor=F&frame=N` | a picture: docs/images.md |
//! | `/curve.json` | the radial curve of the latest image that has one, and the mean of all |
//!
//! [`pollux_app::page`] has what the pages of all programs share. The image loop is asked for an image
//! through a [`Tap`] only when a client asks.

mod axis;
mod display;
mod exposure;
mod history;
mod picture;
mod query;
mod tap;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use pollux_app::http::{Listener, Server};
use pollux_app::page::{self, About, Histogram, bytes, json, ready_within, script, style};
use pollux_app::ports::{PortView, Traffic};
use pollux_images::receive::Stored;
use pollux_pmd::TscClock;
use serde::Serialize;

pub use self::picture::Shown;
pub use self::tap::Tap;

use self::axis::Axis;
use self::display::{Display, FRESH, Pictures};
use self::exposure::View;
use self::history::{History, Now};
use self::query::Query;
use super::counters::Counters;
use super::plan::Plan;
use super::report::{Ended, Report};
use crate::detector::Detector;

/// For so long a request waits for a fresh picture; then it gets the last one.
const PATIENCE: Duration = Duration::from_millis(300);

/// The display of a run's images.
pub struct Images {
    pictures: Box<dyn Pictures>,
    /// Whether there are mean and maximum of all images.
    has_statistics: bool,
    has_curves: bool,
}

/// Display and tap of a run, if it has a page. `mask` is true for bad pixels.
///
/// # Errors
/// An axis of the curves that is refused.
pub fn images<P: Stored + Shown>(
    plan: &Plan,
    mask: &[bool],
    has_statistics: bool,
) -> Result<(Option<Images>, Option<Tap<P>>)> {
    if plan.options.http.is_none() {
        return Ok((None, None));
    }
    let layout = &plan.layout;
    let axis = if has_statistics {
        Axis::of(&plan.config.stage, layout.image(), mask)?
    } else {
        None
    };
    let has_curves = axis.is_some();
    let (rows, clock) = (layout.module().rows, TscClock::get());
    let shape = layout.image();
    let (display, tap) = Display::<P>::new(shape, rows, axis, FRESH, clock).context("--http")?;
    let images = Images {
        pictures: Box::new(display),
        has_statistics,
        has_curves,
    };
    Ok((Some(images), Some(tap)))
}

/// Data of the page.
pub struct PageState {
    pub counters: Arc<Counters>,
    pub about: About,
    pub history: History,
    pub started: Instant,
    pub detector: DetectorFacts,
    /// Bytes of an image as the detector sends it.
    pub raw_bytes: usize,
    pictures: Mutex<Box<dyn Pictures>>,
}

/// The detector, on the page.
#[derive(Clone, Debug, Serialize)]
pub struct DetectorFacts {
    description: String,
    rows: usize,
    columns: usize,
    module_rows: usize,
    /// `photons`, or `raw`.
    unit: &'static str,
    /// Row and column.
    beam: [f64; 2],
    distance_m: f64,
    pixel_m: f64,
    energy_ev: f64,
    statistics: bool,
    curves: bool,
}

impl PageState {
    /// Data of the page of a run.
    pub fn new(
        plan: &Plan,
        detector: &Detector,
        counters: Arc<Counters>,
        history: History,
        about: About,
        started: Instant,
        images: Images,
    ) -> Self {
        let [column, row] = detector.beam_center;
        let is_raw = plan.pixels().is_none();
        let facts = DetectorFacts {
            description: detector.description.clone(),
            rows: detector.shape.rows,
            columns: detector.shape.columns,
            module_rows: plan.layout.module().rows,
            unit: if is_raw { "raw" } else { "photons" },
            beam: [row, column],
            distance_m: detector.distance,
            pixel_m: detector.pixel_size[0],
            energy_ev: detector.photon_energy,
            statistics: images.has_statistics,
            curves: images.has_curves,
        };
        Self {
            counters,
            about,
            history,
            started,
            detector: facts,
            raw_bytes: plan.layout.image_bytes(),
            pictures: Mutex::new(images.pictures),
        }
    }

    fn pictures(&self) -> MutexGuard<'_, Box<dyn Pictures>> {
        self.pictures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits a little for a fresh view.
    async fn ask(&self, view: View) {
        ready_within(PATIENCE, || self.pictures().ask(view)).await;
    }

    async fn picture(&self, query: Option<&str>) -> Response {
        let query = match Query::parse(query) {
            Ok(query) => query,
            Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
        };
        if matches!(query.view, View::Mean | View::Maximum) && !self.detector.statistics {
            let why = "raw images have neither mean nor maximum\n";
            return (StatusCode::NOT_FOUND, why).into_response();
        }
        if query.frame.is_none() {
            self.ask(query.view).await;
        }
        match self.pictures().picture(&query) {
            Some(picture) => bytes(picture),
            None => StatusCode::NO_CONTENT.into_response(),
        }
    }

    async fn curves(&self) -> Response {
        if !self.detector.curves {
            return (StatusCode::NOT_FOUND, "there is no stage integrate\n").into_response();
        }
        self.ask(View::Curve).await;
        match self.pictures().curves() {
            Some(curves) => json(&curves),
            None => StatusCode::NO_CONTENT.into_response(),
        }
    }

    fn run(&self) -> Run<'_> {
        let uptime_s = self.started.elapsed().as_secs_f64();
        let latency = self.counters.latency.iter();
        let histograms = latency.map(|(stage, times)| Histogram::of(stage, times));
        let gaps = Histogram::of("gaps", &self.counters.gaps);
        let ended = Ended {
            end: "running",
            duration_s: uptime_s,
            raw_bytes: self.raw_bytes,
            emulator: None,
        };
        let ports = self.counters.books.ports.iter();
        Run {
            version: env!("CARGO_PKG_VERSION"),
            about: &self.about,
            uptime_s,
            raw_bytes: self.raw_bytes,
            detector: &self.detector,
            ports: ports.map(PortView::traffic).collect(),
            now: history::now(&self.history),
            histograms: histograms.chain([gaps]).collect(),
            report: Report::new(&self.counters, ended),
        }
    }
}

/// `/run.json`.
#[derive(Serialize)]
struct Run<'a> {
    version: &'static str,
    about: &'a About,
    uptime_s: f64,
    raw_bytes: usize,
    detector: &'a DetectorFacts,
    ports: Vec<Traffic>,
    now: Now,
    histograms: Vec<Histogram>,
    #[serde(flatten)]
    report: Report,
}

/// Serves the page at `listener` while the server exists, on none of the CPUs in `loops`.
///
/// # Errors
/// A thread that cannot be started.
pub fn serve(listener: Listener, shown: PageState, loops: &[usize]) -> Result<Server> {
    let server = Server::start(listener, routes(shown), loops)?;
    tracing::info!("the run page is at http://{}/", server.address());
    Ok(server)
}

fn routes(shown: PageState) -> Router {
    let shown = Arc::new(shown);
    let (of_run, of_curves) = (Arc::clone(&shown), Arc::clone(&shown));
    page::routes(include_str!("index.html"), &shown.history)
        .route("/image.css", style(include_str!("image.css")))
        .route("/colours.js", script(include_str!("colours.js")))
        .route("/image.js", script(include_str!("image.js")))
        .route("/curve.js", script(include_str!("curve.js")))
        .route("/page.js", script(include_str!("page.js")))
        .route("/run.json", get(move || async move { json(&of_run.run()) }))
        .route(
            "/curve.json",
            get(move || async move { of_curves.curves().await }),
        )
        .route(
            "/image.bin",
            get(move |RawQuery(query)| async move { shown.picture(query.as_deref()).await }),
        )
}

#[cfg(test)]
mod tests;
