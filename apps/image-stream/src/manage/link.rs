//! Connection to a node: requests out, and a thread that reads its messages.

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use pollux_app::lines::Address;
use pollux_images::control::{MAX_LINE, Message, Request};

use super::shown;

/// What came from a node.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message.
    Message(Message),
    /// There will be no more, for this reason.
    Closed(String),
}

/// A connection to a node. Dropping it closes the connection, which ends its thread.
pub(super) struct Link(Stream);

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Link {
    /// Connects, and passes on what the node sends, with its number.
    pub(super) fn connect(
        number: usize,
        address: &Address,
        timeout: Duration,
        incoming: SyncSender<(usize, Incoming)>,
    ) -> io::Result<Self> {
        let stream = Stream::connect(address, timeout)?;
        let mut lines = BufReader::new(stream.try_clone()?);
        let body = move || {
            loop {
                let message = next(&mut lines);
                let is_last = matches!(message, Incoming::Closed(_));
                // The manager is gone.
                if incoming.send((number, message)).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("node".into()).spawn(body)?;
        Ok(Self(stream))
    }

    /// Sends a request.
    pub(super) fn send(&mut self, request: &Request) -> io::Result<()> {
        self.0.write_all(request.line().as_bytes())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.0.shutdown();
    }
}

/// Reads a message, or why there is none.
fn next(lines: &mut BufReader<Stream>) -> Incoming {
    let mut line = Vec::new();
    let read = lines.take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
    match read {
        Ok(0) => Incoming::Closed("it closed the connection: look at its log".into()),
        Ok(_) => match Message::parse(&line) {
            Ok(message) => Incoming::Message(shown::message(message)),
            Err(error) => Incoming::Closed(shown::text(format!(
                "its answer is refused: {error}; use programs of one version"
            ))),
        },
        Err(error) => Incoming::Closed(format!("the connection has failed: {error}")),
    }
}

impl Stream {
    fn connect(address: &Address, timeout: Duration) -> io::Result<Self> {
        match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(timeout))?;
                Ok(Self::Unix(stream))
            }
            Address::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, timeout)?;
                stream.set_write_timeout(Some(timeout))?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    fn shutdown(&self) {
        // An error means that it is closed.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.flush(),
            Self::Tcp(stream) => stream.flush(),
        }
    }
}
