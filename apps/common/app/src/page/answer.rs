//! Answers of a page's server, and their headers.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde::Serialize;

/// Nothing is loaded from other sources, whatever the page contains.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Route of the page itself: HTML.
pub fn page(text: &'static str) -> MethodRouter {
    asset("text/html; charset=utf-8", text)
}

/// Route of a style sheet.
pub fn style(text: &'static str) -> MethodRouter {
    asset("text/css; charset=utf-8", text)
}

/// Route of a script.
pub fn script(text: &'static str) -> MethodRouter {
    asset("text/javascript; charset=utf-8", text)
}

fn asset(kind: &'static str, text: &'static str) -> MethodRouter {
    get(move || async move { answer(kind, text) })
}

/// An answer of a value as JSON.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => json_text(text),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// An answer of JSON that is text already.
#[must_use]
pub fn json_text(text: String) -> Response {
    answer("application/json", text)
}

/// An answer of binary data.
#[must_use]
pub fn bytes(data: Vec<u8>) -> Response {
    answer("application/octet-stream", data)
}

fn answer(kind: &'static str, body: impl IntoResponse) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, body).into_response()
}
