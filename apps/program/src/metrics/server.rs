//! The server: `GET /metrics`.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use pollux_pmd::lcore;
use tokio::sync::oneshot;

use super::page::{self, Source};

/// What Prometheus asks for; see the OpenMetrics specification, "Content type".
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A running server; dropping it stops it.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the metrics of `source` on `address` from a thread of its own, on none of the CPUs
    /// in `loops`.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn start(address: SocketAddr, source: impl Source, loops: &[usize]) -> Result<Self> {
        let listening = || format!("cannot serve metrics on {address}");
        let listener = TcpListener::bind(address).with_context(listening)?;
        listener.set_nonblocking(true).with_context(listening)?;
        let address = listener.local_addr().with_context(listening)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .with_context(listening)?;

        tracing::info!("metrics at http://{address}/metrics");
        let registry = Arc::new(page::registry(source));
        let metrics = move || async move {
            match page::write(&registry) {
                Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        };
        let routes = Router::new()
            .route("/metrics", get(metrics))
            .route("/", get(|| async { "Pollux: see /metrics\n" }));
        let (stop, stopped) = oneshot::channel();
        let loops = loops.to_vec();
        let body = move || {
            lcore::keep_off(&loops);
            runtime.block_on(async move {
                let served = async move {
                    let listener = tokio::net::TcpListener::from_std(listener)?;
                    axum::serve(listener, routes).await
                };
                // A client that keeps its connection open does not hold the program up.
                tokio::select! {
                    result = served => if let Err(error) = result {
                        tracing::warn!("metrics are no longer served: {error}");
                    },
                    _ = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(body)
            .context("cannot start the metrics thread")?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens: the port that the system chose, where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has been reported already, and is nothing to the run.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::Page;
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    struct One;
    impl Source for One {
        fn measure(&self, page: &mut Page<'_>) -> std::fmt::Result {
            page.counter("ones", "One", [([], 1)])
        }
    }

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn it_answers_and_stops() {
        let server = Server::start(([127, 0, 0, 1], 0).into(), One, &[]).unwrap();
        let address = server.address();
        let answer = ask(address, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(
            answer.contains("openmetrics-text") && answer.contains("pollux_ones_total{} 1\n"),
            "{answer}"
        );
        assert!(ask(address, "/nothing").starts_with("HTTP/1.1 404"));
        let taken = Server::start(address, One, &[]).err().unwrap();
        assert!(format!("{taken:#}").contains(&format!("cannot serve metrics on {address}")));
        // Though a client holds its connection.
        let _open = TcpStream::connect(address).unwrap();
        drop(server);
        TcpListener::bind(address).unwrap();
    }
}
