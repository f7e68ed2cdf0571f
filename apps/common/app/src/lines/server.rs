//! Line server: clients, and limits on their number.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, broadcast};
use tokio::time::sleep;

use super::address::Address;
use super::connection::converse;
use super::service::Service;
use super::socket_file::SocketFile;
use crate::Background;

/// Maximum number of concurrent clients; further ones get an error and are disconnected.
pub const CLIENTS: usize = 16;

/// Delay after the system could not provide a connection, for example without free descriptors.
const NAP: Duration = Duration::from_millis(100);

/// Number of clients in the kernel's backlog.
const BACKLOG: i32 = 16;

/// Silence of a TCP client after which the kernel checks that its host is there.
const SILENCE: Duration = Duration::from_secs(30);

/// A running server; dropping it ends it, and removes its socket.
pub struct Server {
    address: Address,
    /// Ends before the socket is removed.
    _thread: Background,
    _socket: Option<SocketFile>,
}

enum Listener {
    Unix(std::os::unix::net::UnixListener),
    Tcp(std::net::TcpListener),
}

impl Server {
    /// Serves at `address`, from a thread named `name`, on none of the CPUs in `loops`. A Unix socket is
    /// accessible to its owner alone.
    ///
    /// # Errors
    /// A path where another program listens, or that is not a socket; an address of which the same
    /// holds.
    pub fn start(
        name: &'static str,
        address: &Address,
        service: Service,
        loops: &[usize],
    ) -> Result<Self> {
        let (address, socket, listener) = match address {
            Address::Unix(path) => {
                let (file, listener) = SocketFile::listen(path, BACKLOG)?;
                (address.clone(), Some(file), Listener::Unix(listener))
            }
            Address::Tcp(wanted) => {
                let (found, listener) = listen(*wanted).context("cannot listen there")?;
                (Address::Tcp(found), None, Listener::Tcp(listener))
            }
        };
        let work = move || async move {
            let Err(error) = serve(listener, Arc::new(service)).await;
            tracing::error!("{name}: clients are no longer served: {error:?}");
        };
        Ok(Self {
            address,
            _thread: Background::start(name, loops, work)?,
            _socket: socket,
        })
    }

    /// The address: with the port that the system chose, where 0 was given.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

fn listen(address: SocketAddr) -> io::Result<(SocketAddr, std::net::TcpListener)> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok((listener.local_addr()?, listener))
}

/// Serves until an error.
async fn serve(listener: Listener, service: Arc<Service>) -> Result<std::convert::Infallible> {
    let clients = Clients {
        places: Arc::new(Semaphore::new(CLIENTS)),
        service,
    };
    match listener {
        Listener::Unix(listener) => {
            let listener = UnixListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => clients.admit(stream),
                    Err(_) => sleep(NAP).await,
                }
            }
        }
        Listener::Tcp(listener) => {
            let listener = TcpListener::from_std(listener)?;
            loop {
                match listener.accept().await {
                    Ok((stream, _)) if prepare(&stream).is_ok() => clients.admit(stream),
                    Ok(_) => {}
                    Err(_) => sleep(NAP).await,
                }
            }
        }
    }
}

/// A client whose host has vanished must not keep its place.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(SILENCE))
}

/// A connection of either kind.
trait Stream: Send + 'static {
    /// Writes what fits into the empty buffer of a new connection.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Converses until the end of the connection.
    fn converse(
        self,
        service: Arc<Service>,
        events: broadcast::Receiver<Arc<str>>,
    ) -> impl Future<Output = ()> + Send;
}

macro_rules! stream {
    ($($type:ty)*) => {
        $(
            impl Stream for $type {
                fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                    Self::try_write(self, bytes)
                }

                async fn converse(
                    self,
                    service: Arc<Service>,
                    events: broadcast::Receiver<Arc<str>>,
                ) {
                    let (input, output) = self.into_split();
                    converse(input, output, &service, events).await;
                }
            }
        )*
    };
}

stream!(UnixStream TcpStream);

struct Clients {
    places: Arc<Semaphore>,
    service: Arc<Service>,
}

impl Clients {
    fn admit(&self, stream: impl Stream) {
        let service = Arc::clone(&self.service);
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let full = (service.answer)(Err(&format!("{CLIENTS} clients are here already")));
            let _ = stream.try_write(full.as_bytes());
            return;
        };
        let events = service.subscribe();
        tokio::spawn(async move {
            stream.converse(service, events).await;
            drop(place);
        });
    }
}
