//! Page of a run: what the pages of all programs share. It loads nothing from other sources.
//!
//! | path | what |
//! | --- | --- |
//! | `/` | the page of the program |
//! | `/page.css`, `/parts.js`, `/plots.js`, `/poll.js` | style and scripts of every page |
//! | `/minute.json`, `/history.json` | what the counters were, second by second and since the start |
//! | `/metrics` | for Prometheus |
//!
//! A program adds `/run.json`, from which `poll.js` draws it, and scripts of its own.

mod about;
mod answer;
mod histogram;
mod history;
mod wait;

use axum::Router;
use axum::routing::get;

pub use about::{About, unix_s};
pub use answer::{bytes, json, json_text, page, script, style};
pub use histogram::{Histogram, Times};
pub use history::{History, Notes, Recorder, Sampled, history};
pub use wait::ready_within;

use crate::metrics::{self, Source};

/// Routes of every page. `html` is the page of the program.
pub fn routes<S: Source + Sampled>(html: &'static str, history: &History<S>) -> Router {
    let (of_minute, of_run) = (history.clone(), history.clone());
    metrics::routes(history.counters())
        .route("/", page(html))
        .route("/page.css", style(include_str!("page.css")))
        .route("/parts.js", script(include_str!("parts.js")))
        .route("/plots.js", script(include_str!("plots.js")))
        .route("/poll.js", script(include_str!("poll.js")))
        .route(
            "/minute.json",
            get(move || async move { json(&of_minute.minute()) }),
        )
        .route(
            "/history.json",
            get(move || async move { json(&of_run.run()) }),
        )
}
