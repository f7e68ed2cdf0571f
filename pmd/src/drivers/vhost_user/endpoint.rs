//! Connection set-up: one end listens at a path, the other connects to it.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::connection::{Connection, Stop};
use super::ended::Ended;

/// Time for which a client waits before it retries.
pub(super) const RETRY: Duration = Duration::from_millis(100);

/// Number of attempts before a warning: a peer that is about to start is ready by then, and a
/// misspelt path never is.
const TELL_AFTER: u32 = 20;

pub(super) enum Endpoint {
    Client(PathBuf, SocketAddrUnix),
    Server(Listener),
}

impl Endpoint {
    /// A client of the path, or a server at it.
    pub(super) fn new(path: &Path, server: bool) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        Ok(if server {
            Self::Server(Listener::bind(path, &address)?)
        } else {
            Self::Client(path.into(), address)
        })
    }

    /// Waits for a peer. Calls `look` at intervals, for as long as it returns that work remains.
    pub(super) fn connect(
        &self,
        stop: &Stop,
        look: impl Fn() -> bool,
    ) -> Result<Connection, Ended> {
        let socket = match self {
            Self::Client(path, address) => {
                let mut attempts = 0;
                loop {
                    match dial(address) {
                        Ok(socket) => break socket,
                        // No server exists yet, or its backlog is full.
                        Err(
                            error
                            @ (Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN | Errno::INTR),
                        ) => {
                            attempts += 1;
                            if attempts == TELL_AFTER {
                                tracing::warn!(
                                    "no peer listens at {}: {error}; retrying: start the peer, or \
                                     listen at this end (server=on)",
                                    path.display()
                                );
                            }
                            look();
                            stop.wait(None, Some(RETRY))?;
                        }
                        Err(error) => return Err(Ended::system("cannot connect")(error)),
                    }
                }
            }
            Self::Server(listener) => loop {
                let events = Some((listener.socket.as_fd(), PollFlags::IN));
                stop.wait(events, look().then_some(RETRY))?;
                match listener.socket.accept() {
                    Ok((socket, _)) => break socket,
                    // The client has disconnected again.
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::WouldBlock
                                | io::ErrorKind::Interrupted
                                | io::ErrorKind::ConnectionAborted
                        ) => {}
                    Err(error) => return Err(Ended::system("cannot accept a peer")(error)),
                }
            },
        };
        Connection::new(socket, stop.clone()).map_err(Ended::system("cannot use the socket"))
    }
}

/// Connects without waiting: a blocking call would wait for ever for a server that never accepts.
fn dial(address: &SocketAddrUnix) -> Result<UnixStream, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, address)?;
    Ok(socket.into())
}

/// A listening socket; dropping it removes the path.
pub(super) struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    fn bind(path: &Path, address: &SocketAddrUnix) -> io::Result<Self> {
        let socket = match UnixListener::bind(path) {
            // A socket without a listener is left over from a process that was killed.
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse
                    && path.symlink_metadata()?.file_type().is_socket()
                    && dial(address).err() == Some(Errno::CONNREFUSED) =>
            {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            other => other?,
        };
        let listener = Self {
            socket,
            path: path.into(),
        };
        listener.socket.set_nonblocking(true)?;
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Another process may have removed it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_stale_socket_is_taken_over_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let server = Endpoint::new(&path, true).unwrap();
        let second = Endpoint::new(&path, true).map(drop).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(server);
        assert!(!path.exists());
        std::fs::write(&path, b"a file").unwrap();
        assert!(Endpoint::new(&path, true).is_err());
        assert!(path.exists());
    }

    #[test]
    fn either_may_be_first_and_stopping_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let stop = Stop::new().unwrap();
        let client = Endpoint::new(&path, false).unwrap();
        std::thread::scope(|scope| {
            let early = scope.spawn(|| client.connect(&stop, || false).map(drop));
            let server = Endpoint::new(&path, true).unwrap();
            server.connect(&stop, || false).map(drop).unwrap();
            early.join().unwrap().unwrap();
        });
        std::thread::scope(|scope| {
            let server = Endpoint::new(&path, true).unwrap();
            let stop = &stop;
            let idle = scope.spawn(move || server.connect(stop, || false).map(drop));
            stop.raise();
            assert!(matches!(idle.join().unwrap(), Err(Ended::Stopped)));
        });
    }
}
