//! HTTP server beside a run, for metrics and pages.
//!
//! The server only answers. A client cannot disturb the run: the length of a request's head, its
//! time and the number of connections are bounded, and the thread stays off the CPUs of the loops.

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

/// Connections that are served at a time. Others wait in the kernel's queue, or the kernel refuses
/// them.
const CONNECTIONS: usize = 32;

/// Longest head of a request, in bytes: the least that the library accepts.
const LONGEST_HEAD: usize = 8192;

/// A connection carries one request, and ends after this time whatever its client does.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause after the system refuses a connection, for example for lack of descriptors.
const NAP: Duration = Duration::from_millis(100);

/// An address that is listened on before there is anything to serve: clients wait in the kernel's queue.
/// A program binds it first of all, so that an address in use is an error before it creates files.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    name: &'static str,
    socket: TcpListener,
}

impl Listener {
    /// Listens on `address`. `name` names what is to be served in messages.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn bind(address: SocketAddr, name: &'static str) -> Result<Self> {
        let listening = || format!("cannot serve {name} on {address}");
        let socket = TcpListener::bind(address).with_context(listening)?;
        socket.set_nonblocking(true).with_context(listening)?;
        let address = socket.local_addr().with_context(listening)?;
        Ok(Self {
            address,
            name,
            socket,
        })
    }
}

/// Addresses of a program with metrics and a page, where they are asked for.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For the metrics.
    pub metrics: Option<Listener>,
    /// For the page.
    pub page: Option<Listener>,
}

impl Listeners {
    /// Listens on both.
    ///
    /// # Errors
    /// An address that cannot be listened on.
    pub fn bind(metrics: Option<SocketAddr>, page: Option<SocketAddr>) -> Result<Self> {
        let metrics = metrics.map(|address| Listener::bind(address, "metrics"));
        let page = page.map(|address| Listener::bind(address, "the run page"));
        Ok(Self {
            metrics: metrics.transpose()?,
            page: page.transpose()?,
        })
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    address: SocketAddr,
    _thread: Background,
}

impl Server {
    /// Serves `routes` from a thread of its own, which is kept off the CPUs in `loops`, off the first
    /// ones with priority.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn start(listener: Listener, routes: Router, loops: &[usize]) -> Result<Self> {
        let Listener {
            address,
            name,
            socket,
        } = listener;
        let work = move || async move {
            let Err(error) = serve(socket, routes).await;
            tracing::warn!("{name} is no longer served: {error:?}");
        };
        let thread = Background::start(name, loops, work)
            .with_context(|| format!("cannot serve {name} on {address}"))?;
        Ok(Self {
            address,
            _thread: thread,
        })
    }

    /// Address that it listens on: with the port that the system chose, where 0 was given.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves until the listener fails.
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

/// Serves one request.
async fn answer(stream: TcpStream, routes: Router) {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    // An error here is the client's: it disconnected, or does not speak HTTP.
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
        Server::start(Listener::bind(address, "a number")?, routes, &[])
    }

    #[test]
    fn a_client_that_is_early_waits() {
        let listener = Listener::bind(ANY.into(), "a number").unwrap();
        let address = listener.address;
        let early = std::thread::spawn(move || ask(address, "/one"));
        let routes = Router::new().route("/one", get(|| async { "one\n" }));
        let _server = Server::start(listener, routes, &[]).unwrap();
        assert!(early.join().unwrap().ends_with("one\n"));
    }

    /// Sends some bytes and returns the answer, until the server closes the connection.
    fn say(address: SocketAddr, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        // The server may have answered and closed before it read everything.
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
        let message = format!("{taken:#}");
        assert!(
            message.contains(&format!("cannot serve a number on {address}")),
            "{message}"
        );
        // Although a client keeps its connection open.
        let _open = TcpStream::connect(address).unwrap();
        drop(server);
        TcpListener::bind(address).unwrap();
    }

    #[test]
    fn an_address_of_others_is_named() {
        // TEST-NET-1 (RFC 5737) is assigned to no host.
        let error = server(([192, 0, 2, 1], 80).into()).err().unwrap();
        let message = format!("{error:#}");
        assert!(
            message.contains("192.0.2.1:80") && message.contains("Cannot assign"),
            "{message}"
        );
    }

    #[test]
    fn a_malformed_request_harms_no_other_client() {
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
        // More silent clients than there are places; they disconnect again.
        let silent: Vec<_> = (0..2 * CONNECTIONS)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        drop(silent);
        assert!(ask(address, "/one").ends_with("one\n"));
    }
}
