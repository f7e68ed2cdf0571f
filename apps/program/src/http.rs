//! An HTTP server beside a run, for what it shows of itself: metrics, pages.
//!
//! It only answers, and whoever asks cannot hurt the run: everything that a client may take (its
//! head, its time, its share of connections) is bounded, and the thread stays off the loops' CPUs.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::Background;

/// Connections that are served at a time; others wait in the kernel's queue, or are refused by it.
const CONNECTIONS: usize = 32;

/// Longest head of a request, in bytes: the least that the library takes.
const LONGEST_HEAD: usize = 8192;

/// A connection carries one request, and ends after this long, whatever its client does.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it waits when the system has no connection to give: no descriptors, say.
const NAP: Duration = Duration::from_millis(100);

/// A running server; dropping it stops it.
pub struct Server {
    address: SocketAddr,
    _thread: Background,
}

impl Server {
    /// Serves `routes` on `address` from a thread of its own, on none of the CPUs in `loops`, the
    /// first of which matter most. `name` is what is served, for messages.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn start(
        address: SocketAddr,
        name: &'static str,
        routes: Router,
        loops: &[usize],
    ) -> Result<Self> {
        let listening = || format!("cannot serve {name} on {address}");
        let listener = TcpListener::bind(address).with_context(listening)?;
        listener.set_nonblocking(true).with_context(listening)?;
        let address = listener.local_addr().with_context(listening)?;
        let work = move || async move {
            let Err(error) = serve(listener, routes).await;
            tracing::warn!("{name} is no longer served: {error:?}");
        };
        let thread = Background::start(name, loops, work).with_context(listening)?;
        Ok(Self {
            address,
            _thread: thread,
        })
    }

    /// Where it listens: the port that the system chose, where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves for ever, or until it cannot.
async fn serve(listener: TcpListener, routes: Router) -> Result<std::convert::Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = Arc::clone(&places).acquire_owned().await?;
        let Ok((stream, _)) = listener.accept().await else {
            sleep(NAP).await;
            continue;
        };
        let routes = routes.clone();
        tokio::spawn(async move {
            answer(stream, routes).await;
            drop(place);
        });
    }
}

/// One request and its answer.
async fn answer(stream: TcpStream, routes: Router) {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    // What goes wrong is the client's: it has left, or does not speak HTTP.
    let _ = timeout(PATIENCE, connection).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use axum::routing::get;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    fn server(address: SocketAddr) -> Result<Server> {
        let routes = Router::new().route("/one", get(|| async { "one\n" }));
        Server::start(address, "a number", routes, &[])
    }

    /// What comes back for some bytes, until the server ends the connection.
    fn say(address: SocketAddr, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        // It may have answered, and gone, before it has heard all.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into()
    }

    fn ask(address: SocketAddr, path: &str) -> String {
        say(
            address,
            format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes(),
        )
    }

    const ANY: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

    #[test]
    fn it_answers_and_stops() {
        let server = server(ANY.into()).unwrap();
        let address = server.address();
        let answer = ask(address, "/one");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("one\n"),
            "{answer}"
        );
        assert!(ask(address, "/nothing").starts_with("HTTP/1.1 404"));
        let taken = self::server(address).err().unwrap();
        let told = format!("{taken:#}");
        assert!(
            told.contains(&format!("cannot serve a number on {address}")),
            "{told}"
        );
        // Though a client holds its connection.
        let _open = TcpStream::connect(address).unwrap();
        drop(server);
        TcpListener::bind(address).unwrap();
    }

    #[test]
    fn an_address_of_others_is_named() {
        // TEST-NET-1 (RFC 5737) is nobody's.
        let error = server(([192, 0, 2, 1], 80).into()).err().unwrap();
        let told = format!("{error:#}");
        assert!(
            told.contains("192.0.2.1:80") && told.contains("Cannot assign"),
            "{told}"
        );
    }

    #[test]
    fn what_is_no_request_hurts_nobody() {
        let server = server(ANY.into()).unwrap();
        let address = server.address();
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
        let fields = format!("GET /one HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(10_000));
        let body = b"POST /one HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\nabc";
        let inputs: [&[u8]; 6] = [
            b"GET\0/one HTTP/1.1\r\n\r\n",
            &[0xff; 5000],
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            long.as_bytes(),
            fields.as_bytes(),
            body,
        ];
        for input in inputs {
            let answer = say(address, input);
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
                "{answer}"
            );
        }
        // More clients that say nothing than there are places, who leave again.
        let silent: Vec<_> = (0..2 * CONNECTIONS)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        drop(silent);
        assert!(ask(address, "/one").ends_with("one\n"));
    }
}
